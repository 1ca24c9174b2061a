"""Enforce the CPU, memory and process limits of a sandbox on this machine, by the best available means.

A limiter returns a shell prologue. A launcher runs the prologue and then becomes the command: the limits hold for all
processes of the command. In this order: cgroup v2 with a delegated subtree, cgroup v1 as root, none.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import sys
import time
from pathlib import Path
from typing import Final

from taxtui.errors import CleanupFailed, CreateFailed, ExecFailed, SubstrateError
from taxtui.plan.spec import Limits
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel, with_cleanup
from taxtui.sandboxes.kit.kill import kill_all, kill_marked
from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.lifecycle import UNKNOWN, Usage

SANDBOX_ENV: Final = "TAXTUI_SANDBOX"
"""An environment variable of every process in a sandbox on this machine: the sandbox's name."""

_CGROUPS: Final = Path("/sys/fs/cgroup")
_PERIOD_US: Final = 100_000
_GONE_WITHIN_S: Final = 5.0
_PROBE: Final = "taxtui-probe-"
"""Prefix of a trial's cgroup; the pid of the process follows."""


class Limiter:
    """No limits; the base class of every means of enforcing limits."""

    label = "none"
    """For ``Availability.limits``."""
    freezes = False
    """Whether ``freeze`` is possible."""

    def prepare(self, name: str, limits: Limits) -> str:
        """Set up a new sandbox's limits; return shell commands for the calling process. Raises ``CreateFailed``."""
        return ""

    async def kill(self, name: str) -> None:
        """Kill every process inside; return when all are gone. Raises ``CleanupFailed``."""
        await kill_marked(f"{SANDBOX_ENV}={name}")

    async def remove(self, name: str) -> None:
        """Remove the limits after :meth:`kill`. Idempotent. Raises ``CleanupFailed``."""

    async def freeze(self, name: str, *, frozen: bool) -> None:
        """Stop or continue every process inside; return when all are. Raises ``ExecFailed``."""
        raise ExecFailed(f"{name}: processes cannot be stopped without cgroup v2")

    def usage(self, name: str) -> Usage:
        """Memory and CPU time of a sandbox, as far as known."""
        return Usage()


def or_exit(prologue: str) -> str:
    """A prologue before a script: a failed prologue exits. The script may begin on the same line."""
    return f"{prologue.removesuffix('&& ')}|| exit; " if prologue else ""


class CgroupLimiter(Limiter):
    """A cgroup per sandbox: one directory in version 2, one for each controller in version 1."""

    def __init__(self, label: str, parents: tuple[Path, ...], files: tuple[str, ...], *, freezes: bool = True) -> None:
        """Keep the folders and files of the limits.

        Args:
            label: for ``Availability.limits``.
            parents: of the sandboxes' cgroups; the last is of version 2, if any is.
            files: the limit files ``cpu``, ``memory`` and ``pids`` in this version's names.
            freezes: the last parent is of version 2, which has a freezer.
        """
        self.label = label
        self.freezes = freezes
        self._parents = parents
        self._cpu, self._memory, self._pids = files

    def prepare(self, name: str, limits: Limits) -> str:
        quota_us = max(1000, round(limits.cpus * _PERIOD_US))
        values = {
            self._cpu: f"{quota_us} {_PERIOD_US}" if self._cpu == "cpu.max" else str(quota_us),
            self._memory: str(limits.memory_mib << 20),
            self._pids: str(limits.pids),
        }
        try:
            for group in self.groups(name):
                group.mkdir(parents=True, exist_ok=True)
                for file, value in values.items():
                    if (group / file).exists():
                        (group / file).write_text(value)
        except OSError as error:
            raise CreateFailed(f"cannot set up the {self.label} limits: {error.strerror}") from error
        # In version 1 the prologue's single-threaded shell enters by thread: an entry by process waits for a grace
        # period of the kernel.
        files = (
            group / "tasks" if (group / "tasks").exists() else group / "cgroup.procs" for group in self.groups(name)
        )
        return "".join(f"echo 0 >{file} && " for file in files)

    async def kill(self, name: str) -> None:
        await kill_all(lambda: self._processes(name))

    async def remove(self, name: str) -> None:
        give_up = time.monotonic() + _GONE_WITHIN_S
        for group in self.groups(name):
            while True:
                try:
                    group.rmdir()
                except FileNotFoundError:
                    break
                except OSError as error:
                    # Busy until the last zombie has been reaped.
                    if error.errno != errno.EBUSY or time.monotonic() > give_up:
                        raise CleanupFailed(f"{name}: cannot remove the cgroup: {error.strerror}") from error
                    await asyncio.sleep(0.001)
                else:
                    break

    async def freeze(self, name: str, *, frozen: bool) -> None:
        group, give_up = self.groups(name)[-1], time.monotonic() + _GONE_WITHIN_S
        try:
            (group / "cgroup.freeze").write_text(str(int(frozen)))
            while f"frozen {int(frozen)}" not in (group / "cgroup.events").read_text():
                if time.monotonic() > give_up:
                    raise ExecFailed(f"{name}: its processes are not stopped within {_GONE_WITHIN_S:g} s")
                await asyncio.sleep(0.001)
        except OSError as error:
            raise ExecFailed(f"{name}: cannot stop or continue its processes: {error.strerror}") from error

    def usage(self, name: str) -> Usage:
        memory_bytes = cpu_ns = UNKNOWN
        group = self.groups(name)[-1]
        with contextlib.suppress(OSError, ValueError):
            memory_bytes = int((group / "memory.current").read_text())
        with contextlib.suppress(OSError, ValueError, KeyError):
            facts = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
            cpu_ns = int(facts["usage_usec"]) * 1000
        return Usage(memory_bytes=memory_bytes, cpu_ns=cpu_ns)

    def groups(self, name: str) -> list[Path]:
        """The cgroups of a sandbox."""
        return [parent / name for parent in self._parents]

    def _processes(self, name: str) -> set[int]:
        pids: set[int] = set()
        for group in self.groups(name):
            with contextlib.suppress(OSError):
                pids.update(map(int, (group / "cgroup.procs").read_text().split()))
        return pids


