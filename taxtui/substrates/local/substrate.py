"""Sandboxes on this machine: bubblewrap if available, else plain subprocesses in a directory.

A sandbox is a directory under a private folder of this user, with ``work``, ``home`` and ``tmp``; each action is a
process. Files are the only state between two actions. Under bubblewrap a background process ends with the action, and
every process ends with taxtui.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final, Literal, Self

import msgspec

from taxtui.errors import ExecFailed, SandboxLost, SubstrateUnavailable
from taxtui.plan.spec import FIXTURES_ENV, Command, SandboxSpec
from taxtui.sandboxes.kit import private_folder
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel, kill_then_timeout, with_cleanup
from taxtui.sandboxes.kit.kept_output import exec_result
from taxtui.sandboxes.kit.kill import MARK, kill_marked, new_mark
from taxtui.sandboxes.kit.limits import SANDBOX_ENV, Limiter, best_limiter, can_freeze, or_exit
from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.kit.shell.framed_shell import FramedShell, launch_argv
from taxtui.sandboxes.kit.shell.frames import BEGIN
from taxtui.sandboxes.lifecycle import Usage
from taxtui.sandboxes.protocol import Availability, Capabilities, ExecResult, Found, Marks, Session
from taxtui.substrates.local import LocalOptions
from taxtui.substrates.local import bubblewrap as local_bwrap
from taxtui.substrates.local.bubblewrap import FIXTURES_INSIDE, INSIDE, PATH
from taxtui.workloads import fixtures

_THREADS: Final = 64
_FOLDERS: Final = ("work", "home", "tmp")


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
        # If possible, a command's own bash enters the sandbox.
        self._bash = self._entering = ""
        if not isolated and self._shell == "bash":
            self._bash = shutil.which("bash", path=self._env["PATH"]) or ""
        if self._bash:  # on the script's first line: the script's lines keep their numbers
            self._entering = f"{BEGIN}; {or_exit(prologue)}"

    async def wait_ready(self, marks: Marks) -> None:
        pass

    async def exec(self, command: Command) -> ExecResult:
        argv = [self._shell, "-c", f"{self._entering}{command.script}"]
        process, mark = self._launch(argv, stdin=bool(command.stdin), enters=self._bash)
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
        if self._substrate.isolated and (unstarted := local_bwrap.not_started(code, stderr.kept)):
            raise unstarted
        return exec_result(code, stdout, stderr)

    async def open_session(self) -> Session:
        process, mark = self._launch(launch_argv(), stdin=True)
        return await FramedShell(process, end=lambda: _end(process, mark)).open()

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

    async def suspend(self, marks: Marks) -> None:
        """Freeze the sandbox's cgroup; a new command waits until the resume."""
        await self._substrate.limiter.freeze(self.name, frozen=True)

    async def resume(self, marks: Marks) -> None:
        await self._substrate.limiter.freeze(self.name, frozen=False)

    async def usage(self) -> Usage:
        return self._substrate.limiter.usage(self.name)

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


async def _end(process: Process, mark: str) -> None:
    await process.close()
    await kill_marked(f"{MARK}={mark}")


class LocalSubstrate:
    """Processes on this machine."""

    name: ClassVar[str] = "local"
    Options: ClassVar[type[msgspec.Struct]] = LocalOptions
    provenance: Literal["measured", "stand_in"] = "measured"
    capabilities = Capabilities(
        bash=shutil.which("bash", path=PATH) is not None,
        acquire=("create", "reset"),
        lifecycle=("suspend",) if can_freeze() else (),
    )

    def __init__(self, options: LocalOptions | None = None) -> None:
        self._options = options or LocalOptions()
        isolation = self._options.isolation
        if isolation == "auto":
            isolation = "plain" if local_bwrap.complaint() else "bwrap"
        self.isolated = isolation == "bwrap"
        self.variant: str = isolation
        fixtures = self._options.fixtures
        self.fixtures = Path(fixtures).expanduser().resolve() if fixtures else None
        self.limiter: Limiter
        self.pool = BlockingPool(_THREADS, "local")

    async def __aenter__(self) -> Self:
        complaint, fix = self._complaint()
        if complaint:
            raise SubstrateUnavailable(f"local: {complaint}", fix=fix)
        if self.fixtures is None:
            # The run has built the fixtures if a tier needs fixtures.
            self.fixtures = await self.pool.run(fixtures.cached)
        self.root = private_folder.private_folder(self.name)
        self.limiter = await best_limiter()
        if not self.limiter.freezes:
            self.capabilities = msgspec.structs.replace(self.capabilities, lifecycle=())
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.pool.__aexit__(*exc)

    def _complaint(self) -> tuple[str, str]:
        """The problem ("" if none) and the fix."""
        if self.fixtures is not None and not self.fixtures.is_dir():
            return f"fixtures={self._options.fixtures} is not a folder", "taxtui setup makes one"
        if self.isolated and (complaint := local_bwrap.complaint()):
            return complaint, "install bubblewrap, or use local:isolation=plain"
        return "", ""

    async def check(self) -> Availability:
        complaint, fix = self._complaint()
        if complaint:
            return Availability(ok=False, detail=complaint, fix=fix)
        limits = (await best_limiter()).label
        version = local_bwrap.version() if self.isolated else ""
        isolation = version if self.isolated else "plain subprocesses: no isolation"
        return Availability(
            ok=True,
            detail=f"ready, {isolation}, limits: {limits}",
            version=version,
            cache="node",
            tools=_programs(PATH if self.isolated else os.environ.get("PATH", PATH)),
            limits=limits,
            facts={"kernel": platform.release()},
        )

    async def create(self, spec: SandboxSpec, marks: Marks) -> LocalSandbox:
        folder = private_folder.make(self.root, spec)
        try:
            if self.isolated:
                local_bwrap.furnish_etc(folder / local_bwrap.ETC)
            self.furnish(folder)
        except OSError as error:
            raise private_folder.not_made(spec, error) from error
        enter = self.limiter.prepare(spec.name, spec.limits)
        marks("limits set")
        return LocalSandbox(self, spec, folder, enter)

    def furnish(self, folder: Path) -> None:
        """Blocking: make the writable folders of a sandbox, empty."""
        folders = [folder / name for name in _FOLDERS]
        private_folder.delete(*folders)
        for inner in folders:
            inner.mkdir()
            if self.isolated:
                local_bwrap.hand_over(inner)

    async def remove(self, name: str) -> None:
        """Kill the processes of a sandbox, remove the limits, delete the files. Raises ``CleanupFailed``."""
        await self.limiter.kill(name)
        await self.limiter.remove(name)
        await private_folder.remove(self.root / name, self.pool)

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        return private_folder.found_in(self.root, run_id)

    async def reap(self, entry: Found) -> None:
        await self.remove(entry.name)


def _programs(search: str) -> frozenset[str]:
    names: set[str] = set()
    for folder in search.split(os.pathsep):
        with contextlib.suppress(OSError):
            names.update(entry.name for entry in Path(folder).iterdir())
    return frozenset(names)
