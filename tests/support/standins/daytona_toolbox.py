"""What runs inside a sandbox of the Daytona stand-in: one command per request, and terminals."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import signal
import subprocess
from typing import Any

from aiohttp import ClientConnectionResetError, WSMsgType, web

from tests.support.standins.standin_place import Place, descendants

Json = dict[str, Any]
EXIT_PROTOCOL = "X-Daytona-Pty-Exit-Control"


async def execute(place: Place, asked: Json, cut: web.Request | None) -> Json | None:
    """As Daytona's daemon: the script on the standard input of a shell that leads its own process group, both
    streams in one text, None after a timeout that killed the group; a client that has gone changes nothing."""
    process = await place.start(["/bin/sh"], asked.get("envs") or {}, stdin=True, merged=True)
    waiting = asyncio.ensure_future(process.communicate(asked["command"].encode()))
    if cut is not None:
        await asyncio.sleep(0.2)
        if cut.transport is not None:
            cut.transport.abort()
    done, _ = await asyncio.wait({waiting}, timeout=asked.get("timeout") or 360)
    if not done:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await waiting
        return None
    output, _ = waiting.result()
    code = process.returncode or 0
    return {"exitCode": code if code >= 0 else -1, "result": output.decode(errors="replace")}


class Terminal:
    """An interactive login shell on a pseudo-terminal, and at most one websocket to it."""

    def __init__(self, place: Place) -> None:
        self._ours, theirs = pty.openpty()
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(place.folder),
            "TMPDIR": str(place.temporary),
            "TERM": "xterm",
            "LANG": "C.UTF-8",
        }
        self._shell = subprocess.Popen(
            ["bash", "-i", "-l"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=place.folder,
            env=env,
            start_new_session=True,
            preexec_fn=_own_terminal,
        )
        os.close(theirs)
        os.set_blocking(self._ours, False)
        self._output: asyncio.Queue[bytes] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._ours, self._readable)

    def _readable(self) -> None:
        try:
            data = os.read(self._ours, 32768)
        except OSError:  # how a terminal says that its last user has gone
            data = b""
        if not data:
            self._loop.remove_reader(self._ours)
        self._output.put_nowait(data)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Carry bytes both ways until the shell or the client goes; the shell stays if the client goes."""
        socket = web.WebSocketResponse(protocols=(EXIT_PROTOCOL,), max_msg_size=1 << 20)
        try:
            await socket.prepare(request)
            await socket.send_str(json.dumps({"type": "control", "status": "connected"}))
            typing = asyncio.create_task(self._type(socket))
            try:
                while data := await self._output.get():
                    await socket.send_bytes(data)
                if typing.done():  # the client has gone
                    return socket
            finally:
                typing.cancel()
            code = await asyncio.to_thread(self._shell.wait)
            await socket.close(code=1000 if code == 0 else 1011, message=json.dumps({"exitCode": code}).encode())
        except ClientConnectionResetError:
            pass
        return socket

    async def _type(self, socket: web.WebSocketResponse) -> None:
        async for message in socket:
            data = message.data.encode() if message.type is WSMsgType.TEXT else message.data
            while data:
                try:
                    data = data[os.write(self._ours, data) :]
                except BlockingIOError:  # the terminal's buffer is full until somebody reads
                    await self._writable()
        self._output.put_nowait(b"")

    async def _writable(self) -> None:
        room = asyncio.Event()
        self._loop.add_writer(self._ours, room.set)
        try:
            await room.wait()
        finally:
            self._loop.remove_writer(self._ours)

    def kill(self) -> None:
        """Kill the shell and all its descendants, and hang up."""
        if self._shell.poll() is None:
            for pid in [*descendants(self._shell.pid), self._shell.pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._shell.wait()
        if self._ours >= 0:
            self._loop.remove_reader(self._ours)
            os.close(self._ours)
            self._ours = -1
        self._output.put_nowait(b"")

    def alive(self) -> int:
        return int(self._shell.poll() is None)


def _own_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
