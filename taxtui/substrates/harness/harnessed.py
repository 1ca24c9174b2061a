"""One sandbox as its harness runs commands in it: each is a script of text, and what comes back is text.

The harness's own path carries the command and its answer. Two actions go through the sandbox's site instead: killing
the processes of a command, and removing a sandbox in which one runs. No harness does them while it is busy.
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
from taxtui.substrates.harness.sites import Site, Surroundings

_ARGUMENT: Final = 100_000  # bytes of a script; Linux takes no argument beyond 128 KiB
_SIGNALLED: Final = 128
_KILL_S: Final = 30.0
_KILLED_S: Final = 0.3
"""How long we wait for the end of what was killed, before we kill again: it may only just be starting."""
_STOP_S: Final = 30.0


class Ran(NamedTuple):
    """A harness's answer for a script that has ended; times are monotonic, taken around its own call."""

    text: str  # standard output
    exit_code: int  # or minus the signal, as Python says it
    started_ns: int
    ended_ns: int


class HarnessedSandbox(ABC):
    """A sandbox that each harness knows how to run a script in, write a file to, and stop."""

    SHELLS: ClassVar[tuple[str, ...]] = ("bash", "sh")
    """Shells that ``run`` gives a script to where they are the sandbox's; for every other one it gives it to sh."""

    def __init__(self, name: str, place: Site, around: Surroundings, shell: str) -> None:
        """One that stands."""
        self.name = name
        self.around = around
        self._place = place
        self._shell = shell
        self._busy = 0
        self._stopped = False
        self._removing = asyncio.Lock()

    @abstractmethod
    async def run(self, script: str, env: dict[str, str]) -> Ran:
        """Run a script of the sandbox's shell by the harness's own command path; not cancelled.

        ``env``: all of its environment; empty where the place has one. Raises ``ExecFailed``, ``Throttled``.
        """

    @abstractmethod
    async def write(self, path: str, text: str) -> None:
        """Write a file by the harness's own path; not cancelled. Raises ``ExecFailed``."""

    @abstractmethod
    async def stop(self) -> None:
        """End it as the harness does. Raises nothing: what it leaves is removed after it."""

    async def wait_ready(self, marks: Marks) -> None:  # noqa: B027 - a harness's start waits until commands can be sent
        """There is nothing to wait for."""

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``: one call of the harness's."""
        if self._stopped:
            raise SandboxLost("the sandbox was removed")
        wrapped = wrap(command, self._shell, {}, inside=self._shell in self.SHELLS)
        # Shielded: a harness continues a command after its caller has gone.
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
            if explained is error:  # a harness that has given up may have left the command at work
                await with_cleanup(self._place.kill(wrapped.mark), error)
            raise explained from error
        try:
            result = read(answer.text, wrapped.nonce)
        except ExecFailed as garbled:
            raise await self._explained(garbled) from None
        if result is not None:
            return msgspec.structs.replace(result, started_ns=answer.started_ns, ended_ns=answer.ended_ns)
        code = answer.exit_code if answer.exit_code >= 0 else _SIGNALLED - answer.exit_code
        if code > _SIGNALLED:  # the command killed its own shell, or was killed with the whole sandbox
            if self._stopped or await self._place.ended():
                raise SandboxLost("the sandbox ended while a command ran")
            return ExecResult(code, b"", b"", answer.started_ns, answer.ended_ns)
        raise await self._explained(ExecFailed(f"no {self._shell} could be started in the sandbox: exit code {code}"))

    def _sent(self, _: asyncio.Future[Ran]) -> None:
        self._busy -= 1

    async def _send(self, wrapped: TextCommand) -> Ran:
        """Run a script; one that is too long for an argument is written to a file first."""
        script, env = wrapped.script, {}
        if self.around.folder:
            env = {**self.around.env, MARK: wrapped.mark}
        if len(script.encode()) > _ARGUMENT:
            path = f"{self.around.env.get('TMPDIR', '/tmp')}/.taxtui-{wrapped.mark}.sh"
            await self.write(path, script)
            # A file that the harness wrote for another user stays, like the files of ``wrap``, until the sandbox goes.
            script = f". {path}; _r=$?; rm -f {path} 2>/dev/null; exit $_r"
        return await self.run(f"{or_exit(self.around.prologue)}{script}", env)

    async def _end(self, sending: asyncio.Future[Ran], wrapped: TextCommand) -> None:
        """Kill a command whose call is under way. Raises ``ExecFailed``."""
        try:
            kill = partial(self._place.kill, wrapped.mark)
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
        """As ``Sandbox.destroy``: by the harness, unless it still waits for a command; then what it has left."""
        async with self._removing:
            if self._busy:
                await self._place.remove()
            if not self._stopped:
                with contextlib.suppress(ExecFailed):  # it takes too long: what is left is removed without it
                    await finish_despite_cancel(self.stop(), _STOP_S)
                self._stopped = True
            await self._place.remove()

    async def _explained(self, error: SubstrateError) -> SubstrateError:
        """``error``, or ``SandboxLost`` where the sandbox's own fate explains it."""
        if self._stopped or await self._place.ended():
            return SandboxLost("the sandbox ended")
        return error
