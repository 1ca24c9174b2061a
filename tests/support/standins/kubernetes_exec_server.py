"""The exec websocket of the Kubernetes stand-in: v5 and v4 channels around a real local process.

As on a real cluster a process outlives its connection, and a failure to start one comes on the status channel.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from asyncio import StreamReader
from asyncio.subprocess import Process
from collections.abc import Mapping
from typing import Any

from aiohttp import ClientConnectionResetError, WSMsgType, web

from tests.support.standins.standin_place import Place

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, STATUS, CLOSE = 0, 1, 2, 3, 255
CHUNK = 32768


async def serve(
    request: web.Request, place: Place, env: Mapping[str, str], *, cut: bool, protocols: tuple[str, ...] = PROTOCOLS
) -> web.StreamResponse:
    """Run the command that the request asks for. ``cut``: break the connection after the first output."""
    socket = web.WebSocketResponse(protocols=protocols, max_msg_size=0)
    try:
        await socket.prepare(request)
    except ClientConnectionResetError:  # cancelled within the handshake
        return socket
    if socket.ws_protocol is None:
        await socket.close()
        return socket
    try:
        wants_stdin = request.query.get("stdin") == "true"
        process = await place.start(request.query.getall("command"), env, stdin=wants_stdin)
    except OSError as error:
        text = f"OCI runtime exec failed: exec failed: unable to start container process: {error}"
        return await _finish(socket, {"status": "Failure", "reason": "InternalError", "message": text, "code": 500})
    assert process.stdout is not None
    assert process.stderr is not None
    feeding = asyncio.create_task(_feed(socket, process))
    try:
        out = _pump(socket, process.stdout, STDOUT, request if cut else None)
        await asyncio.gather(out, _pump(socket, process.stderr, STDERR, None))
        code = await process.wait()
    except ClientConnectionResetError:  # the client has gone; the process stays
        return socket
    finally:
        feeding.cancel()
    return await _finish(socket, exit_status(code))


def exit_status(code: int) -> dict[str, Any]:
    """The Status object for an exit code as Python has it: negative for a signal."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    shown = code if code > 0 else 128 - code
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {shown}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(shown)}]},
    }


async def _pump(socket: web.WebSocketResponse, stream: StreamReader, channel: int, cut: web.Request | None) -> None:
    while chunk := await stream.read(CHUNK):
        await socket.send_bytes(bytes([channel]) + chunk)
        if cut is not None and cut.transport is not None:
            cut.transport.abort()


async def _feed(socket: web.WebSocketResponse, process: Process) -> None:
    async for message in socket:
        data = message.data.encode() if message.type is WSMsgType.TEXT else message.data
        if process.stdin is None:
            continue
        if data[0] == STDIN:
            with contextlib.suppress(ConnectionError):
                process.stdin.write(data[1:])
                await process.stdin.drain()
        elif data[0] == CLOSE and socket.ws_protocol == PROTOCOLS[0] and data[1] == STDIN:
            process.stdin.close()


async def _finish(socket: web.WebSocketResponse, status: dict[str, Any]) -> web.StreamResponse:
    with contextlib.suppress(ClientConnectionResetError):
        await socket.send_bytes(bytes([STATUS]) + json.dumps(status).encode())
    await socket.close()
    return socket
