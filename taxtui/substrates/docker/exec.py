"""An exec of a container, from the request to the exit code."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Final

import msgspec

from taxtui.errors import ExecFailed, SandboxLost
from taxtui.sandboxes.kit.kill import MARK, new_mark
from taxtui.sandboxes.kit.shell.framed_shell import ENDED
from taxtui.substrates.docker.failure import exec_refused, not_started
from taxtui.substrates.docker.http import Connection, Created, Daemon, Multiplexed

_SETTLES_WITHIN_S: Final = 10.0
_FIRST_POLL_S: Final = 0.001
_LAST_POLL_S: Final = 0.05
_KILLED: Final = 137
_SHOWS_WITHIN_S: Final = 0.1


class _State(msgspec.Struct):
    """The state of an exec or of a container, by the API's names."""

    Running: bool
    ExitCode: int | None = None
    Pid: int = 0


class _Container(msgspec.Struct):
    State: _State


class Exec:
    """A program in a running container, with attached streams; ``mark`` identifies the processes."""

    def __init__(self, daemon: Daemon, container: str) -> None:
        self.mark = new_mark()
        self._daemon = daemon
        self._container = container
        self._id = ""
        self._connection: Connection | None = None
        self._stream: Multiplexed | None = None

    async def start(self, argv: list[str], *, stdin: bool, folder: str = "") -> None:
        """``folder``: the container's by default. Raises ``SandboxLost``, ``ExecFailed``, ``Throttled``."""
        wanted = {
            "Cmd": argv,
            "Env": [f"{MARK}={self.mark}"],
            "WorkingDir": folder,
            "AttachStdin": stdin,
            "AttachStdout": True,
            "AttachStderr": True,
        }
        created = await self._daemon.request("POST", f"/containers/{self._container}/exec", wanted)
        if created.status != 201:
            raise exec_refused(created.status, created.message)
        self._id = created.read(Created).Id
        self._connection = await self._daemon.connect()
        wanted = {"Detach": False, "Tty": False}
        if refused := await self._daemon.hijack(self._connection, f"/exec/{self._id}/start", wanted):
            self.release()
            raise exec_refused(refused.status, refused.message)
        self._stream = Multiplexed(self._connection)

    @property
    def _streams(self) -> Multiplexed:
        assert self._stream is not None, "used before start"
        return self._stream

    async def read(self) -> tuple[int, bytes]:
        try:
            return await self._streams.read()
        except ExecFailed:
            if await self._container_survives():
                raise
            return ENDED, b""

    async def write(self, data: bytes) -> None:
        await self._streams.write(data)

    def send(self, data: bytes) -> None:
        """Send the whole standard input and the end, in the background."""
        self._streams.send_all(data)

    async def exit_code(self, stdout: bytes) -> int:
        """The exit code after the end of both streams; a runtime reports a failed start on ``stdout``.

        Raises:
            NoSuchProgram, ExecFailed, SandboxLost: the program never ran, or the container ended.
        """
        give_up, pause_s = time.monotonic() + _SETTLES_WITHIN_S, _FIRST_POLL_S
        while (state := await self._state()).Running or state.ExitCode is None:
            if time.monotonic() > give_up or not await self.container_runs():
                raise SandboxLost("the container ended while a command ran")
            await asyncio.sleep(pause_s)
            pause_s *= 2
        code = state.ExitCode
        if unstarted := not_started(code, stdout):
            raise unstarted
        if code == _KILLED and not await self._container_survives():
            raise SandboxLost("the container was killed while a command ran")
        return code

    async def _container_survives(self) -> bool:
        """Whether the container outlives a command or a stream; a container's end shows a little later."""
        give_up = time.monotonic() + _SHOWS_WITHIN_S
        while await self.container_runs():
            if time.monotonic() > give_up:
                return True
            await asyncio.sleep(_FIRST_POLL_S)
        return False

    async def has_begun(self) -> bool:
        """Whether a process exists or existed: waits for a start in progress.

        Call this before ``release``: for a client that is gone the daemon starts nothing, without a report.
        """
        if self._connection is None:
            return False
        give_up, pause_s = time.monotonic() + _SETTLES_WITHIN_S, _FIRST_POLL_S
        if self._stream is None:
            with contextlib.suppress(ExecFailed, TimeoutError):
                async with asyncio.timeout(_SETTLES_WITHIN_S):
                    if await self._daemon.answer(self._connection):  # refused
                        return False
        while time.monotonic() < give_up:
            try:
                state = await self._state()
            except SandboxLost:
                return False
            if state.Pid or state.ExitCode is not None:
                return True
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _LAST_POLL_S)
        return False

    def release(self) -> None:
        """Drop the connection; a running process is not touched."""
        if self._connection is not None:
            self._connection.drop()
            self._connection = None

    async def _state(self) -> _State:
        reply = await self._daemon.request("GET", f"/exec/{self._id}/json")
        if reply.status != 200:
            raise exec_refused(reply.status, reply.message)
        return reply.read(_State)

    async def container_runs(self) -> bool:
        """Whether the container is still there and running."""
        reply = await self._daemon.request("GET", f"/containers/{self._container}/json")
        return reply.status == 200 and reply.read(_Container).State.Running
