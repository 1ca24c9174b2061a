"""A local sandbox: a directory and processes."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from taxtui.errors import ExecFailed, SandboxLost
from taxtui.plan.spec import FIXTURES_ENV, Command, SandboxSpec
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel, kill_then_timeout, with_cleanup
from taxtui.sandboxes.kit.kept_output import exec_result
from taxtui.sandboxes.kit.kill import MARK, kill_marked, new_mark
from taxtui.sandboxes.kit.limits import SANDBOX_ENV, or_exit
from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.kit.shell.framed_shell import FramedShell, OwnedStream, launch_argv
from taxtui.sandboxes.kit.wrapper_clock import BEGIN
from taxtui.sandboxes.protocol import ExecResult, Marks, Session
from taxtui.substrates.local import bubblewrap as local_bwrap
from taxtui.substrates.local.bubblewrap import FIXTURES_INSIDE, INSIDE, PATH, not_started

if TYPE_CHECKING:
    from taxtui.substrates.local.substrate import LocalSubstrate


class LocalSandbox:
    """A directory and processes."""

    def __init__(self, substrate: LocalSubstrate, spec: SandboxSpec, folder: Path, enter: str) -> None:
        """``enter``: the limiter's shell prologue."""
        self.name = spec.name
        self._substrate = substrate
        self._folder = folder
        self._work = folder / "work"
        isolated, fixtures = substrate.isolated, substrate.fixtures
        base = INSIDE if isolated else folder
        visible_fixtures = FIXTURES_INSIDE if isolated and fixtures else fixtures
        self._env = {
            "PATH": PATH if isolated else os.environ.get("PATH", PATH),
            "LANG": "C.UTF-8",
            "HOME": str(base / "home"),
            "TMPDIR": "/tmp" if isolated else str(base / "tmp"),
            **({FIXTURES_ENV: str(visible_fixtures)} if visible_fixtures else {}),
            **spec.env,
            SANDBOX_ENV: spec.name,
        }
        wrapped = local_bwrap.wrap(folder, fixtures, network=spec.network) if isolated else []
        # The shell's PWD would name the runner's folder in bubblewrap's environment, readable by the sandbox.
        leave = "unset PWD && " if enter else ""
        go = leave if isolated else f"cd {shlex.quote(str(self._work))} && "
        prologue = f"{enter}{go}"
        self._prefix = ["/bin/sh", "-c", f'{prologue}exec "$@"', "sh", *wrapped] if prologue else wrapped
        self._shell = "bash" if substrate.capabilities.bash else "sh"
        self._bash = ""
        if not isolated and self._shell == "bash" and not any(map(_precedes_a_script, spec.env)):
            self._bash = shutil.which("bash", path=self._env["PATH"]) or ""
        # On the script's first line: the script's lines keep their numbers.
        self._entering = f"{BEGIN}; {or_exit(prologue)}"

    async def wait_ready(self, marks: Marks) -> None:
        pass

    async def exec(self, command: Command) -> ExecResult:
        process, mark = self._launch_shell(command)
        try:
            async with asyncio.timeout(command.timeout_s):
                if command.stdin:
                    process.feed(command.stdin, end=True)
                stdout, stderr = await process.output()
        except TimeoutError:
            raise await kill_then_timeout(_end(process, mark), command.timeout_s) from None
        except BaseException as error:
            await with_cleanup(_end(process, mark), error)
            raise
        code = process.returncode
        assert code is not None
        if unstarted := not_started(code, stderr.kept):
            raise unstarted
        return exec_result(code, stdout, stderr)

    async def open_session(self) -> Session:
        process, mark = self._launch(launch_argv(), stdin=True)
        return await FramedShell.open(OwnedStream(process, lambda: _end(process, mark)))

    def _launch_shell(self, command: Command) -> tuple[Process, str]:
        """Start the shell of a command; the command's own bash enters the sandbox if possible."""
        stdin = bool(command.stdin)
        if self._bash:
            return self._launch(
                [self._shell, "-c", f"{self._entering}{command.script}"], stdin=stdin, enters=self._bash
            )
        return self._launch([self._shell, "-c", command.script], stdin=stdin)

    def _launch(self, argv: list[str], *, stdin: bool, enters: str = "") -> tuple[Process, str]:
        """Start a program inside; return the process and the mark.

        ``enters``: the program's path, if the program enters the sandbox itself.
        """
        if not self._work.is_dir():
            if not self._folder.exists():
                raise SandboxLost(f"{self.name} has been removed")
            raise ExecFailed(f"{self.name}: a command has removed its working folder")
        mark = new_mark()
        if not enters:
            argv = [*self._prefix, *argv]
            argv[0] = shutil.which(argv[0], path=self._env["PATH"]) or argv[0]
        return Process(argv, {**self._env, MARK: mark}, stdin=stdin, program=enters), mark

    async def reset(self, marks: Marks) -> None:
        """Kill all processes and empty the three folders, as after create."""
        await self._substrate.limiter.kill(self.name)
        marks("processes killed")
        try:
            await finish_despite_cancel(self._substrate.pool.run(lambda: self._substrate.furnish(self._folder)))
        except OSError as error:
            raise ExecFailed(f"{self.name}: cannot empty its folders: {error.strerror}") from error

    async def destroy(self) -> None:
        await self._substrate.remove(self.name)


def _precedes_a_script(variable: str) -> bool:
    """Whether bash may run code for a variable before the first line of a script, or reads the script differently."""
    return variable.startswith(("BASH", "SHELLOPTS"))


async def _end(process: Process, mark: str) -> None:
    await process.close()
    await kill_marked(f"{MARK}={mark}")
