"""Programs in a pod, a websocket each (``v5.channel.k8s.io``, or v4 from older servers).

The first byte of a message is the channel: 0 stdin, 1 stdout, 2 stderr, 3 the status with the exit code. A process
continues after the end of the socket; a second exec has to kill all processes of the program.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Mapping
from typing import Final, TypeVar

import aiohttp
import msgspec

from taxtui.errors import ExecFailed
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.cancellation import kill_then_timeout, undo_if_cancelled, with_cleanup
from taxtui.sandboxes.kit.kept_output import exec_result
from taxtui.sandboxes.kit.kill import LEFT, kill_script, kill_until_done, require_killed
from taxtui.sandboxes.kit.shell.captured_command import CapturedProgram, captured, wrap_command, wrap_program
from taxtui.sandboxes.kit.shell.framed_shell import ENDED, launch_argv
from taxtui.sandboxes.kit.shell.frames import STDERR, STDOUT
from taxtui.sandboxes.protocol import ExecResult
from taxtui.substrates.kubernetes.api import CLOSING_S, ClusterApi
from taxtui.substrates.kubernetes.failure import ApiRefused, Problem
from taxtui.substrates.kubernetes.pod import CONTAINER

STATUS: Final = 3
STATUS_S: Final = 0.25
"""Time limit for the exit status after a command's end marker."""
KILL_S: Final = 10.0
"""Time limit of a kill. Kills are repeated, because the process may be starting."""
KILLED_S: Final = 0.3
"""Wait for the end of killed processes before the next kill."""

_BROKEN: Final = "the connection broke before the command's exit code came"
_CHUNK: Final = 32768
_PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")


class RemoteProcess:
    """A program in the pod; a ``framed_shell.ByteStream``."""

    def __init__(self, starter: PodExec, socket: aiohttp.ClientWebSocketResponse, program: CapturedProgram) -> None:
        """Use a socket after the handshake."""
        self.status: Problem | None = None
        self._starter = starter
        self._socket = socket
        self._program = program

    async def read(self) -> tuple[int, bytes]:
        """As ``ByteStream.read``; ``status`` is set at the end if the server reported the exit."""
        while True:
            try:
                message = await self._socket.receive(CLOSING_S if self.status else None)
            except TimeoutError:  # the status is the last message, although the server has not closed
                await self.drop()
                return ENDED, b""
            if message.type not in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT):
                return ENDED, b""
            data = message.data if message.type is aiohttp.WSMsgType.BINARY else message.data.encode()
            channel, chunk = (data[0], data[1:]) if data else (STDOUT, b"")
            if channel == STATUS:
                with contextlib.suppress(msgspec.DecodeError):  # then as after a broken connection
                    self.status = msgspec.json.decode(chunk, type=Problem)
            elif chunk and channel in (STDOUT, STDERR):
                return channel, chunk

    async def output(self) -> ExecResult:
        """Send the input, and read until the exit status and any end marker on both streams.

        A background process with the streams open also delays the status: then the marker's code counts. Raises
        ``ExecFailed`` without an exit code.
        """
        feeding = asyncio.ensure_future(self.write(self._program.stdin))
        try:
            out, err = await captured(self, self._program.marker)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STATUS_S):
                    await self._end()
        finally:
            feeding.cancel()  # a command may end before reading all input
            await asyncio.wait({feeding})
        code = self.status.exit_code() if self.status is not None else out.exit_code
        if code is None:
            raise ExecFailed(_BROKEN)
        return exec_result(code, out.output(), err.output(), out.wrapper_ended_ns)

    async def write(self, data: bytes) -> None:
        """As ``ByteStream.write``, but ``ExecFailed`` for a broken connection: the pod may live."""
        try:
            for at in range(0, len(data), _CHUNK):
                await self._socket.send_bytes(b"\0" + data[at : at + _CHUNK])
        except (aiohttp.ClientError, OSError) as error:
            raise ExecFailed(_BROKEN) from error

    async def close(self) -> None:
        """As ``ByteStream.close``: kill all processes of a running program, and close the connection.

        Raises ``ExecFailed`` if the kill failed.
        """
        ended = asyncio.ensure_future(self._end())
        try:
            if self.status is None:
                await kill_until_done(self._kill, ended, within_s=KILL_S, again_s=KILLED_S)
        finally:
            ended.cancel()
            await self.drop()

    async def drop(self) -> None:
        """Close the connection; a running process continues."""
        await self._socket.close()

    async def _end(self) -> None:
        while (await self.read())[0] != ENDED:
            pass

    async def _kill(self) -> None:
        try:
            await self._starter.kill(self._program.mark)
        except ApiRefused as error:
            if error.status == 404:  # the pod is gone
                await self.drop()
            elif not error.in_doubt:
                raise ExecFailed(f"{LEFT}: {error}") from error


