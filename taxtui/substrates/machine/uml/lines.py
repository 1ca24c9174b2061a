"""Serial lines of a machine: sockets on this side, terminals inside."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import socket
import termios
from collections import deque
from typing import Final

from taxtui.errors import ExecFailed, SandboxLost
from taxtui.sandboxes.kit.framed_shell import ENDED
from taxtui.sandboxes.kit.frames import STDERR, STDOUT
from taxtui.substrates.machine.uml.boot import READY, REQUEST, SEEN, ended

_CHUNK: Final = 1 << 18
_PIECE: Final = 1 << 10  # bytes, of input: more than its terminal holds, and the kernel forgets that there is more
_PACE_S: Final = 0.001
_PATIENCE: Final = 32  # looks, after which one byte more reminds the kernel of what it has not taken
_READ_AHEAD: Final = 4 << 20  # bytes kept while nobody reads; beyond that whoever prints has to wait


class Wire:
    """Our end of one line; all that comes goes to ``heard``, ``b""`` at its end."""

    def __init__(self) -> None:
        """Nobody listens yet; ``far`` is for the machine."""
        self._near, self.far = socket.socketpair()
        self._near.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._outgoing = bytearray()
        self._looks = 0
        self._timer: asyncio.TimerHandle | None = None
        self._listens = False

    def listen(self, owner: LinePair | OrderLine, channel: int = STDOUT) -> None:
        """Have ``owner`` hear what comes, until it is closed or paused."""
        if not self._listens and self._near.fileno() >= 0:
            self._loop.add_reader(self._near, self._readable, owner, channel)
            self._listens = True

    def pause(self) -> None:
        """Take nothing for now: whoever prints has to wait."""
        if self._listens:
            self._loop.remove_reader(self._near)
            self._listens = False

    def _readable(self, owner: LinePair | OrderLine, channel: int) -> None:
        try:
            chunk = self._near.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.close()
        owner.heard(channel, chunk)

    def send(self, data: bytes) -> None:
        """As fast as it is taken."""
        self._outgoing += data
        if self._timer is None:
            self._writable()

    def forget(self) -> None:
        """Send no more of what was to be sent."""
        self._outgoing.clear()

    def _writable(self) -> None:
        self._timer = None
        if self._near.fileno() < 0 or not self._outgoing:
            return
        try:
            if not self._untaken():
                del self._outgoing[: self._near.send(self._outgoing[:_PIECE])]
                self._looks = 0
            elif (looks := self._looks + 1) % _PATIENCE == 0:
                del self._outgoing[: self._near.send(self._outgoing[:1])]
                self._looks = looks
            else:
                self._looks = looks
        except BlockingIOError:
            pass
        except OSError:  # the machine is gone, which reading tells
            self._outgoing.clear()
        if self._outgoing:
            self._timer = self._loop.call_later(_PACE_S, self._writable)

    def _untaken(self) -> bool:
        """Whether the machine has yet to take what was sent."""
        return any(fcntl.ioctl(self._near, termios.TIOCOUTQ, bytes(4)))

    def close(self) -> None:
        """Idempotent."""
        self.pause()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._near.close()
        self.far.close()


class LinePair:
    """Two lines, on which one request after the other is served; the streams of the program that a request starts."""

    def __init__(self) -> None:
        """Nobody waits at the other end yet."""
        self.wires = {STDOUT: Wire(), STDERR: Wire()}
        self.ready = asyncio.Event()
        """Somebody waits there for a request, or nobody ever will again."""
        self.lost = False
        self._chunks: deque[tuple[int, bytes]] = deque()
        self._ahead = 0
        self._waiter: asyncio.Future[None] | None = None
        self._end = b""  # what announces the end of this request's program, on either line
        self._running: set[int] = set()  # the lines on which it has yet to come
        self._left = True  # nobody wants what comes
        self._recent = {STDOUT: b"", STDERR: b""}  # what may be the beginning of an announcement

    def listen(self) -> None:
        """From now on."""
        for channel, wire in self.wires.items():
            wire.listen(self, channel)

    def request(self, mark: str) -> None:
        """Have a program started that carries ``mark``. Only where it is ``ready``."""
        self.ready.clear()
        self._end, self._running, self._left = ended(mark), {STDOUT, STDERR}, False
        self.wires[STDOUT].send(f"\n{REQUEST} {mark}\n".encode())

    def leave(self) -> None:
        """Drop what comes, until it is ``ready`` again. For a request whose program ends, by itself or by others."""
        self._left = True
        self._chunks.clear()
        self._ahead = 0
        if self._running:
            self.wires[STDOUT].forget()
        self.listen()

    def heard(self, channel: int, chunk: bytes) -> None:
        """The next of what comes; of no length at the machine's end."""
        if not chunk:
            self.lost = True
            self.ready.set()
            self._wake()
            return
        self._announced(channel, chunk)
        if self._left:
            return
        self._chunks.append((channel, chunk))
        self._ahead += len(chunk)
        if self._ahead > _READ_AHEAD:
            for wire in self.wires.values():
                wire.pause()
        self._wake()

    def _announced(self, channel: int, chunk: bytes) -> None:
        """Look for the end of the program, and for somebody who waits."""
        looked_at = self._recent[channel] + chunk
        if channel in self._running and self._end in looked_at:
            self._running.discard(channel)
            _, _, looked_at = looked_at.partition(self._end)
            if not self._running:
                self.wires[STDOUT].forget()
                self.wires[STDOUT].send(f"\n{SEEN}\n".encode())
        # Without an end before it where somebody has killed the shell itself.
        if channel == STDOUT and (self._left or not self._running) and READY in looked_at:
            looked_at = b""
            self._running.clear()
            self.ready.set()
        self._recent[channel] = looked_at[-max(len(READY), len(self._end)) :]

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def read(self) -> tuple[int, bytes]:
        """As ``ByteStream.read``."""
        while not self._chunks:
            if self.lost or not self._running:
                return ENDED, b""
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        channel, chunk = self._chunks.popleft()
        self._ahead -= len(chunk)
        if self._ahead <= _READ_AHEAD:
            self.listen()
        return channel, chunk

    async def write(self, data: bytes) -> None:
        """As ``ByteStream.write``, except that what is not taken at once is sent in the background."""
        if self.lost or not self._running:
            raise SandboxLost("the shell no longer reads")
        self.wires[STDOUT].send(data)

    def close(self) -> None:
        """Idempotent."""
        for wire in self.wires.values():
            wire.close()
        self.heard(STDOUT, b"")


