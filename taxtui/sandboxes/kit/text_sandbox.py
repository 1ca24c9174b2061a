"""Commands of a sandbox whose provider takes a script of text and returns text: SDKs, toolboxes, harnesses.

Daytona's toolbox and harnesses give a script to a shell (zsh, bash or sh) and return both streams as text, some merged.
The call waits for every process with an open stream, and reports no process id. Therefore the command writes to two
files, as in a merged session: :class:`~taxtui.sandboxes.kit.shell.frames.MergedFrames`. The command's mark is among the
arguments and in the environment of all processes of the command, for the kill.

A request is not awaited directly, because most providers continue the command of a cancelled caller.
"""

from __future__ import annotations

import asyncio
import base64
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from taxtui.errors import ExecFailed, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel, kill_then_timeout, retrieve_error, with_cleanup
from taxtui.sandboxes.kit.kill import LEFT, MARK, new_mark
from taxtui.sandboxes.kit.shell.framed_shell import quoted
from taxtui.sandboxes.kit.shell.frames import BASH, BEGIN, SH, STDOUT, MergedFrames
from taxtui.sandboxes.protocol import ExecResult

KILL_S: Final = 30.0
_KILL_AGAIN_S: Final = 0.3
"""Pause before a second kill: the provider may start an accepted command after the first."""
_SIGNALLED: Final = 128


_ARGUMENT: Final = 60_000  # characters; Linux takes no argument beyond 128 KiB


class TextCommand(NamedTuple):
    """The script to send, its mark, and the markers of the answer."""

    script: str
    mark: str  # for kit.kill
    nonce: tuple[str, str]


def wrap(command: Command, shell: str, env: Mapping[str, str], *, inside: bool = False) -> TextCommand:
    """The program around a command. ``inside``: the text is for ``shell`` itself, without another shell."""
    # The markers have more parts besides the mark: a list of the shell's variables contains no marker.
    mark = new_mark()
    nonce = mark + new_mark(), new_mark() + new_mark()
    frames = MergedFrames(*nonce)
    subshell = frames.subshell('eval "$1"', stdin="<&4 4<&-")
    program = f"{BEGIN}; {BASH if shell == 'bash' else SH}; ( {subshell})\n_r=$?; exec 4<&-\n{frames.shell('')}"
    script = quoted(command.script)
    feed, stdin, heredoc, bodies = "", "/dev/null", "", ""
    if command.stdin:
        feed, stdin = f"base64 -d <<'{mark}' | ", "&0"
        bodies += f"{base64.encodebytes(command.stdin).decode()}{mark}\n"
    if len(command.script) > _ARGUMENT:
        program, script = f'set -- "$(cat <&3)"; exec 3<&-; {program}', "''"
        heredoc = f" 3<<'{mark}'"
        bodies += f"{command.script}\n{mark}\n"
    exports = "".join(f"export {name}={quoted(value)}\n" for name, value in {**env, MARK: mark}.items())
    run = (
        f"{{ set -- {script}; eval {quoted(program)}; }}"
        if inside
        else f"{shell} -c {quoted(program)} {shell} {script}"
    )
    return TextCommand(f"{exports}{feed}{run} 4<{stdin} 2>/dev/null{heredoc}\n{bodies}", mark, nonce)


def read(answer: str, nonce: tuple[str, str]) -> ExecResult | None:
    """The command's result, or None if the program did not end.

    Raises:
        ExecFailed: the program did not print this answer: a command can find the nonce, and forge an answer.
    """
    frames = MergedFrames(*nonce)
    try:
        frames.feed(STDOUT, answer.encode(errors="replace"))
        return frames.result() if frames.complete else None
    except ValueError:
        raise ExecFailed("the command's answer is garbled: the shell program prints no such text") from None


class TextAnswer(NamedTuple):
    """A provider's answer; times are monotonic, from just around the provider's call, or 0."""

    text: str  # standard output
    exit_code: int  # or minus the signal, as in Python
    started_ns: int = 0
    ended_ns: int = 0