class RemoteShell(RemoteProcess):
    """A persistent shell in the pod, which ends with the wrapper's end marker, in spite of held streams."""

    _tail = b""

    async def read(self) -> tuple[int, bytes]:
        """As ``ByteStream.read``; ``ExecFailed`` if the connection ended before the shell."""
        channel, chunk = await super().read()
        self._tail = self._tail[-len(self._program.marker) :] + chunk
        if self._program.marker in self._tail:
            return ENDED, b""
        if channel == ENDED and self.status is None:
            raise ExecFailed(_BROKEN)
        return channel, chunk


Kind = TypeVar("Kind", bound=RemoteProcess)


class PodExec:
    """Starts programs in one pod."""

    def __init__(
        self,
        api: ClusterApi,
        namespace: str,
        pod: str,
        shell: str,
        container: str = CONTAINER,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """``env``: variables missing in the container; the program ``env`` sets them for each program."""
        self._api = api
        self._namespace, self._pod = namespace, pod
        self._shell = shell
        self._container = container
        self._env = ["env", *(f"{name}={value}" for name, value in env.items())] if env else []
        self._open: weakref.WeakSet[RemoteProcess] = weakref.WeakSet()
        self._closing: list[asyncio.Task[None]] = []

    def hang_up(self) -> None:
        """End every connection: connections to a dead node would stay open until the command's timeout."""
        loop = asyncio.get_running_loop()
        self._closing = [loop.create_task(process.drop()) for process in self._open]

    async def start(self, kind: type[Kind], program: CapturedProgram, *, stdin: bool) -> Kind:
        """Start a program. Raises ``ApiRefused``."""
        streams = {"stdin": stdin, "stdout": True, "stderr": True, "tty": False}
        query = {"container": self._container, **streams, "command": [*self._env, *program.argv]}
        process = kind(self, await self._api.connect(self._namespace, self._pod, query, _PROTOCOLS), program)
        self._open.add(process)
        return process

    async def run(self, command: Command) -> ExecResult:
        """Run one command to its end.

        Raises:
            Refused: the command was not started.
            ExecTimeout: the command was killed.
            ExecFailed: the connection broke, or the container runtime failed; started processes are killed.
        """
        program = wrap_command(command, self._shell)
        starting = asyncio.ensure_future(self.start(RemoteProcess, program, stdin=bool(program.stdin)))
        try:
            async with asyncio.timeout(command.timeout_s):
                # Shielded: an abandoned handshake could leave an unknown process.
                process = await asyncio.shield(starting)
                result = await process.output()
                await process.drop()
                return result
        except TimeoutError:
            raise await kill_then_timeout(_end(starting), command.timeout_s) from None
        except (asyncio.CancelledError, ExecFailed) as error:
            await with_cleanup(_end(starting), error)
            raise

    async def shell(self) -> RemoteShell:
        """Start the shell program of ``FramedShell``. Raises ``ApiRefused``."""
        program = wrap_program(launch_argv())
        return await undo_if_cancelled(self.start(RemoteShell, program, stdin=True), RemoteShell.close)

    async def kill(self, mark: str) -> None:
        """Kill the processes with a mark. Raises ``ApiRefused``, ``ExecFailed``."""
        program = CapturedProgram(["sh", "-c", kill_script(mark)], b"", b"", "")
        process = await self.start(RemoteProcess, program, stdin=False)
        try:
            killed = await process.output()
        finally:
            await process.drop()
        require_killed(killed.exit_code, killed.stderr)


async def _end(starting: asyncio.Future[RemoteProcess]) -> None:
    """Kill the processes of a program if the program has started."""
    try:
        async with asyncio.timeout(KILL_S):
            process = await starting
    except ApiRefused:
        return
    except TimeoutError as error:
        raise ExecFailed(f"{LEFT}: no answer to the start") from error
    await process.close()
