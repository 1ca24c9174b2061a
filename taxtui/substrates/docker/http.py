"""The client for the Engine API: asyncio and plain HTTP over Unix sockets and TCP.

Docker's SDK adds 2.5 ms to each exec of three requests and blocks a thread meanwhile. Kept-alive connections are
reused; a started exec takes over a connection.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from taxtui.errors import ExecFailed, SandboxLost
from taxtui.sandboxes.kit.shell.framed_shell import ENDED
from taxtui.sandboxes.kit.shell.frames import STDERR, STDOUT
from taxtui.substrates.docker.failure import garbled, reason, unanswered, unreached, unusable

_BUFFER: Final = 1 << 20
_CONNECT_TIMEOUT_S: Final = 10.0
_REPLY_TIMEOUT_S: Final = 60.0
_BODY_MAX_BYTES: Final = 16 << 20
_RAW_MAX_BYTES: Final = 1 << 30
_OK: Final = 200
_MESSAGE_MAX: Final = 500  # characters
_API_VERSION: Final = re.compile(r"\d{1,3}\.\d{1,3}")
_CUT_SHORT: Final = "the docker daemon's stream was cut: a command's output is incomplete"
_STREAMS: Final = {0: STDOUT, 1: STDOUT, 2: STDERR, 3: STDERR}  # 3: messages of the daemon itself

_T = TypeVar("_T")


class Address(NamedTuple):
    """The address of a daemon: ``path`` of a socket, or ``host`` and ``port``."""

    path: str = ""
    host: str = ""
    port: int = 0


class Connection(NamedTuple):
    """Both directions of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def drop(self) -> None:
        self.writer.transport.abort()


class Reply(NamedTuple):
    """Status and decoded JSON body; a daemon's error is ``{"message": …}``."""

    status: int
    body: Any

    @property
    def message(self) -> str:
        text = self.body.get("message", "") if isinstance(self.body, dict) else ""
        return " ".join(str(text)[:_MESSAGE_MAX].split()) or f"HTTP {self.status}"

    def read(self, kind: type[_T]) -> _T:
        """The decoded body. Raises ``ExecFailed``."""
        try:
            return msgspec.convert(self.body, kind)
        except msgspec.ValidationError as error:
            raise garbled(str(error)) from error


class Created(msgspec.Struct):
    """The answer to a create of a container, an exec or an image."""

    Id: str


class Daemon:
    """A client for one daemon. Raises ``ExecFailed`` without an answer."""

    def __init__(self, address: Address) -> None:
        self.api_version = ""
        self.address = address
        host = f"[{address.host}]" if ":" in address.host else address.host
        self._host = "docker" if address.path else f"{host}:{address.port}"
        self._idle: list[Connection] = []

    async def negotiate(self) -> None:
        """Ask for the daemon's version of the Engine API, such as 1.47; later requests name it.

        Until then a request means the daemon's latest version.
        """
        reply = await self.request("GET", "/version")
        version = str(reply.body.get("ApiVersion")) if isinstance(reply.body, dict) else ""
        if reply.status != _OK:
            raise unanswered(OSError(reply.message))
        if not _API_VERSION.fullmatch(version):
            raise garbled("no version")
        self.api_version = version

    async def request(
        self, method: str, path: str, body: Any = None, *, raw: bool = False, timeout_s: float = _REPLY_TIMEOUT_S
    ) -> Reply:
        """A request on a kept-alive connection, or on a new connection if the daemon had closed the old.

        ``body``: JSON, or bytes of a tar archive. ``raw``: the body of a success is bytes, not JSON.
        """
        while True:
            reused = bool(self._idle)
            connection = self._idle.pop() if reused else await self.connect()
            try:
                async with asyncio.timeout(timeout_s):
                    connection.writer.write(self._request(method, path, body))
                    status, headers = await _head(connection.reader)
                    reply = Reply(status, await _body(connection.reader, headers, raw=raw and status == _OK))
            except (OSError, asyncio.IncompleteReadError) as error:
                connection.drop()
                if reused and not isinstance(error, TimeoutError):
                    continue
                raise unanswered(error) from error
            except _NO_HTTP as error:
                connection.drop()
                raise garbled("not HTTP") from error
            except BaseException:
                connection.drop()
                raise
            self._idle.append(connection)
            return reply

    async def ask(self, method: str, path: str, body: Any = None, **options: Any) -> Reply:
        """As ``request``, for requests without a container. Raises ``SubstrateUnavailable``."""
        try:
            return await self.request(method, path, body, **options)
        except ExecFailed as error:
            raise unusable(error) from error

    async def hijack(self, connection: Connection, path: str, body: Any) -> Reply | None:
        """A POST to turn a new ``connection`` into a raw stream; a :class:`Reply` if the daemon refused.

        The caller drops the connection. Until then ``answer`` returns the answer to a cancelled request.
        """
        connection.writer.write(self._request("POST", path, body, upgrade=True))
        return await self.answer(connection)

    async def answer(self, connection: Connection) -> Reply | None:
        """The answer to ``hijack``, also after a cancellation."""
        try:
            async with asyncio.timeout(_REPLY_TIMEOUT_S):
                status, headers = await _head(connection.reader)
                if status in (101, _OK):
                    return None
                return Reply(status, await _body(connection.reader, headers))
        except (OSError, asyncio.IncompleteReadError) as error:
            raise unanswered(error) from error
        except _NO_HTTP as error:
            raise garbled("not HTTP") from error

    def _request(self, method: str, path: str, body: Any, *, upgrade: bool = False) -> bytes:
        tar, prefix = isinstance(body, bytes), f"/v{self.api_version}" if self.api_version else ""
        data = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        extra = "Connection: Upgrade\r\nUpgrade: tcp\r\n" if upgrade else ""
        target = f"{method} {prefix}{path} HTTP/1.1\r\nHost: {self._host}\r\n"
        kind = "x-tar" if tar else "json"
        return f"{target}{extra}Content-Type: application/{kind}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data

    async def close(self) -> None:
        """Close idle connections."""
        while self._idle:
            self._idle.pop().drop()
        await asyncio.sleep(0)  # a transport closes the socket in the loop's next turn

    async def connect(self) -> Connection:
        """A new connection."""
        address = self.address
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                if address.path:
                    return Connection(*await asyncio.open_unix_connection(address.path, limit=_BUFFER))
                return Connection(*await asyncio.open_connection(address.host, address.port, limit=_BUFFER))
        except OSError as error:
            raise unreached(error) from error


