"""Programs over one SSH connection: a channel each, with separate streams."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections import deque
from collections.abc import Mapping, Sequence
from signal import Signals
from typing import Any, Final

import asyncssh

from taxtui.errors import SandboxLost
from taxtui.sandboxes.kit.framed_shell import ENDED
from taxtui.sandboxes.kit.frames import STDERR, STDOUT
from taxtui.substrates.aws.ec2.failure import no_channel
from taxtui.substrates.aws.ec2.instance import USER, KeyPair

LOGIN_TIMEOUT_S: Final = 10.0
KEEP_ALIVE_S: Final = 15
KEEP_ALIVES_LOST: Final = 3
BUFFERED_BYTES: Final = 8 * 2**20

CONNECTION_ERRORS: Final = (OSError, asyncssh.Error)
"""Everything that asyncssh raises for a network or a peer that does not do as it should."""


def new_key() -> tuple[asyncssh.SSHKey, KeyPair]:
    """A fresh Ed25519 key, as an object and as text."""
    key = asyncssh.generate_private_key("ssh-ed25519", comment="taxtui")
    return key, KeyPair(key.export_private_key().decode(), key.export_public_key().decode().strip())


async def connect(
    address: str, port: int, user: str, client_key: asyncssh.SSHKey, host_key: asyncssh.SSHKey
) -> asyncssh.SSHClientConnection:
    """Log in to the one host that holds ``host_key``. Raises :data:`CONNECTION_ERRORS`, or ``TimeoutError``."""
    # asyncssh's own limit is a wait_for, which before Python 3.12 may swallow a cancellation: the next one is ours.
    async with asyncio.timeout(LOGIN_TIMEOUT_S):
        return await asyncssh.connect(
            address,
            port,
            username=user or USER,
            client_keys=[client_key],
            known_hosts=([host_key.convert_to_public()], [], []),
            server_host_key_algs=["ssh-ed25519"],
            config=None,
            agent_path=None,
            preferred_auth=["publickey"],
            compression_algs=None,
            login_timeout=LOGIN_TIMEOUT_S,
            keepalive_interval=KEEP_ALIVE_S,
            keepalive_count_max=KEEP_ALIVES_LOST,
        )


def remote_command(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """A line for the user's login shell that runs ``argv`` in the home directory."""
    variables = [f"{key}={value}" for key, value in env.items()]
    return f"cd && exec env {shlex.join([*variables, *argv])}"


class Program(asyncssh.SSHClientSession[bytes]):
    """One program. Reads and writes as a ``shell.ByteStream``; closing it kills nothing."""

    def __init__(self, drain_s: float) -> None:
        """``drain_s``: how long output may follow the exit, where a descendant holds the streams."""
        self.exit_code: int | None = None
        self._drain_s = drain_s
        self._chunks: deque[tuple[int, bytes]] = deque()
        self._buffered = 0
        self._changed = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._over = False
        self._lost: Exception | None = None
        self._channel: Any = None

    async def start(self, connection: asyncssh.SSHClientConnection, command: str) -> None:
        """Start it. Raises ``SandboxLost`` when the connection is gone, ``ExecFailed`` when sshd refuses."""
        try:
            await connection.create_session(lambda: self, command, encoding=None)
        except asyncssh.ChannelOpenError as error:
            raise no_channel(error.code, error.reason) from error
        except CONNECTION_ERRORS as error:
            raise SandboxLost(f"the SSH connection is gone: {error}") from error

    # -- called by asyncssh

    def connection_made(self, chan: Any) -> None:
        """The channel is open; the program starts next."""
        self._channel = chan

    def exit_status_received(self, status: int) -> None:
        """The program has exited; its output may still be on its way."""
        self._exited(status)

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        """The program died of a signal, by its name without SIG."""
        self._exited(128 + getattr(Signals, f"SIG{signal}", 0))

    def _exited(self, code: int) -> None:
        self.exit_code = code
        asyncio.get_running_loop().call_later(self._drain_s, self._end)

    def _end(self) -> None:
        self._over = True
        self._changed.set()

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """Keep a chunk; pause the peer when nobody fetches them."""
        self._chunks.append((STDERR if datatype == asyncssh.EXTENDED_DATA_STDERR else STDOUT, data))
        self._buffered += len(data)
        if self._buffered > BUFFERED_BYTES and self._channel is not None:
            self._channel.pause_reading()
        self._changed.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """The channel is closed, in order or with its connection."""
        self._lost = exc
        self._writable.set()
        self._end()

    def pause_writing(self) -> None:
        """The peer's window is full."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The peer's window has room again."""
        self._writable.set()

    # -- ByteStream

    async def read(self) -> tuple[int, bytes]:
        """As ``ByteStream.read``; raises ``SandboxLost`` where the connection broke."""
        while not self._chunks:
            if self._lost is not None:
                raise SandboxLost(f"the SSH connection broke: {self._lost}")
            if self._over:
                return ENDED, b""
            self._changed.clear()
            await self._changed.wait()
        stream, data = self._chunks.popleft()
        full = self._buffered > BUFFERED_BYTES
        self._buffered -= len(data)
        if full and self._buffered <= BUFFERED_BYTES:
            self._channel.resume_reading()
        return stream, data

    def feed(self, data: bytes) -> None:
        """Send all of standard input and its end, whether or not the program reads it."""
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            self._channel.write(data)
            self._channel.write_eof()

    async def write(self, data: bytes) -> None:
        """As ``ByteStream.write``."""
        try:
            self._channel.write(data)
        except BrokenPipeError as error:
            raise SandboxLost("the program or its connection is gone") from error
        await self._writable.wait()

    def close(self) -> None:
        """Close the channel; what runs on the other side is not touched."""
        if self._channel is not None:
            self._channel.abort()
