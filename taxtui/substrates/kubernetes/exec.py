"""Programs in a pod, a websocket each (``v5.channel.k8s.io``, or v4 from older servers).

The first byte of a message is the channel: 0 stdin, 1 stdout, 2 stderr, 3 the status with the exit code. A process
continues after the end of the socket; a second exec has to kill all processes of the program.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Mapping
from typing import Final

import aiohttp
import msgspec

from taxtui.errors import ExecFailed
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.cancellation import kill_then_timeout, undo_if_cancelled, with_cleanup
from taxtui.sandboxes.kit.kept_output import exec_result
from taxtui.sandboxes.kit.kill import kill_script, require_killed
from taxtui.sandboxes.kit.shell.captured_command import CapturedProgram, captured, wrap_command, wrap_program
from taxtui.sandboxes.kit.shell.framed_shell import ENDED, launch_argv
from taxtui.sandboxes.kit.shell.frames import STDERR, STDOUT
from taxtui.sandboxes.protocol import ExecResult
from taxtui.substrates.kubernetes.api import ClusterApi, declined
from taxtui.substrates.kubernetes.failure import ApiRefused, ApiStatus, refused, unanswered

STATUS: Final = 3
HANDSHAKE_S: Final = 30.0
CLOSING_S: Final = 1.0
STATUS_S: Final = 0.25
"""Time limit for the exit status after a command's end marker."""
_LEFT: Final = "a command's processes may still run in the pod"
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
        self.status: ApiStatus | None = None
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
            if len(data) <= 1:
                continue
            channel, chunk = data[0], data[1:]
            if channel in (STDOUT, STDERR):
                return channel, chunk
            if channel == STATUS:
                with contextlib.suppress(msgspec.DecodeError):  # then as after a broken connection
                    self.status = msgspec.json.decode(chunk, type=ApiStatus)

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
                    while (await self.read())[0] != ENDED:
                        pass
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
        try:
            if self.status is None:
                async with asyncio.timeout(KILL_S):
                    await self._kill()
        except ApiRefused as error:
            if error.status != 404:  # the pod is gone
                raise ExecFailed(f"{_LEFT}: {error}") from error
        except TimeoutError as error:
            raise ExecFailed(f"{_LEFT}: no answer") from error
        finally:
            await self.drop()

    async def drop(self) -> None:
        """Close the connection; a running process continues."""
        await self._socket.close()

    async def _kill(self) -> None:
        ended = False
        while not ended:
            try:
                await self._starter.kill(self._program.mark)
            except ApiRefused as error:
                if not error.in_doubt:
                    raise
                await asyncio.sleep(KILLED_S)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(KILLED_S):
                    while not ended:
                        ended = (await self.read())[0] == ENDED


class ShellStream:
    """A persistent shell's ``framed_shell.ByteStream``, which ends with the shell, in spite of held streams."""

    def __init__(self, process: RemoteProcess, marker: bytes) -> None:
        """``marker``: the wrapper's output after the end of the shell."""
        self._process = process
        self._marker = marker
        self._tail = b""
        self.write = process.write
        self.close = process.close

    async def read(self) -> tuple[int, bytes]:
        """As ``ByteStream.read``; ``ExecFailed`` if the connection ended before the shell."""
        channel, chunk = await self._process.read()
        self._tail = self._tail[-len(self._marker) :] + chunk
        if self._marker in self._tail:
            return ENDED, b""
        if channel == ENDED and self._process.status is None:
            raise ExecFailed(_BROKEN)
        return channel, chunk


class PodExec:
    """Starts programs in one pod, named by ``pod``."""

    pod: str = ""

    def __init__(self, api: ClusterApi, shell: str, container: str, env: Mapping[str, str]) -> None:
        """Share the connection pool of the client after the client's first request.

        ``env``: variables missing in the container; the program ``env`` sets them for each program.
        """
        self._api = api
        self._shell = shell
        self._container = container
        self._env = ["env", *(f"{name}={value}" for name, value in env.items())] if env else []
        self._open: weakref.WeakSet[RemoteProcess] = weakref.WeakSet()
        self._closing: list[asyncio.Task[None]] = []

    def hang_up(self) -> None:
        """End every connection: connections to a dead node would stay open until the command's timeout."""
        loop = asyncio.get_running_loop()
        self._closing = [loop.create_task(process.drop()) for process in self._open]

    async def start(self, program: CapturedProgram, *, stdin: bool) -> RemoteProcess:
        """Start a program. Raises ``ApiRefused``."""
        streams = [("stdin", stdin), ("stdout", True), ("stderr", True), ("tty", False)]
        client, access = self._api.client, self._api.access
        _, url, headers, _, _ = await client.param_serialize(
            "GET",
            f"{self._api.path('/api/v1', 'pods', self.pod)}/exec",
            query_params=[("container", self._container), *streams, ("command", [*self._env, *program.argv])],
            auth_settings=["BearerToken"],
            collection_formats={"command": "multi"},
        )
        settings, session = client.configuration, client.rest_client.pool_manager
        assert session is not None  # made by the first request
        body = bytearray()
        token = declined.set(body)
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                socket = await session.ws_connect(
                    "ws" + url.removeprefix("http"),
                    protocols=_PROTOCOLS,
                    headers=headers,
                    max_msg_size=0,
                    proxy=settings.proxy,
                    proxy_headers=settings.proxy_headers,
                    server_hostname=settings.tls_server_name,
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSING_S),
                )
        except aiohttp.WSServerHandshakeError as error:
            raise access.judge("exec", refused(error.status, error.headers or {}, bytes(body))) from error
        except (aiohttp.ClientError, OSError) as error:
            raise access.judge("exec", unanswered(error)) from error
        finally:
            declined.reset(token)
        access.granted("exec")
        process = RemoteProcess(self, socket, program)
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
        starting = asyncio.ensure_future(self.start(program, stdin=bool(program.stdin)))
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

    async def shell(self) -> ShellStream:
        """Start the shell program of ``FramedShell``. Raises ``ApiRefused``."""
        program = wrap_program(launch_argv())
        process = await undo_if_cancelled(self.start(program, stdin=True), RemoteProcess.close)
        return ShellStream(process, program.marker)

    async def kill(self, mark: str) -> None:
        """Kill the processes with a mark. Raises ``ApiRefused``, ``ExecFailed``."""
        program = CapturedProgram(["sh", "-c", kill_script(mark)], b"", b"", "")
        process = await self.start(program, stdin=False)
        try:
            killed = await process.output()
        finally:
            await process.drop()
        require_killed(killed.exit_code, killed.stderr, left=_LEFT)


async def _end(starting: asyncio.Future[RemoteProcess]) -> None:
    """Kill the processes of a program if the program has started."""
    try:
        async with asyncio.timeout(KILL_S):
            process = await starting
    except ApiRefused:
        return
    except TimeoutError as error:
        raise ExecFailed(f"{_LEFT}: no answer to the start") from error
    await process.close()
