"""A Session Manager data channel on a websocket: the byte stream of a terminal in an ECS container."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import time
from typing import Final, Self

import websockets

from taxtui.errors import ExecFailed, SubstrateError, SubstrateUnavailable
from taxtui.sandboxes.kit.kill import MARK
from taxtui.sandboxes.kit.shell.framed_shell import launch_argv
from taxtui.sandboxes.kit.shell.frames import STDOUT
from taxtui.substrates.aws.ecs.protocol import RESEND_NS, Channel, SessionCut

CONNECT_TIMEOUT_S: Final = 20.0
PING_INTERVAL_S: Final = 60.0
END_TIMEOUT_S: Final = 3.0
"""Wait for the end of a terminated session; the agent takes 2 s."""
BUFFERED_BYTES: Final = 8 * 2**20
"""Limit of unread bytes. Beyond it nothing is acknowledged, and the agent repeats."""


def leaders(mark: str) -> str:
    """The mark of a session's leader, which is killed last: the end of the leader hangs up on all processes."""
    return mark[::-1]


def entry_command(directory: str, mark: str) -> tuple[str, bytes]:
    """The command for ECS and the later input that start the framed shell in ``directory``, with a mark.

    The agent splits a command into words without a shell, and newlines are undocumented. Therefore the command is
    short: switch the terminal to raw, print a line (earlier input is lost), read the rest.

    bash reads a terminal byte by byte, 20 times as slow, so ``dd`` copies the input into a pipe. BusyBox's ``cat`` uses
    sendfile, which never returns from a terminal. ``dd`` outlives the shell and would keep the session open: the end of
    the session's leader, ``$$``, ends ``dd``.
    """
    program = shlex.join(launch_argv())  # reads from a pipe
    feed, folder = "dd bs=65536 2>/dev/null", f'"{directory}"'
    enter = f"{{ cd {folder} 2>/dev/null || {{ mkdir -p {folder} && cd {folder}; }}; }}"
    typed = f"{enter} && {feed} | {{ {MARK}={mark} {program}; kill -9 $$; }}\n".encode()
    entry = f': {leaders(mark)}; stty raw -echo 2>/dev/null; echo; eval "$(dd bs=1 count={len(typed)} 2>/dev/null)"'
    return f"/bin/sh -c {shlex.quote(entry)}", typed


class DataChannel:
    """A ``framed_shell.Streams``. The terminal merges both streams: open the shell as merged."""

    def __init__(self, socket: websockets.ClientConnection, channel: Channel, session: str) -> None:
        self.session = session
        self._socket = socket
        self._channel = channel
        self._output = bytearray()
        self._arrived = asyncio.Event()  # there is output, or the channel has ended
        self._room = asyncio.Event()
        self._dropping = False
        self._running = asyncio.create_task(self._run())

    @classmethod
    async def open(cls, url: str, token: str, session: str = "") -> Self:
        """Connect and authenticate; the agent may connect later. Raises :class:`ExecFailed`.

        ``session``: the service's name for the session.
        """
        channel = Channel(token)
        try:
            socket = await websockets.connect(
                url,
                open_timeout=CONNECT_TIMEOUT_S,
                ping_interval=PING_INTERVAL_S,
                ping_timeout=PING_INTERVAL_S,
                close_timeout=1.0,
                compression=None,
                max_size=None,
            )
            await socket.send(channel.greeting())
        except (OSError, TimeoutError, websockets.WebSocketException) as error:
            reason = str(error) or type(error).__name__
            raise ExecFailed(f"the session's data channel could not be opened: {reason}") from error
        return cls(socket, channel, session)

    @property
    def end(self) -> SubstrateError | None:
        """The reason of the channel's end, or None."""
        return self._channel.end

    async def read(self) -> tuple[int, bytes]:
        """The next output; after all output, raises the reason of the channel's end."""
        while not self._output:
            if self.end is not None:
                raise self.end
            self._arrived.clear()
            await self._arrived.wait()
        chunk = bytes(self._output)
        self._output.clear()
        self._room.set()
        return STDOUT, chunk

    async def write(self, data: bytes) -> None:
        """Send input; returns before the arrival."""
        if self.end is not None:
            raise self.end
        self._channel.write(data, time.monotonic_ns())
        await self._flush()

    async def ended(self, within_s: float) -> bool:
        """Whether the session ends within this time. Further output is dropped."""
        self._dropping = True
        self._room.set()
        await asyncio.wait({self._running}, timeout=within_s)
        return self._running.done()

    async def close(self) -> bool:
        """Have a running session terminated, and drop the connection. Idempotent.

        Returns whether the session has ended; if not, agent and processes may continue.
        """
        try:
            if self.end is None:
                self._channel.terminate(time.monotonic_ns())
                await self._flush()
                await self.ended(END_TIMEOUT_S)
            return self.end is not None and not isinstance(self.end, SessionCut | ExecFailed | SubstrateUnavailable)
        finally:
            self.drop()

    def drop(self, reason: SubstrateError | None = None) -> None:
        """Drop the connection at once, without a message. Idempotent. ``reason``: of the end, if none is known."""
        self._channel.end = self._channel.end or reason
        self._channel.lost("dropped by taxtui")
        self._running.cancel()
        self._socket.transport.abort()

    async def _run(self) -> None:
        """Receive, acknowledge and repeat until the channel's end."""
        try:
            while self.end is None:
                data = b""
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(RESEND_NS / 1e9):
                        data = await self._socket.recv(decode=False)
                output = self._channel.receive(data, time.monotonic_ns())
                self._channel.tick(time.monotonic_ns())
                await self._flush()
                if output and not self._dropping:
                    self._output += output
                    self._arrived.set()
                    if len(self._output) > BUFFERED_BYTES:
                        self._room.clear()
                        await self._room.wait()
        except websockets.ConnectionClosed as error:
            self._channel.lost(str(error))
        finally:
            self._arrived.set()

    async def _flush(self) -> None:
        try:
            for frame in self._channel.take():
                await self._socket.send(frame)
        except websockets.ConnectionClosed as error:
            self._channel.lost(str(error))
