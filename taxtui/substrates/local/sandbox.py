"""One local sandbox: a directory, and what is launched into it."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
from pathlib import Path
from typing import Final

from taxtui.errors import ExecTimeout
from taxtui.plan.spec import FIXTURES_ENV, Command, SandboxSpec
from taxtui.sandboxes.kit.framed_shell import FramedShell, launch_argv, unbroken
from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.protocol import ExecResult, Marks, Session
from taxtui.substrates.local import bubblewrap as local_bwrap
from taxtui.substrates.local.bubblewrap import FIXTURES_INSIDE, INSIDE, PATH
from taxtui.substrates.local.failure import no_working_folder, not_emptied, not_started
from taxtui.substrates.local.folders import SandboxFolders
from taxtui.substrates.local.limits import SANDBOX_ENV, kill_marked

_LAUNCH_ENV: Final = "TAXTUI_LAUNCH"


class LocalSandbox:
    """One directory, and what is launched into it."""

    def __init__(
        self, folders: SandboxFolders, spec: SandboxSpec, folder: Path, enter: str, fixtures: Path | None, shell: str
    ) -> None:
        """``enter``: the limiter's shell prologue."""
        self.name = spec.name
        self._folders = folders
        self._folder = folder
        self._launches = 0
        isolated = folders.isolated
        base = INSIDE if isolated else folder
        shown = FIXTURES_INSIDE if isolated and fixtures else fixtures
        self._env = {
            "PATH": PATH if isolated else os.environ.get("PATH", PATH),
            "LANG": "C.UTF-8",
            "HOME": str(base / "home"),
            "TMPDIR": "/tmp" if isolated else str(base / "tmp"),
            **({FIXTURES_ENV: str(shown)} if shown else {}),
            **spec.env,
            SANDBOX_ENV: spec.name,
        }
        wrapped = local_bwrap.wrap(folder, fixtures, network=spec.network) if isolated else []
        go = "" if isolated else f"cd {shlex.quote(str(folder / 'work'))} && "
        prologue = f"{enter}{go}"
        self._prefix = ["/bin/sh", "-c", f'{prologue}exec "$@"', "sh", *wrapped] if prologue else wrapped
        self._shell = shell

    async def wait_ready(self, marks: Marks) -> None:
        """There is nothing to wait for."""

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``."""
        process, launch = self._launch([self._shell, "-c", command.script], stdin=bool(command.stdin))
        try:
            async with asyncio.timeout(command.timeout_s):
                if command.stdin:
                    process.feed(command.stdin, end=True)
                stdout, stderr = await process.output()
        except TimeoutError:
            await unbroken(_end(process, launch))
            raise ExecTimeout(f"the command was killed after {command.timeout_s:g} s") from None
        except BaseException:
            await unbroken(_end(process, launch))
            raise
        code = process.returncode
        assert code is not None
        if unstarted := not_started(code, stderr):
            raise unstarted
        return ExecResult(code, stdout, stderr)

    async def open_session(self) -> Session:
        """As ``Sandbox.open_session``."""
        process, launch = self._launch(launch_argv(), stdin=True)
        return await FramedShell.open(_LocalStream(process, launch))

    def _launch(self, argv: list[str], *, stdin: bool) -> tuple[Process, str]:
        """Start a program inside; with it what marks all its descendants."""
        if not (self._folder / "work").is_dir():
            raise no_working_folder(self.name, removed=not self._folder.exists())
        self._launches += 1
        number = f"{self.name}.{self._launches}"
        argv = [*self._prefix, *argv]
        argv[0] = shutil.which(argv[0], path=self._env["PATH"]) or argv[0]
        return Process(argv, {**self._env, _LAUNCH_ENV: number}, stdin=stdin), f"{_LAUNCH_ENV}={number}"

    async def reset(self, marks: Marks) -> None:
        """Kill what still runs and empty the three folders, which is how they were after create."""
        await self._folders.limiter.kill(self.name)
        marks("processes killed")
        try:
            await unbroken(self._folders.pool.run(lambda: self._folders.furnish(self._folder)))
        except OSError as error:
            raise not_emptied(self.name, error) from error

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``."""
        await self._folders.remove(self.name)


class _LocalStream:
    """A session's process; closing it also ends what has left its process group."""

    def __init__(self, process: Process, launch: str) -> None:
        self._process = process
        self._launch = launch
        self.read = process.read
        self.write = process.write

    async def close(self) -> None:
        if self._launch:
            launch, self._launch = self._launch, ""
            await _end(self._process, launch)


async def _end(process: Process, launch: str) -> None:
    await process.close()
    await kill_marked(launch)