class Multiplexed:
    """The stdout and stderr on a taken-over connection, interleaved by the daemon."""

    def __init__(self, connection: Connection) -> None:
        self._reader, self._writer = connection
        self._channel = STDOUT
        self._rest_bytes = 0

    async def read(self) -> tuple[int, bytes]:
        """As ``ByteStream.read``; the position in the stream survives a cancelled read.

        Raises:
            ExecFailed: the stream ended within a piece, or is not the daemon's: the output is incomplete.
        """
        try:
            while not self._rest_bytes:
                header = await self._reader.readexactly(8)
                if header[0] not in _STREAMS or any(header[1:4]):
                    raise garbled("an invalid stream frame")
                self._channel = _STREAMS[header[0]]
                self._rest_bytes = int.from_bytes(header[4:], "big")
            chunk = await self._reader.read(self._rest_bytes)
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise ExecFailed(_CUT_SHORT) from error
            return ENDED, b""
        except OSError:
            return ENDED, b""
        if not chunk:
            raise ExecFailed(_CUT_SHORT)
        self._rest_bytes -= len(chunk)
        return self._channel, chunk

    async def write(self, data: bytes) -> None:
        """Send to standard input. Raises ``SandboxLost``."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise SandboxLost(f"the connection to the container is gone: {reason(error)}") from error

    def send_all(self, data: bytes) -> None:
        """Send all of standard input and the end, in the background."""
        self._writer.write(data)
        self._writer.write_eof()


_NO_HTTP: Final = (asyncio.LimitOverrunError, IndexError, ValueError)


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return int(lines[0].split()[1]), headers


async def _body(reader: asyncio.StreamReader, headers: dict[str, str], *, raw: bool = False) -> Any:
    limit = _RAW_MAX_BYTES if raw else _BODY_MAX_BYTES
    data = bytearray()
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int(await reader.readuntil(b"\r\n"), 16):
            data += await reader.readexactly(_bounded(size, limit - len(data)))
            await reader.readexactly(2)
        await reader.readexactly(2)
    else:
        data += await reader.readexactly(_bounded(int(headers.get("content-length", "0")), limit))
    if raw:
        return bytes(data)
    try:
        return msgspec.json.decode(data) if data else None
    except msgspec.DecodeError:
        return {"message": data.decode(errors="replace")}


def _bounded(size: int, limit: int) -> int:
    if not 0 <= size <= limit:
        raise ValueError
    return size