async def best_limiter(cgroups: Path = _CGROUPS) -> Limiter:
    """The strongest limiter that passes a trial."""
    for candidate in _candidates(cgroups):
        if await _usable(candidate):
            return candidate
    return Limiter()


def can_freeze() -> bool:
    """Whether the strongest limiter of this machine has a freezer, before any trial."""
    return any(candidate.freezes for candidate in _candidates(_CGROUPS)[:1])


def _candidates(cgroups: Path) -> list[CgroupLimiter]:
    """The limiters of this machine, the strongest first."""
    if sys.platform != "linux":
        return []
    return [limiter for limiter in (_version_2(cgroups), _version_1(cgroups)) if limiter is not None]


def _version_2(cgroups: Path) -> CgroupLimiter | None:
    """The nearest ancestor of this process's cgroup with all three controllers for children."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    group_path = next((line[3:] for line in lines if line.startswith("0::")), None)
    if group_path is None or not (cgroups / "cgroup.controllers").exists():
        return None
    group = cgroups / group_path.lstrip("/")
    for parent in (group, *group.parents):
        if not parent.is_relative_to(cgroups):
            break
        with contextlib.suppress(OSError):
            handed_down = (parent / "cgroup.subtree_control").read_text().split()
            if {"cpu", "memory", "pids"} <= set(handed_down) and os.access(parent, os.W_OK):
                return CgroupLimiter("cgroup v2", (parent,), ("cpu.max", "memory.max", "pids.max"))
    return None


def _version_1(cgroups: Path) -> CgroupLimiter | None:
    controllers = [cgroups / name for name in ("cpu", "memory", "pids")]
    if os.geteuid() != 0 or not all((path / "cgroup.procs").exists() for path in controllers):
        return None
    files = ("cpu.cfs_quota_us", "memory.limit_in_bytes", "pids.max")
    # Many machines with version 1 have version 2 beside it, without controllers but with the freezer.
    freezes = (cgroups / "unified/cgroup.procs").exists()
    folders = [*controllers, *([cgroups / "unified"] if freezes else [])]
    return CgroupLimiter("cgroup v1", tuple(path / "taxtui" for path in folders), files, freezes=freezes)


async def _usable(limiter: CgroupLimiter) -> bool:
    """Whether a process can really enter: a writable directory is no proof."""
    name = f"{_PROBE}{os.getpid()}"
    _remove_old_probes(limiter)
    try:
        try:
            enter = limiter.prepare(name, Limits())
            entered = Process(["/bin/sh", "-c", f"{enter}:"], {}, stdin=False)
            await entered.output()
        except BaseException as error:
            await with_cleanup(limiter.remove(name), error)
            raise
        await finish_despite_cancel(limiter.remove(name))
    except SubstrateError:
        return False
    return entered.returncode == 0


def _remove_old_probes(limiter: CgroupLimiter) -> None:
    """Remove the groups of killed processes; the group of a living process may belong to a trial in progress."""
    for group in limiter.groups(f"{_PROBE}*"):
        for probe in group.parent.glob(group.name):
            with contextlib.suppress(OSError):  # busy, or removed by another process
                if not Path("/proc", probe.name.removeprefix(_PROBE)).exists():
                    probe.rmdir()
