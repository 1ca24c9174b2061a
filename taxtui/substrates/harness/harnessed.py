"""A sandbox of a harness: a command is a script of text, and the answer is text.

The harness's own path carries the command and the answer. Two actions go through the sandbox's site instead: the kill
of a command, and the removal of a busy sandbox. A busy harness does neither.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from functools import partial
from typing import ClassVar, Final, NamedTuple

import msgspec

from taxtui.errors import ExecFailed, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel, kill_then_timeout, with_cleanup
from taxtui.sandboxes.kit.kill import LEFT, MARK, kill_until_done
from taxtui.sandboxes.kit.limits import or_exit
from taxtui.sandboxes.kit.text_command import TextCommand, read, wrap
from taxtui.sandboxes.protocol import ExecResult, Marks, Session
from taxtui.substrates.harness.sites import Sites, Surroundings

_ARGUMENT: Final = 100_000  # bytes of a script; Linux takes no argument beyond 128 KiB
_SIGNALLED: Final = 128
_KILL_S: Final = 30.0
_KILLED_S: Final = 0.3
"""Pause before a second kill: the command may only just be starting."""
_STOP_S: Final = 30.0


class Ran(NamedTuple):
    """A harness's answer; times are monotonic, from just around the harness's call."""

    text: str  # standard output
    exit_code: int  # or minus the signal, as in Python
    started_ns: int
    ended_ns: int


class HarnessedSandbox(ABC):
    """A sandbox; each harness adds running a script, writing a file, and stopping."""

    SHELLS: ClassVar[tuple[str, ...]] = ("bash", "sh")
    """Sandbox shells that ``run`` starts by itself; for any other shell ``run`` starts sh."""

    def __init__(self, name: str, sites: Sites, around: Surroundings, shell: str) -> None:
        """``shell``: the sandbox's."""
        self.name = name
        self.around = around
        self._sites = sites
        self._shell = shell
        self._busy = 0
        self._stopped = False
        self._removing = asyncio.Lock()

    @abstractmethod
    async def run(self, script: str, env: dict[str, str]) -> Ran:
        """Run a script of the sandbox's shell by the harness's command path; not cancelled.

        ``env``: the whole environment; empty if the site has an environment. Raises ``ExecFailed``, ``Throttled``.
        """

    @abstractmethod
    async def write(self, path: str, text: str) -> None:
        """Write a file by the harness's own path; not cancelled. Raises ``ExecFailed``."""

    @abstractmethod
    async def stop(self) -> None:
        """Stop the sandbox by the harness. Raises nothing: remains are removed afterwards."""

    async def wait_ready(self, marks: Marks) -> None:  # noqa: B027 - a harness's start waits until commands can be sent
        """There is nothing to wait for."""

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``: a single call of the harness."""
        if self._stopped:
            raise SandboxLost("the sandbox was removed")
        wrapped = wrap(command, self._shell, {}, inside=self._shell in self.SHELLS)
        # Shielded: a harness continues the command of a cancelled caller.
        sending = asyncio.ensure_future(self._send(wrapped))
        self._busy += 1
        sending.add_done_callback(self._sent)
        try:
            async with asyncio.timeout(command.timeout_s):
                answer = await asyncio.shield(sending)
        except TimeoutError:
            raise await kill_then_timeout(self._end(sending, wrapped), command.timeout_s) from None
        except asyncio.CancelledError as cancelled:
            await with_cleanup(self._end(sending, wrapped), cancelled)
            raise
        except ExecFailed as error:
            explained = await self._explained(error)
            if explained is error:  # after a harness's failure the command may still run
                await with_cleanup(self._sites.kill(self.name, wrapped.mark), error)
            raise explained from error
        try:
            result = read(answer.text, wrapped.nonce)
        except ExecFailed as garbled:
            raise await self._explained(garbled) from None
        if result is not None:
            return msgspec.structs.replace(result, started_ns=answer.started_ns, ended_ns=answer.ended_ns)
        code = answer.exit_code if answer.exit_code >= 0 else _SIGNALLED - answer.exit_code
        if code > _SIGNALLED:  # the command killed the shell, or was killed with the whole sandbox
            if self._stopped or await self._sites.ended(self.name):
                raise SandboxLost("the sandbox ended while a command ran")
            return ExecResult(code, b"", b"", answer.started_ns, answer.ended_ns)
        raise await self._explained(ExecFailed(f"no {self._shell} could be started in the sandbox: exit code {code}"))

    def _sent(self, _: asyncio.Future[Ran]) -> None:
        self._busy -= 1

    async def _send(self, wrapped: TextCommand) -> Ran:
        """Run a script; a script too long for an argument is written to a file first."""
        script, env = wrapped.script, {}
        if self.around.folder:
            env = {**self.around.env, MARK: wrapped.mark}
        if len(script.encode()) > _ARGUMENT:
            path = f"{self.around.env.get('TMPDIR', '/tmp')}/.taxtui-{wrapped.mark}.sh"
            await self.write(path, script)
            # A file of another user stays, like the files of ``wrap``, until the end of the sandbox.
            script = f". {path}; _r=$?; rm -f {path} 2>/dev/null; exit $_r"
        return await self.run(f"{or_exit(self.around.prologue)}{script}", env)

    async def _end(self, sending: asyncio.Future[Ran], wrapped: TextCommand) -> None:
        """Kill a running command. Raises ``ExecFailed``."""
        try:
            kill = partial(self._sites.kill, self.name, wrapped.mark)
            await kill_until_done(kill, sending, within_s=_KILL_S, again_s=_KILLED_S)
        except SubstrateError as error:
            problem = str(error)
            raise ExecFailed(problem if problem.startswith(LEFT) else f"{LEFT}: {problem}") from error

    async def open_session(self) -> Session:
        """Not among the capabilities: a harness's sessions are terminals with a prompt, and torn output."""
        raise ExecFailed(f"{self.name}: this harness runs every command by itself; use exec mode")

    async def reset(self, marks: Marks) -> None:
        """Not among the capabilities."""
        raise ExecFailed(f"{self.name}: this kind of sandbox cannot be reset")

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``: by the harness, or by the site if a command still runs."""
        async with self._removing:
            if self._busy:
                await self._sites.remove(self.name)
            if not self._stopped:
                with contextlib.suppress(ExecFailed):  # too slow: the site removes the rest
                    await finish_despite_cancel(self.stop(), _STOP_S)
                self._stopped = True
            await self._sites.remove(self.name)

    async def _explained(self, error: SubstrateError) -> SubstrateError:
        """``SandboxLost`` if the sandbox has ended, else ``error``."""
        if self._stopped or await self._sites.ended(self.name):
            return SandboxLost("the sandbox ended")
        return error
