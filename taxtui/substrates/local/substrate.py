"""Sandboxes on this machine: bubblewrap where it works, else plain subprocesses in a directory of their own.

A sandbox is a directory under a private folder of this user, with ``work``, ``home`` and ``tmp`` in it; each action
is one process launched into it. What carries state from one action to the next are its files. Under bubblewrap a
background process ends with its action, and everything ends with the process that called us.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import shlex
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Final, Literal, Self

import msgspec

from taxtui.errors import CleanupFailed, CreateFailed, ExecFailed, SandboxLost, SubstrateUnavailable
from taxtui.plan.spec import FIXTURES_ENV, Command, SandboxSpec
from taxtui.sandboxes.kit import labels
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.framed_shell import FramedShell, after, launch_argv, overdue, unbroken
from taxtui.sandboxes.kit.kill import MARK, kill_marked, new_mark
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.kit.session import OwnedStream
from taxtui.sandboxes.protocol import Availability, Capabilities, ExecResult, Found, Marks, Session
from taxtui.substrates.local import bubblewrap as local_bwrap
from taxtui.substrates.local.bubblewrap import FIXTURES_INSIDE, INSIDE, PATH
from taxtui.substrates.local.limits import SANDBOX_ENV, Limiter, best_limiter
from taxtui.workloads import fixtures

_FOLDERS: Final = ("work", "home", "tmp")
_META: Final = "meta.json"
_REMOVERS: Final = 4


class LocalOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``-s local:isolation=plain,fixtures=PATH``."""

    isolation: Literal["auto", "bwrap", "plain"] = "auto"
    fixtures: str = ""  # a folder with attrs.git and wheels/; by default those of `taxtui fixtures build`, if built


class Meta(msgspec.Struct, frozen=True):
    """What a sandbox's directory says of it: enough to find and remove it without its creator."""

    labels: dict[str, str]
    created_unix_s: float


