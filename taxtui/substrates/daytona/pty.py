"""A persistent shell in a Daytona sandbox: a pseudo-terminal behind a websocket of the toolbox."""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

import aiohttp
from daytona_toolbox_api_client_async import ExecuteRequest, ProcessApi, PtyCreateRequest

from taxtui.errors import ExecFailed, SandboxLost
from taxtui.sandboxes.kit.kill import LEFT, MARK, kill_script, new_mark, require_killed
from taxtui.sandboxes.kit.shell.framed_shell import ENDED, launch_argv, quoted
from taxtui.sandboxes.kit.shell.frames import STDOUT
from taxtui.substrates.daytona.client import REQUEST_S, Clients, T, ask
from taxtui.substrates.daytona.failure import DaytonaRefused, refused, unanswered

OPEN_S: Final = 30.0
_CHUNK: Final = 16_384
_EXIT_PROTOCOL: Final = "X-Daytona-Pty-Exit-Control"


class Terminal:
    """A pseudo-terminal; a ``framed_shell.ByteStream`` of merged streams."""

    def __init__(self, clients: Clients, process: ProcessApi, base_url: str) -> None:
        self._clients = clients
        self._process = process
        self._base_url = base_url
        self._mark = new_mark()
        self._name = f"taxtui-{self._mark}"
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._rest = b""

    async def open(self, env: Mapping[str, str]) -> None:
        """Make a terminal; the shell of ``FramedShell`` replaces the interactive shell. Raises ``DaytonaRefused``."""
        request = PtyCreateRequest(id=self._name, cols=200, rows=50)
        await ask(self._process.create_pty_session, request=request)
        url = f"ws{self._base_url.removeprefix('http')}/process/pty/{quote(self._name)}/connect"
        try:
            async with asyncio.timeout(OPEN_S):
                self._socket = await self._clients.session.ws_connect(
                    url,
                    headers=self._clients.headers,
                    protocols=[_EXIT_PROTOCOL],
                    max_msg_size=0,
                    heartbeat=20.0,
                    timeout=aiohttp.ClientWSTimeout(ws_close=1.0),
                )
                await self._take_over(env)
        except aiohttp.WSServerHandshakeError as error:
            raise refused(error.status, error.headers or {}, "") from error
        except (aiohttp.ClientError, OSError, SandboxLost) as error:
            raise unanswered(error) from error

    async def _take_over(self, env: Mapping[str, str]) -> None:
        """Type plain characters only: an interactive shell interprets ``!`` and tabs."""
        first_half, second_half = secrets.token_hex(8), secrets.token_hex(8)
        exports = "".join(f"export {name}={quoted(value)}\n" for name, value in {**env, MARK: self._mark}.items())
        argv = " ".join(map(quoted, launch_argv()))
        # dd, because bash reads a terminal byte by byte; the end of this shell, the leader, hangs up on dd too.
        shell = f"dd bs=65536 2>/dev/null | {{ {argv}; kill -9 $$; }}"
        program = f"stty raw -echo\n{exports}printf '%s%s' {first_half} {second_half}\n{shell}\n"
        typed = base64.b64encode(program.encode()).decode()
        for at in range(0, len(typed), 1000):  # a terminal takes no line of more than 4095 characters
            await self.write(f"_t=${{_t}}{typed[at : at + 1000]}\n".encode())
        await self.write(b'exec sh -c "$(echo $_t | base64 -d)"\n')
        marker, seen = (first_half + second_half).encode(), b""
        while marker not in seen:
            channel, chunk = await self.read()
            if channel == ENDED:
                raise SandboxLost("the terminal closed during the start of the shell")
            seen = seen[-len(marker) :] + chunk
        self._rest = seen.partition(marker)[2]

    async def read(self) -> tuple[int, bytes]:
        assert self._socket is not None
        if self._rest:
            rest, self._rest = self._rest, b""
            return STDOUT, rest
        while True:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.BINARY:
                return STDOUT, message.data
            if message.type is not aiohttp.WSMsgType.TEXT:  # text is control: connected, exited
                return ENDED, b""

    async def write(self, data: bytes) -> None:
        assert self._socket is not None
        try:
            for at in range(0, len(data), _CHUNK):
                await self._socket.send_bytes(data[at : at + _CHUNK])
        except (aiohttp.ClientError, OSError) as error:
            raise SandboxLost("the connection to the terminal broke") from error

    async def close(self) -> None:
        """As ``ByteStream.close``: the toolbox kills the terminal's processes, taxtui all other marked processes."""
        killing = ExecuteRequest(command=kill_script(self._mark), timeout=round(REQUEST_S))
        try:
            await _unless_gone(self._process.delete_pty_session, session_id=self._name)
            killed = await _unless_gone(self._process.execute_command, request=killing)
            if killed is not None:
                require_killed(killed.exit_code or 0, killed.result or "")
        finally:
            if self._socket is not None:
                await self._socket.close()


async def _unless_gone(method: Callable[..., Awaitable[T]], **named: Any) -> T | None:
    """The answer, or None if the terminal or the sandbox is gone. Raises ``ExecFailed``."""
    try:
        return await ask(method, **named)
    except DaytonaRefused as error:
        if error.status in (404, 410):
            return None
        raise ExecFailed(f"{LEFT}: {error}") from error