class OrderLine:
    """Line 0: orders to the first process, which answers each."""

    def __init__(self) -> None:
        """Nothing has been said yet."""
        self.wire = Wire()
        self.awake: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """Whether the first process has spoken; false where the line has ended before."""
        self._lost = False
        self._number = 0
        self._asked: dict[int, asyncio.Future[int]] = {}
        self._line = bytearray()

    def heard(self, channel: int, chunk: bytes) -> None:
        """The next of what comes; of no length at the machine's end."""
        if not chunk:
            self._lost = True
            if not self.awake.done():
                self.awake.set_result(False)
            for answer in self._asked.values():
                if not answer.done():
                    answer.set_exception(SandboxLost("the machine ended"))
            return
        self._line += chunk
        *lines, rest = self._line.split(b"\n")
        self._line = bytearray(rest)
        for line in lines:
            words = bytes(line).split()
            if words == [b"ready"] and not self.awake.done():
                self.awake.set_result(True)
            elif len(words) == 3 and words[0] == b"done":
                with contextlib.suppress(ValueError, KeyError, asyncio.InvalidStateError):
                    self._asked[int(words[1])].set_result(int(words[2]))

    async def order(self, script: str) -> int:
        """Have the first process run one line of shell, as root; its exit code. Raises ``SandboxLost``."""
        if self._lost:
            raise SandboxLost("the machine ended")
        if "\n" in script:
            raise ExecFailed("an order is one line")
        self._number += 1
        number = self._number
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        try:
            self.wire.send(f"{number} {script}\n".encode())
            return await answer
        finally:
            del self._asked[number]

    def close(self) -> None:
        """Idempotent. The machine turns itself off then, if it can."""
        self.wire.close()
        self.heard(STDOUT, b"")
