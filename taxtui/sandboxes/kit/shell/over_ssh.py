"""Programs over an SSH connection: a channel each, with separate streams."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from signal import Signals
from typing import Any, Final

import asyncssh

from taxtui.errors import ExecFailed, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel, kill_then_timeout, with_cleanup
from taxtui.sandboxes.kit.kept_output import exec_result
from taxtui.sandboxes.kit.kill import LEFT, MARK, kill_script, new_mark, require_killed
from taxtui.sandboxes.kit.shell.captured_command import captured, wrap_command
from taxtui.sandboxes.kit.shell.framed_shell import ENDED, FramedShell, launch_argv, outputs
from taxtui.sandboxes.kit.shell.frames import STDERR, STDOUT
from taxtui.sandboxes.protocol import ExecResult, Session

LOGIN_TIMEOUT_S: Final = 10.0
KEEP_ALIVE_S: Final = 15
KEEP_ALIVES_LOST: Final = 3
BUFFERED_BYTES: Final = 8 * 2**20

CONNECTION_ERRORS: Final = (OSError, asyncssh.Error)
"""Exceptions of asyncssh for a broken network or an unusual peer."""


_CONNECT_FAILED: Final = 2  # RFC 4254, 5.1: asyncssh reports a closed connection by the same code


async def log_in(address: str, **options: Any) -> asyncssh.SSHClientConnection:
    """A connection that notices a dead peer within a minute; ``options`` are ``asyncssh.connect``'s.

    Raises :data:`CONNECTION_ERRORS`, or ``TimeoutError``.
    """
    # asyncssh's own limit, a wait_for, may swallow a cancellation before Python 3.12: this timeout comes first.
    async with asyncio.timeout(LOGIN_TIMEOUT_S):
        return await asyncssh.connect(
            address,
            compression_algs=None,
            login_timeout=LOGIN_TIMEOUT_S,
            keepalive_interval=KEEP_ALIVE_S,
            keepalive_count_max=KEEP_ALIVES_LOST,
            **options,
        )


def no_channel(code: int, reason: str) -> SubstrateError:
    """The reason why a connection takes no further command: connection lost, or too many channels of sshd."""
    if code != _CONNECT_FAILED:
        return ExecFailed(f"sshd opens no further channel: {reason}")
    return SandboxLost(f"the SSH connection is gone: {reason}")


class Program(asyncssh.SSHClientSession[bytes]):
    """A program, read and written as a ``ByteStream``; ``close`` kills no process."""

    def __init__(self, drain_s: float) -> None:
        """``drain_s``: how long output may follow the exit, where a descendant holds the streams."""
        self.exit_code: int | None = None
        self._drain_s = drain_s
        self._chunks = asyncio.Queue[tuple[int, bytes]]()
        self._buffered = 0
        self._writable = asyncio.Event()
        self._writable.set()
        self._over = False
        self._lost: Exception | None = None
        self._channel: Any = None

    async def start(self, connection: asyncssh.SSHClientConnection, command: str) -> None:
        """Start the program. Raises ``SandboxLost`` when the connection is gone, ``ExecFailed`` when sshd refuses."""
        try:
            await connection.create_session(lambda: self, command, encoding=None)
        except asyncssh.ChannelOpenError as error:
            raise no_channel(error.code, error.reason) from error
        except CONNECTION_ERRORS as error:
            raise SandboxLost(f"the SSH connection is gone: {error}") from error

    # -- called by asyncssh

    def connection_made(self, chan: Any) -> None:
        self._channel = chan

    def exit_status_received(self, status: int) -> None:
        self._exited(status)

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        """The program died of a signal; the name lacks SIG."""
        self._exited(128 + getattr(Signals, f"SIG{signal}", 0))

    def _exited(self, code: int) -> None:
        self.exit_code = code
        asyncio.get_running_loop().call_later(self._drain_s, self._end)

    def _end(self) -> None:
        self._over = True
        self._chunks.put_nowait((ENDED, b""))

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """Store a chunk; pause the peer while the reader is slow."""
        self._chunks.put_nowait((STDERR if datatype == asyncssh.EXTENDED_DATA_STDERR else STDOUT, data))
        self._buffered += len(data)
        if self._buffered > BUFFERED_BYTES and self._channel is not None:
            self._channel.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = exc
        self._writable.set()
        self._end()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # -- ByteStream

    async def read(self) -> tuple[int, bytes]:
        ended = self._over and self._chunks.empty()
        stream, data = (ENDED, b"") if ended else await self._chunks.get()
        if stream == ENDED and self._lost is not None:
            raise SandboxLost(f"the SSH connection broke: {self._lost}")
        full = self._buffered > BUFFERED_BYTES
        self._buffered -= len(data)
        if full and self._buffered <= BUFFERED_BYTES:
            self._channel.resume_reading()
        return stream, data

    def feed(self, data: bytes) -> None:
        """Send all of standard input and the end, read by the program or not."""
        with contextlib.suppress(BrokenPipeError):  # the program has ended already
            self._channel.write(data)
            self._channel.write_eof()

    async def write(self, data: bytes) -> None:
        try:
            self._channel.write(data)
        except BrokenPipeError as error:
            raise SandboxLost("the program or its connection is gone") from error
        await self._writable.wait()

    def close(self) -> None:
        """Close the channel; remote processes continue."""
        if self._channel is not None:
            self._channel.abort()


DRAIN_S: Final = 2.0
"""Wait for output after the exit of a command with a killed shell, without an end marker."""
KILL_TIMEOUT_S: Final = 10.0


class OverSsh(ABC):
    """Commands and sessions of a sandbox over SSH."""

    connection: asyncssh.SSHClientConnection | None = None
    """The connection, open or not; None before the first login."""

    @abstractmethod
    def line(self, argv: Sequence[str], env: Mapping[str, str]) -> str:
        """The login shell's line for ``argv`` in the working folder, with ``env`` and the sandbox's variables."""

    @abstractmethod
    async def explained(self, error: SubstrateError) -> SubstrateError:
        """The cause of a failed connection: ``SandboxLost`` if the sandbox has ended, else the same error."""

    async def unanswered(self) -> None:  # noqa: B027 - most have nothing to look for
        """Called after a command ended without a marker. Raises the reason unless the command killed the shell."""

    @property
    def _open(self) -> asyncssh.SSHClientConnection:
        if self.connection is None or self.connection.is_closed():
            raise SandboxLost("the SSH connection is closed")
        return self.connection

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``: a new channel on the connection."""
        wrapped = wrap_command(command, "bash")
        program = Program(DRAIN_S)
        try:
            async with asyncio.timeout(command.timeout_s):
                await finish_despite_cancel(program.start(self._open, self.line(wrapped.argv, {})))
                program.feed(wrapped.stdin)
                return await self._collected(program, wrapped.marker)
        except TimeoutError:
            raise await kill_then_timeout(self._kill(wrapped.mark), command.timeout_s) from None
        except SandboxLost as error:
            raise await self.explained(error) from error
        except BaseException as error:
            await with_cleanup(self._kill(wrapped.mark), error)
            raise
        finally:
            program.close()

    async def _collected(self, program: Program, marker: bytes) -> ExecResult:
        """The result of a command."""
        stdout, stderr = await captured(program, marker)
        code = stdout.exit_code
        if code is None:
            code = program.exit_code  # the command has killed the wrapper shell
            await self.unanswered()
        if code is None:
            raise SandboxLost("the SSH channel was closed while a command ran")
        return exec_result(code, stdout.output(), stderr.output(), stdout.wrapper_ended_ns)

    async def open_session(self) -> Session:
        program, mark = Program(0), new_mark()

        async def end() -> None:
            try:
                await self._kill(mark)
            finally:
                program.close()

        try:
            await finish_despite_cancel(program.start(self._open, self.line(launch_argv(), {MARK: mark})))
        except BaseException as error:
            await with_cleanup(end(), error)
            if isinstance(error, SandboxLost):
                raise await self.explained(error) from error
            raise
        return await FramedShell(program, end=end, explain=self.explained).open()

    async def _kill(self, mark: str) -> None:
        """Kill the processes with a mark. Without a connection the sandbox's end kills them.

        Raises ``ExecFailed`` if the kill failed.
        """
        program = Program(0)
        try:
            async with asyncio.timeout(KILL_TIMEOUT_S):
                await program.start(self._open, shlex.join(["sh", "-c", kill_script(mark)]))
                out, err = await outputs(program)
        except SandboxLost:
            return
        except TimeoutError as error:
            raise ExecFailed(f"{LEFT}: no answer") from error
        finally:
            program.close()
        require_killed(program.exit_code or 0, err.kept or out.kept)