class LocalSubstrate:
    """Processes on this machine."""

    name: ClassVar[str] = "local"
    Options: ClassVar[type[msgspec.Struct]] = LocalOptions
    provenance: Literal["measured", "stand_in"] = "measured"
    capabilities = Capabilities(
        server_side_deadline=False,  # nobody but us looks after a directory
        bash=shutil.which("bash", path=PATH) is not None,
        acquire=("create", "reset"),
    )

    def __init__(self, options: LocalOptions | None = None) -> None:
        """Look whether bubblewrap works, unless told what to use."""
        self._options = options or LocalOptions()
        isolation = self._options.isolation
        if isolation == "auto":
            isolation = "plain" if local_bwrap.complaint() else "bwrap"
        self.variant: str = isolation
        self.fixtures = Path(self._options.fixtures).expanduser().resolve() if self._options.fixtures else None
        self.limiter: Limiter
        self.pool = BlockingPool(_REMOVERS, "local")

    async def __aenter__(self) -> Self:
        """Find out which limits can be had. Raises ``SubstrateUnavailable``."""
        complaint = self._complaint()
        if complaint:
            raise SubstrateUnavailable(f"local: {complaint}")
        if self.fixtures is None:
            # The run has had them built where a tier asks for them.
            self.fixtures = (await self.pool.run(fixtures.cached)).value
        self.root = _private_root()
        self.limiter = await best_limiter()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Wait for removals under way."""
        await self.pool.__aexit__(*exc)

    def _complaint(self) -> str:
        folder = self._options.fixtures
        if folder and not Path(folder).expanduser().is_dir():
            return f"fixtures={folder} is not a folder; taxtui fixtures build makes one"
        return local_bwrap.complaint() if self.variant == "bwrap" else ""

    async def check(self) -> Availability:
        """As ``Substrate.check``."""
        complaint = self._complaint()
        if complaint:
            return Availability(ok=False, detail=complaint, fix="install bubblewrap, or use local:isolation=plain")
        limits = (await best_limiter()).label
        isolated = self.variant == "bwrap"
        version = local_bwrap.version() if isolated else ""
        what = version if isolated else "plain subprocesses: no isolation"
        return Availability(
            ok=True,
            detail=f"ready, {what}, limits: {limits}",
            version=version,
            cache="node",
            tools=_programs(PATH if isolated else os.environ.get("PATH", PATH)),
            limits=limits,
            facts={"kernel": platform.release()},
        )

    async def create(self, spec: SandboxSpec, marks: Marks) -> LocalSandbox:
        """As ``Substrate.create``."""
        folder = self.root / spec.name
        meta = Meta(labels=spec.labels, created_unix_s=time.time())
        try:
            folder.mkdir(mode=0o700)
            (folder / _META).write_bytes(msgspec.json.encode(meta))
            if self.variant == "bwrap":
                local_bwrap.furnish_etc(folder / local_bwrap.ETC)
            self.furnish(folder)
        except FileExistsError:
            run_id = spec.labels.get(LABEL_RUN, "")
            fix = f"taxtui sweep --run {run_id} --force removes it"  # its deadline is ahead
            raise CreateFailed(f"{spec.name} exists already", fix=fix) from None
        except OSError as error:
            raise CreateFailed(f"cannot make a directory for {spec.name}: {error.strerror}") from error
        enter = self.limiter.prepare(spec.name, spec.limits)
        marks("limits set")
        return LocalSandbox(self, spec, folder, enter)

    def furnish(self, folder: Path) -> None:
        """Blocking: make the folders that a sandbox may write to, empty."""
        for name in _FOLDERS:
            _delete(folder / name)
            (folder / name).mkdir()
            if self.variant == "bwrap":
                local_bwrap.hand_over(folder / name)

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``."""
        folders = sorted(self.root.iterdir()) if self.root.is_dir() else []
        found = [each for folder in folders if folder.is_dir() and (each := _found(folder)) is not None]
        return [each for each in found if run_id is None or each.run_id == run_id]

    async def reap(self, found: Found) -> None:
        """As ``Substrate.reap``."""
        await self.remove(found.name)

    async def remove(self, name: str) -> None:
        """Kill what runs in a sandbox, take its limits down, delete its files. Raises ``CleanupFailed``."""
        await self.limiter.kill(name)
        await self.limiter.remove(name)
        folder = self.root / name
        try:
            await unbroken(self.pool.run(lambda: _delete(folder)))
        except ExecFailed as error:
            raise CleanupFailed(f"{name}: its directory is still being deleted: {error}") from error
        if folder.exists():
            raise CleanupFailed(f"{name}: its directory cannot be deleted")


