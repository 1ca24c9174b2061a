"""Between a docker client and the real daemon: passes everything on, and on request makes nonsense of one answer.

Each connection upstream carries one request, so that an answer ends where its connection does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Final

DAEMON: Final = "/var/run/docker.sock"
_CHUNK: Final = 1 << 16
_HEAD_END: Final = b"\r\n\r\n"
_SHAPES: Final = ("", "[]", "{}", "3", "null", '{"Id": 3}', '{"Id": "../../x"}', '[{"Names": []}]', "[[]]")
_PARTS: Final = {
    ("POST", "create"): "create",
    ("POST", "start"): "start",
    ("POST", "exec"): "exec",
    ("GET", "json"): "look",
    ("DELETE", ""): "remove",
}

Talk = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Manner = Callable[["Liar", bytes, Talk], Awaitable[None]]


def part(method: str, path: str) -> str:
    """Which of its answers a request asks for: create, start, exec, run, state, look, remove, list, or another."""
    words = path.partition("?")[0].strip("/").split("/")
    if words and words[0].startswith("v1."):
        words = words[1:]
    if words[:1] == ["exec"]:
        return "run" if words[-1] == "start" else "state"
    if words == ["containers", "json"]:
        return "list"
    if words[:1] != ["containers"]:
        return "other"
    last = words[-1] if len(words) > 2 or words[-1] == "create" else ""
    return _PARTS.get((method, last), "other")


class Liar:
    """The proxy, listening on ``path``. What goes wrong next is in ``about`` and ``manner``, ``times`` times."""

    def __init__(self, path: Path, source: Random) -> None:
        self.path = path
        self.source = source
        self.about = ""
        self.manner = ""
        self.times = self.skip = self.struck = 0
        self._talks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        server = await asyncio.start_unix_server(self._accept, self.path)
        try:
            yield
        finally:
            server.close()
            for talk in list(self._talks):
                talk.cancel()
            await asyncio.gather(*self._talks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._talk((reader, writer))
        finally:
            self._talks.discard(task)
            writer.transport.abort()

    async def _talk(self, client: Talk) -> None:
        head = await client[0].readuntil(_HEAD_END)
        lines = head.decode("latin-1").split("\r\n")
        method, path = lines[0].split()[:2]
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        body = await client[0].readexactly(int(fields.get("content-length", "0")))
        kept = [line for line in lines if not line.lower().startswith("connection:")]
        takes_over = "upgrade" in fields
        kept.insert(1, f"Connection: {'Upgrade' if takes_over else 'close'}")
        request = "\r\n".join(kept).encode("latin-1") + body
        if part(method, path) == self.about and self.times > 0:
            if self.skip <= 0:
                self.times -= 1
                self.struck += 1
                await MANNERS[self.manner](self, request, client)
                return
            self.skip -= 1
        async with _daemon(request) as upstream:
            await _both_ways(client, upstream)


@contextlib.asynccontextmanager
async def _daemon(request: bytes) -> AsyncIterator[Talk]:
    reader, writer = await asyncio.open_unix_connection(DAEMON)
    try:
        writer.write(request)
        await writer.drain()
        yield reader, writer
    finally:
        writer.transport.abort()


async def _both_ways(client: Talk, upstream: Talk) -> None:
    up = asyncio.ensure_future(_pass_on(client[0], upstream[1]))
    try:
        await _pass_on(upstream[0], client[1])
    finally:
        up.cancel()
        await asyncio.gather(up, return_exceptions=True)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()


async def _answer(client: Talk, text: str, status: str) -> None:
    await _say(client, f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())


async def _say(client: Talk, data: bytes) -> None:
    client[1].write(data)
    await client[1].drain()
    client[1].close()
    await client[1].wait_closed()


def _refused(status: str) -> Manner:
    async def act(liar: Liar, request: bytes, client: Talk) -> None:
        await _answer(client, json.dumps({"message": f"no {liar.source.random()}"}), status)

    return act


async def _other_shape(liar: Liar, request: bytes, client: Talk) -> None:
    await _answer(client, liar.source.choice(_SHAPES), liar.source.choice(("200 OK", "201 Created")))


async def _silent(liar: Liar, request: bytes, client: Talk) -> None:
    """Until whoever asked gives up."""
    while await client[0].read(_CHUNK):
        pass


async def _before(liar: Liar, request: bytes, client: Talk) -> None:
    """The connection breaks before the daemon has heard the request."""


async def _whole(request: bytes) -> bytes:
    async with _daemon(request) as upstream:
        return await asyncio.wait_for(upstream[0].read(), 60)


async def _after(liar: Liar, request: bytes, client: Talk) -> None:
    """The connection breaks after the daemon has done what it was asked."""
    await _whole(request)


async def _cut(liar: Liar, request: bytes, client: Talk) -> None:
    """The answer ends early."""
    whole = await _whole(request)
    await _say(client, whole[: liar.source.randrange(1, len(whole))])


async def _silent_after(liar: Liar, request: bytes, client: Talk) -> None:
    await _whole(request)
    await _silent(liar, request, client)


MANNERS: Final[dict[str, Manner]] = {
    "500": _refused("500 Internal Server Error"),
    "404": _refused("404 Not Found"),
    "another shape": _other_shape,
    "silent": _silent,
    "silent after": _silent_after,
    "broken before": _before,
    "broken after": _after,
    "cut": _cut,
}
KINDS: Final = [
    f"{about}: {manner}" for about in ("create", "start", "exec", "run", "state", "remove") for manner in MANNERS
]
"""Of nonsense between the daemon and taxtui; test_docker_nonsense has the shapes of single answers."""
