"""One container without a daemon: each action is one process that enters it."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Final

from taxtui.errors import ExecFailed, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.captured_command import captured, wrap_command
from taxtui.sandboxes.kit.framed_shell import FramedShell, after, launch_argv, overdue
from taxtui.sandboxes.kit.kept_output import exec_result
from taxtui.sandboxes.kit.kill import MARK, new_mark
from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.kit.session import ExplainedSession, OwnedStream
from taxtui.sandboxes.protocol import ExecResult, Session
from taxtui.substrates.machine.contained import ContainedSandbox
from taxtui.substrates.machine.host import Host

_KILL_TIMEOUT_S: Final = 30.0
_LAUNCHER_FAILED: Final = frozenset({1, 126, 127, 128})
"""What the programs that enter a container end with when they could not; so may a command."""


class EnteredSandbox(ContainedSandbox):
    """One that a program of this machine enters."""

    def __init__(self, host: Host, name: str) -> None:
        """Nothing is started."""
        super().__init__(host, name)
        self._shell = "bash" if host.root.has("bash") else "sh"

    @abstractmethod
    def enter(self, argv: list[str], env: dict[str, str]) -> list[str]:
        """The program that runs ``argv`` inside, in the working folder and as the user of its root."""

    @abstractmethod
    async def kill(self, mark: str) -> None:
        """Kill what has this mark inside. Raises ``SubstrateError``."""

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``."""
        wrapped = wrap_command(command, self._shell)
        process = self._launch(wrapped.argv, wrapped.mark, stdin=bool(wrapped.stdin))
        try:
            async with asyncio.timeout(command.timeout_s):
                if wrapped.stdin:
                    process.feed(wrapped.stdin, end=True)
                return await self._collected(process, wrapped.marker)
        except TimeoutError:
            raise await overdue(self._end(process, wrapped.mark), command.timeout_s) from None
        except BaseException as error:
            await after(self._end(process, wrapped.mark), error)
            raise
        finally:
            process.kill()

    async def _collected(self, process: Process, marker: bytes) -> ExecResult:
        stdout, stderr = await captured(process, marker)
        if stdout.exit_code is not None:
            return exec_result(stdout.exit_code, stdout.output(), stderr.output(), stdout.wrapper_ended_ns)
        assert process.returncode is not None
        if await self.ended():
            raise SandboxLost("the container ended while a command ran")
        output, words = stdout.output(), stderr.output()
        if process.returncode in _LAUNCHER_FAILED:  # else the command has killed the shell around it
            raise ExecFailed(f"cannot enter the container: {' '.join(words.kept.decode(errors='replace').split())}")
        return exec_result(process.returncode, output, words)

    async def open_session(self) -> Session:
        """As ``Sandbox.open_session``."""
        mark = new_mark()
        process = self._launch(launch_argv(), mark, stdin=True)
        shell = await FramedShell.open(OwnedStream(process, lambda: self._end(process, mark)))
        return ExplainedSession(shell, self._explained)

    def _launch(self, argv: list[str], mark: str, *, stdin: bool) -> Process:
        env = {**self.env, MARK: mark}
        return Process(self.enter(argv, env), {"PATH": self.env["PATH"], MARK: mark}, stdin=stdin)

    async def _explained(self, error: SubstrateError) -> SubstrateError:
        return SandboxLost("the container ended") if await self.ended() else error

    async def _end(self, process: Process, mark: str) -> None:
        """Kill what runs inside first: the process that entered only waits for it."""
        try:
            async with asyncio.timeout(_KILL_TIMEOUT_S):
                await self.kill(mark)
        except TimeoutError as error:
            raise ExecFailed(f"{self.name}: a command's processes may still run in it: no answer") from error
        finally:
            await process.close()
