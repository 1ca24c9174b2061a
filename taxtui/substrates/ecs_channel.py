"""A Session Manager data channel on a websocket: the byte stream of a terminal in an ECS container."""

from __future__ import annotations

import asyncio
import shlex
import time
from typing import Final, Self

import websockets

from taxtui.errors import ExecFailed, SubstrateError
from taxtui.shell import ENDED, STDOUT, launch_argv
from taxtui.substrates.ecs_exec import Channel

CONNECT_TIMEOUT_S: Final = 20.0
PING_INTERVAL_S: Final = 60.0
CLOSE_GRACE_S: Final = 1.0
"""For the agent to acknowledge that it shall end the session. It then takes 2 s of its own, which nobody waits for."""
LEAVE_TIMEOUT_S: Final = 5.0
BUFFERED_CHUNKS: Final = 8192
"""Of at most 1 KiB, not yet read. Beyond that we stop acknowledging, and the agent repeats itself until we do."""

_LEAVE: Final = b": 000000005 000000001\nexit\n"
"""A frame of ``taxtui.shell`` that ends its driver, and with it the terminal and the session."""


def entry_command(directory: str) -> tuple[str, bytes]:
    """What ECS has to execute, and what must then be typed, to get the shell of ``taxtui.shell`` in ``directory``.

    The agent splits a command like a shell but runs none, and says what it thinks of newlines nowhere: so the entry
    is short, switches the terminal to raw, prints a line (until it does, nothing may be typed), and reads the rest.
    """
    program = shlex.join(launch_argv(terminal=True))
    typed = f'mkdir -p "{directory}" && cd "{directory}" && exec {program}\n'.encode()
    entry = f'stty raw -echo 2>/dev/null; echo; eval "$(dd bs=1 count={len(typed)} 2>/dev/null)"'
    return f"/bin/sh -c {shlex.quote(entry)}", typed


class DataChannel:
    """A ``shell.ByteStream``. Both streams of the terminal are one, so its shell must be opened as merged."""

    def __init__(self, socket: websockets.ClientConnection, channel: Channel) -> None:
        """Use :meth:`open`."""
        self._socket = socket
        self._channel = channel
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue(BUFFERED_CHUNKS)
        self._unacknowledged = asyncio.Event()  # wakes the resender while it has nothing to wait for
        self._changed = asyncio.Event()  # something was acknowledged, or the channel is over
        self._closed = False
        self._receiving = asyncio.create_task(self._receive())
        self._resending = asyncio.create_task(self._resend())

    @classmethod
    async def open(cls, url: str, token: str) -> Self:
        """Connect and authenticate; the agent may still be on its way. Raises :class:`ExecFailed`."""
        try:
            socket = await websockets.connect(
                url,
                open_timeout=CONNECT_TIMEOUT_S,
                ping_interval=PING_INTERVAL_S,
                ping_timeout=PING_INTERVAL_S,
                close_timeout=CLOSE_GRACE_S,
                compression=None,
                max_size=None,
            )
        except (OSError, TimeoutError, websockets.WebSocketException) as error:
            reason = str(error) or type(error).__name__
            raise ExecFailed(f"the session's data channel could not be opened: {reason}") from error
        channel = Channel(token, now_ns=time.monotonic_ns(), unix_ns=time.time_ns())
        stream = cls(socket, channel)
        try:
            await socket.send(channel.greeting())
        except websockets.ConnectionClosed as error:
            await stream.close()
            raise ExecFailed(f"the session's data channel was refused: {error}") from error
        except BaseException:
            await stream.close()
            raise
        return stream

    @property
    def resent(self) -> int:
        """Frames that had to be sent again."""
        return self._channel.resent

    async def read(self) -> tuple[int, bytes]:
        """The next output; raises why the channel is over, once all that came before has been read."""
        chunk = await self._chunks.get()
        if chunk is not None:
            return STDOUT, chunk
        self._chunks.put_nowait(None)  # for whoever asks next
        if self._closed:
            return ENDED, b""
        assert self._channel.end is not None
        raise self._channel.end

    async def write(self, data: bytes) -> None:
        """Send input; returns before it has arrived."""
        self._raise_end()
        self._channel.write(data, time.monotonic_ns())
        await self._flush()

    async def leave(self) -> None:
        """Let the shell exit and wait until the session is over, so that a next one does not meet its remains."""
        try:
            await self.write(_LEAVE)
            async with asyncio.timeout(LEAVE_TIMEOUT_S):
                await asyncio.shield(self._receiving)
        except (SubstrateError, TimeoutError):
            pass  # it is over already, or will be terminated now
        finally:
            await self.close()

    async def close(self) -> None:
        """Have the session terminated and hang up. Idempotent."""
        if not self._closed:
            self._closed = True
            await self._terminate()
        self._resending.cancel()
        await self._socket.close()
        self._receiving.cancel()
        await asyncio.wait({self._receiving, self._resending})

    async def _terminate(self) -> None:
        if self._channel.end is not None:
            return
        self._channel.terminate(time.monotonic_ns())
        await self._flush()
        try:
            async with asyncio.timeout(CLOSE_GRACE_S):
                while self._channel.end is None and not self._channel.settled:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass  # a session whose socket is gone ends by itself, at the latest with its container

    async def _receive(self) -> None:
        try:
            while self._channel.end is None:
                data = await self._socket.recv(decode=False)
                output = self._channel.receive(data, time.monotonic_ns())
                await self._flush()
                self._changed.set()
                if output and not self._closed:
                    await self._chunks.put(output)
        except websockets.ConnectionClosed as error:
            self._channel.lost(str(error))
        self._changed.set()
        await self._chunks.put(None)

    async def _resend(self) -> None:
        """Tick when the oldest unacknowledged frame is due."""
        while self._channel.end is None:
            wake_at_ns = self._channel.wake_at_ns
            if wake_at_ns is None:
                self._unacknowledged.clear()
                await self._unacknowledged.wait()
            else:
                await asyncio.sleep(max(0, wake_at_ns - time.monotonic_ns()) / 1e9)
                self._channel.tick(time.monotonic_ns())
                await self._flush()
        await self._socket.close()

    async def _flush(self) -> None:
        if self._channel.wake_at_ns is not None:
            self._unacknowledged.set()
        try:
            for frame in self._channel.take():
                await self._socket.send(frame)
        except websockets.ConnectionClosed as error:
            self._channel.lost(str(error))

    def _raise_end(self) -> None:
        if self._channel.end is not None:
            raise self._channel.end
