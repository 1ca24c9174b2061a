"""What is done to the processes of a run, its files and its limits: context managers that yield the blow itself."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.support.command_line import Home

Blow = Callable[[], None]
WATCHDOG: Final = b"taxtui.runner.cleanup.watchdog"
WORKER: Final = b"taxtui.runner.fanout.worker_program"
PIDS: Final = Path("/sys/fs/cgroup/pids")


class NotHere(Exception):
    """This machine lacks what a strike needs."""


@dataclass
class Victim:
    """A run that is about to start, and then its process."""

    home: Home
    path: Path
    source: Random
    process: Any = None
    prefix: list[str] = field(default_factory=list)
    streams: dict[str, Any] = field(default_factory=dict)
    progress: str = "none"
    signals: set[int] = field(default_factory=set)
    """That may end it."""
    tampered: bool = False
    """Whether somebody else has written to its recording."""
    struck: int = 0
    """Processes that were killed."""
    mend: Blow = lambda: None
    """What somebody repairs once it has ended."""

    def send(self, number: int, *pids: int) -> None:
        """A signal, to whatever of these is still there."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def which(self, name: str) -> list[int]:
        """The runner while it runs, its watchdogs, one of its workers, or everything of its home."""
        if name == "runner":
            return [self.process.pid] if self.process.poll() is None else []
        program = {"watchdog": WATCHDOG, "worker": WORKER}.get(name, b"")
        found = sorted(pid for pid in self.home.processes() if program in _argv(pid))
        return self.source.sample(found, min(1, len(found))) if name == "worker" else found


def _argv(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@contextlib.contextmanager
def _kill(victim: Victim, which: str) -> Iterator[Blow]:
    def blow() -> None:
        for each in victim.source.sample(["runner", "watchdog"], 2) if which == "both" else [which]:
            pids = victim.which(each)
            victim.struck += len(pids)
            victim.send(signal.SIGKILL, *pids)

    victim.signals.add(signal.SIGKILL)
    yield blow


@contextlib.contextmanager
def _signal(victim: Victim, numbers: Sequence[int]) -> Iterator[Blow]:
    def blow() -> None:
        for number in numbers:
            victim.send(number, *victim.which("runner"))
            time.sleep(victim.source.uniform(0, 0.3))

    victim.signals |= set(numbers)
    yield blow


@contextlib.contextmanager
def _stop(victim: Victim, which: str) -> Iterator[Blow]:
    for_s = victim.source.uniform(0.05, 2.0)
    stays = which == "watchdog" and victim.source.random() < 0.3

    def blow() -> None:
        stopped = victim.which(which)
        victim.send(signal.SIGSTOP, *stopped)
        if not stays:
            time.sleep(for_s)
            victim.send(signal.SIGCONT, *stopped)

    yield blow


@contextlib.contextmanager
def _terminal(victim: Victim) -> Iterator[Blow]:
    """Closed, as by a lost connection."""
    ours, theirs = os.openpty()
    controlled = f"import fcntl,os,sys;fcntl.ioctl(0,{termios.TIOCSCTTY},0);os.execvp(sys.argv[1],sys.argv[1:])"
    victim.prefix = [sys.executable, "-SIc", controlled]
    victim.streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    victim.progress = "auto"
    victim.signals.add(signal.SIGHUP)
    ends = [ours, theirs]

    def blow() -> None:
        while ends:
            os.close(ends.pop())

    try:
        yield blow
    finally:
        blow()


@contextlib.contextmanager
def _file_system(folder: Path, options: str) -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        raise NotHere("a file system of our own needs root")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _folder(victim: Victim, which: str) -> Path:
    if which == "output":
        victim.path = victim.home.cwd / "out" / "run.msgpack"
        return victim.path.parent
    return victim.home.folder / which


@contextlib.contextmanager
def _disk_full(victim: Victim) -> Iterator[Blow]:
    folder = _folder(victim, victim.source.choice(("output", "output", "state", "tmp")))

    def blow() -> None:
        with contextlib.suppress(OSError), (folder / "ballast").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1024))

    victim.mend = lambda: (folder / "ballast").unlink(missing_ok=True)
    with _file_system(folder, "size=512k"):
        yield blow


@contextlib.contextmanager
def _read_only(victim: Victim) -> Iterator[Blow]:
    """From the start, or from a moment on; then the disk of a recording that is being written cannot be had so."""
    which = victim.source.choice(("output", "state", "tmp"))
    folder, at_once = _folder(victim, which), victim.source.random() < 0.4

    def blow() -> None:
        if not at_once:
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], capture_output=True, check=False)

    def mend() -> None:
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)

    victim.mend = mend
    with _file_system(folder, "size=64m,ro" if at_once else "size=64m"):
        yield blow