class LocalSandbox:
    """One directory, and what is launched into it."""

    def __init__(self, substrate: LocalSubstrate, spec: SandboxSpec, folder: Path, enter: str) -> None:
        """``enter``: the limiter's shell prologue."""
        self.name = spec.name
        self._substrate = substrate
        self._folder = folder
        isolated = substrate.variant == "bwrap"
        base = INSIDE if isolated else folder
        fixtures = FIXTURES_INSIDE if isolated and substrate.fixtures else substrate.fixtures
        self._env = {
            "PATH": PATH if isolated else os.environ.get("PATH", PATH),
            "LANG": "C.UTF-8",
            "HOME": str(base / "home"),
            "TMPDIR": "/tmp" if isolated else str(base / "tmp"),
            **({FIXTURES_ENV: str(fixtures)} if fixtures else {}),
            **spec.env,
            SANDBOX_ENV: spec.name,
        }
        wrapped = local_bwrap.wrap(folder, substrate.fixtures, network=spec.network) if isolated else []
        go = "" if isolated else f"cd {shlex.quote(str(folder / 'work'))} && "
        prologue = f"{enter}{go}"
        self._prefix = ["/bin/sh", "-c", f'{prologue}exec "$@"', "sh", *wrapped] if prologue else wrapped
        self._shell = "bash" if substrate.capabilities.bash else "sh"

    async def wait_ready(self, marks: Marks) -> None:
        """There is nothing to wait for."""

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``."""
        process, mark = self._launch([self._shell, "-c", command.script], stdin=bool(command.stdin))
        try:
            async with asyncio.timeout(command.timeout_s):
                if command.stdin:
                    process.feed(command.stdin, end=True)
                stdout, stderr = await process.output()
        except TimeoutError:
            raise await overdue(_end(process, mark), command.timeout_s) from None
        except BaseException as error:
            await after(_end(process, mark), error)
            raise
        code = process.returncode
        assert code is not None
        if code == 1 and stderr.startswith((b"bwrap: ", b"setpriv: ")):
            raise ExecFailed(stderr.decode(errors="replace").strip())
        return ExecResult(code, stdout, stderr)

    async def open_session(self) -> Session:
        """As ``Sandbox.open_session``."""
        process, mark = self._launch(launch_argv(), stdin=True)
        return await FramedShell.open(OwnedStream(process, lambda: _end(process, mark)))

    def _launch(self, argv: list[str], *, stdin: bool) -> tuple[Process, str]:
        """Start a program inside; with it the mark of all that comes of it."""
        if not (self._folder / "work").is_dir():
            if self._folder.exists():
                raise ExecFailed(f"{self.name}: a command has removed its working folder")
            raise SandboxLost(f"{self.name} has been removed")
        mark = new_mark()
        argv = [*self._prefix, *argv]
        argv[0] = shutil.which(argv[0], path=self._env["PATH"]) or argv[0]
        return Process(argv, {**self._env, MARK: mark}, stdin=stdin), mark

    async def reset(self, marks: Marks) -> None:
        """Kill what still runs and empty the three folders, which is how they were after create."""
        await self._substrate.limiter.kill(self.name)
        marks("processes killed")
        try:
            await unbroken(self._substrate.pool.run(lambda: self._substrate.furnish(self._folder)))
        except OSError as error:
            raise ExecFailed(f"{self.name}: cannot empty its folders: {error.strerror}") from error

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``."""
        await self._substrate.remove(self.name)


async def _end(process: Process, mark: str) -> None:
    await process.close()
    await kill_marked(f"{MARK}={mark}")


def _private_root() -> Path:
    """The folder for this user's sandboxes, which nobody else may have prepared or can look into."""
    root = Path(tempfile.gettempdir()) / f"taxtui-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    status = root.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise SubstrateUnavailable(f"local: {root} is not a private folder of yours", fix="remove it")
    return root


def _found(folder: Path) -> Found | None:
    """What stands in a folder; None where it is removed while we look."""
    try:
        meta = msgspec.json.decode((folder / _META).read_bytes(), type=Meta)
    except (OSError, msgspec.DecodeError):  # its creator died before it could write this: the name has the run
        run_id = folder.name.removeprefix("taxtui-").rpartition("-")[0]
        try:
            meta = Meta(labels={LABEL_RUN: run_id}, created_unix_s=folder.stat().st_mtime)
        except FileNotFoundError:
            return None
    age_s = time.time() - meta.created_unix_s
    return labels.found(meta.labels, name=folder.name, handle=str(folder), age_s=age_s)


def _delete(folder: Path) -> None:
    """Also what the sandbox has made unwritable for itself."""

    def unlock(remove: Callable[[str], object], path: str, _: object) -> None:
        with contextlib.suppress(OSError):
            Path(path).parent.chmod(0o700)
            if not Path(path).is_symlink():
                Path(path).chmod(0o700)
            shutil.rmtree(path) if Path(path).is_dir() else Path(path).unlink()

    if folder.exists():
        shutil.rmtree(folder, onerror=unlock)


def _programs(search: str) -> frozenset[str]:
    names: set[str] = set()
    for folder in search.split(os.pathsep):
        with contextlib.suppress(OSError):
            names.update(entry.name for entry in Path(folder).iterdir())
    return frozenset(names)
