"""The commands of a sandbox that is reached by one SSH connection: a channel each, or one shell over one of them."""

from __future__ import annotations

import asyncio
import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final

import asyncssh

from taxtui.errors import ExecFailed, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel, kill_then_timeout, with_cleanup
from taxtui.sandboxes.kit.captured_command import captured, wrap_command
from taxtui.sandboxes.kit.framed_shell import ENDED, FramedShell, launch_argv
from taxtui.sandboxes.kit.kept_output import exec_result
from taxtui.sandboxes.kit.kill import LEFT, MARK, kill_script, new_mark, require_killed
from taxtui.sandboxes.kit.session import ExplainedSession, OwnedStream
from taxtui.sandboxes.kit.ssh_program import Program
from taxtui.sandboxes.protocol import ExecResult, Session

DRAIN_S: Final = 2.0
"""For output that follows the exit of a command that killed its own shell, and so prints no end marker."""
KILL_TIMEOUT_S: Final = 10.0


class OverSsh(ABC):
    """What a sandbox gets from its connection."""

    connection: asyncssh.SSHClientConnection | None = None
    """Open or not; None before there is one."""

    @abstractmethod
    def line(self, argv: Sequence[str], env: Mapping[str, str]) -> str:
        """What the login shell is told, so that ``argv`` runs where commands run, with ``env`` and the sandbox's."""

    @abstractmethod
    async def explained(self, error: SubstrateError) -> SubstrateError:
        """Why the connection failed: what became of its sandbox if that is the reason, else the same error."""

    async def unanswered(self) -> None:  # noqa: B027 - most have nothing to look for
        """A command has ended without a last word: killed by itself, unless this raises why else."""

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
        """What a command did, where it is to be had."""
        stdout, stderr = await captured(program, marker)
        code = stdout.exit_code
        if code is None:
            code = program.exit_code  # it has killed the shell around it
            await self.unanswered()
        if code is None:
            raise SandboxLost("the SSH channel was closed while a command ran")
        return exec_result(code, stdout.output(), stderr.output(), stdout.wrapper_ended_ns)

    async def open_session(self) -> Session:
        """As ``Sandbox.open_session``."""
        program, mark = Program(0), new_mark()

        async def end() -> None:
            try:
                await self._kill(mark)
            finally:
                program.close()

        stream = OwnedStream(program, end)
        try:
            await finish_despite_cancel(program.start(self._open, self.line(launch_argv(), {MARK: mark})))
            return ExplainedSession(await FramedShell.open(stream), self.explained)
        except BaseException as error:
            await with_cleanup(stream.close(), error)
            if isinstance(error, SandboxLost):
                raise await self.explained(error) from error
            raise

    async def _kill(self, mark: str) -> None:
        """Kill what has this mark; without a connection nobody can be asked: the sandbox's end does it then.

        Raises ``ExecFailed`` where that failed.
        """
        program, words = Program(0), b""
        try:
            async with asyncio.timeout(KILL_TIMEOUT_S):
                await program.start(self._open, shlex.join(["sh", "-c", kill_script(mark)]))
                while (item := await program.read())[0] != ENDED:
                    words += item[1]
        except SandboxLost:
            return
        except TimeoutError as error:
            raise ExecFailed(f"{LEFT}: no answer") from error
        finally:
            program.close()
        require_killed(program.exit_code or 0, words)