@contextlib.contextmanager
def _output(victim: Victim) -> Iterator[Blow]:
    """The recording is cut, removed, replaced or written to by somebody else."""
    what = victim.source.choice(("cut", "removed", "replaced", "written"))
    share = victim.source.random()

    def blow() -> None:
        victim.tampered = True
        with contextlib.suppress(FileNotFoundError):
            if what == "cut":
                os.truncate(victim.path, int(share * victim.path.stat().st_size))
            elif what == "written":
                with victim.path.open("ab") as file:
                    file.write(victim.source.randbytes(40))
            else:
                victim.path.unlink()
                if what == "replaced":
                    victim.path.write_bytes(b"mine")

    yield blow


@contextlib.contextmanager
def _descriptors(victim: Victim) -> Iterator[Blow]:
    limit = victim.source.randint(3, 48)
    before: dict[int, tuple[int, int]] = {}

    def blow() -> None:
        for pid in victim.which("runner") + (victim.which("watchdog") if victim.source.random() < 0.5 else []):
            with contextlib.suppress(ProcessLookupError):
                before[pid] = resource.prlimit(pid, resource.RLIMIT_NOFILE)
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, before[pid][1]))

    def mend() -> None:
        for pid, limits in before.items():
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)

    victim.mend = mend
    yield blow


@contextlib.contextmanager
def _processes(victim: Victim) -> Iterator[Blow]:
    """A control group that has no room for another thread or process."""
    group = PIDS / victim.home.folder.parent.name
    room = victim.source.randint(0, 6)
    try:
        group.mkdir()
    except OSError as error:
        raise NotHere("a control group for processes, version 1, as root") from error
    enter = f'echo 0 >{group}/cgroup.procs && exec "$@"'
    victim.prefix = ["/bin/sh", "-c", enter, "sh"]

    def blow() -> None:
        now = int((group / "pids.current").read_text())
        (group / "pids.max").write_text(str(now + room))

    def mend() -> None:
        (group / "pids.max").write_text("max")

    victim.mend = mend
    try:
        yield blow
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            (PIDS / "cgroup.procs").write_text(pid)
        for inner in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
            inner.rmdir()
        group.rmdir()


@contextlib.contextmanager
def _clock(victim: Victim) -> Iterator[Blow]:
    """The wall clock as its Python reads it is set, once or again and again."""
    step_s = victim.source.choice((-86_400.0, -3600.0, -1.0, 0.7, 5.0, 3600.0, 1e9))
    every_s = victim.source.choice((1e9, 0.05, 0.5))
    flag, site = victim.home.folder / "step", victim.home.folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import os, time\n"
        "wall, wall_ns, steady = time.time, time.time_ns, time.monotonic\n"
        f"def shift():\n    at = {every_s} and int(steady() / {every_s}) % 2\n"
        f"    return {step_s} if os.path.exists({str(flag)!r}) and not at else 0.0\n"
        "time.time = lambda: wall() + shift()\n"
        "time.time_ns = lambda: wall_ns() + int(shift() * 1e9)\n"
    )
    victim.home.env["PYTHONPATH"] = str(site)
    victim.mend = lambda: flag.unlink(missing_ok=True)
    yield flag.touch


Strike = Callable[[Victim], contextlib.AbstractContextManager[Blow]]
SIGNALS: Final[dict[str, tuple[int, ...]]] = {
    **{name: (signal.Signals[name],) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGABRT")},
    "SIGINT twice": (signal.SIGINT, signal.SIGINT),
    "SIGTERM and SIGINT": (signal.SIGTERM, signal.SIGINT),
}
KILLS: Final[dict[str, Strike]] = {
    f"killed: {which}": partial(_kill, which=which) for which in ("runner", "watchdog", "both", "group", "worker")
}
STRIKES: Final[dict[str, Strike]] = {
    **KILLS,
    **{name: partial(_signal, numbers=numbers) for name, numbers in SIGNALS.items()},
    **{f"stopped: {which}": partial(_stop, which=which) for which in ("runner", "watchdog", "all")},
    "terminal closed": _terminal,
    "disk full": _disk_full,
    "read-only": _read_only,
    "output changed": _output,
    "no descriptors": _descriptors,
    "no processes": _processes,
    "clock set": _clock,
}
"""All that is done to processes, by its name."""