class TextSandbox(ABC):
    """A sandbox with ``exec``; a provider adds sending a command, the kill, and the sandbox's state."""

    def __init__(self, name: str, shell: str, env: Mapping[str, str], *, inside: bool = False) -> None:
        """``shell``: of the commands. ``inside``: ``send`` starts this shell by itself."""
        self.name = name
        self.shell = shell
        self.busy = 0  # requests in flight
        self.removed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._env = env
        self._inside = inside

    @abstractmethod
    async def send(self, wrapped: TextCommand, timeout_s: float) -> TextAnswer:
        """Run a wrapped command, overdue after ``timeout_s``. Raises ``SubstrateError``."""

    @abstractmethod
    async def kill(self, mark: str) -> None:
        """Kill every process with this mark. A removed sandbox has none. Raises ``ExecFailed``."""

    @abstractmethod
    async def lost(self) -> str:
        """The reason why the sandbox takes no more commands; "" without one."""

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``: a single request."""
        self.require_existing()
        wrapped = wrap(command, self.shell, self._env, inside=self._inside)
        running = asyncio.ensure_future(self.send(wrapped, command.timeout_s))
        self.busy += 1
        running.add_done_callback(self._ended)
        try:
            either: set[asyncio.Future[Any]] = {running, self.removed}
            await asyncio.wait(either, timeout=command.timeout_s, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError as cancelled:
            await with_cleanup(self._end(running, wrapped.mark), cancelled)
            raise
        if not running.done():
            if self.removed.done():
                await _abandon(running)
                raise SandboxLost(f"{self.name} was removed")
            raise await kill_then_timeout(self._end(running, wrapped.mark), command.timeout_s)
        try:
            answer = running.result()
            result = read(answer.text, wrapped.nonce)
        except (SubstrateError, asyncio.CancelledError) as error:  # cancelled within the SDK: this command is not
            cancelled_by = ExecFailed(f"{self.name}: the SDK cancelled a request")
            failed = error if isinstance(error, SubstrateError) else cancelled_by
            if isinstance(failed, ExecFailed):  # the command may still run
                await with_cleanup(self.kill(wrapped.mark), failed)
            failure = await self.explained(failed)
            if failure is error:
                raise
            raise failure from error
        if result is not None:
            return msgspec.structs.replace(result, started_ns=answer.started_ns, ended_ns=answer.ended_ns)
        code = answer.exit_code if answer.exit_code >= 0 else _SIGNALLED - answer.exit_code
        none_ran = ExecFailed(f"{self.name}: no {self.shell} was started: exit code {code}")
        failure = await self.explained(none_ran)
        if code <= _SIGNALLED or failure is not none_ran:
            raise failure
        return ExecResult(code, b"", b"", answer.started_ns, answer.ended_ns)  # the command has killed the shell

    def require_existing(self) -> None:
        """Raise ``SandboxLost`` after the removal."""
        if self.removed.done():
            raise SandboxLost(f"{self.name} was removed")

    def forget(self) -> None:
        """The sandbox was removed: commands that still run fail at once."""
        if not self.removed.done():
            self.removed.set_result(None)

    async def explained(self, error: SubstrateError) -> SubstrateError:
        """``SandboxLost`` if the sandbox has ended, else ``error``."""
        if not isinstance(error, ExecFailed | SandboxLost):
            return error
        why = f"{self.name} was removed" if self.removed.done() else await self.lost()
        return SandboxLost(why) if why else error

    def _ended(self, running: asyncio.Future[TextAnswer]) -> None:
        self.busy -= 1
        retrieve_error(running)

    async def _end(self, running: asyncio.Future[TextAnswer], mark: str) -> None:
        try:
            async with asyncio.timeout(KILL_S):
                while not running.done():
                    await self.kill(mark)
                    await asyncio.wait({running}, timeout=_KILL_AGAIN_S)
        except TimeoutError:
            raise ExecFailed(f"{LEFT}: no answer") from None
        finally:
            await _abandon(running)


async def _abandon(running: asyncio.Future[TextAnswer]) -> None:
    """Cancel a request, and wait for its end."""
    running.cancel()
    await finish_despite_cancel(asyncio.wait({running}))
