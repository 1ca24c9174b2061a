"""Stop and continue all processes of a sandbox on this machine, and read their usage.

A cgroup of version 2 has a freezer. Elsewhere each process gets SIGSTOP, and SIGCONT to continue: a process can see
both signals, and a shell with job control reports them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from taxtui.errors import ExecFailed
from taxtui.sandboxes.kit.limits import Limiter
from taxtui.sandboxes.lifecycle import UNKNOWN, Usage

FREEZER: Final = "cgroup freezer"
SIGNALS: Final = "SIGSTOP and SIGCONT"
_WITHIN_S: Final = 5.0
_POLL_S: Final = 0.001
_STOPPED: Final = frozenset("TtZX")
"""States of a stopped, traced or ended process."""
_MEMORY: Final = ("memory.current", "memory.usage_in_bytes")


async def stop(limiter: Limiter, name: str) -> None:
    """Stop every process of a sandbox; return when all are stopped. Raises ``ExecFailed``."""
    if (group := _freezer(limiter, name)) is not None:
        (group / "cgroup.freeze").write_text("1")
        await _until(lambda: "frozen 1" in (group / "cgroup.events").read_text(), name)
        return

    def stopped() -> bool:
        running = [pid for pid in limiter.processes(name) if _state(pid) not in _STOPPED]
        _send(running, signal.SIGSTOP)
        return not running

    await _until(stopped, name)


async def continue_all(limiter: Limiter, name: str) -> None:
    """Continue every process of a sandbox. Raises ``ExecFailed``."""
    if (group := _freezer(limiter, name)) is not None:
        (group / "cgroup.freeze").write_text("0")
        await _until(lambda: "frozen 0" in (group / "cgroup.events").read_text(), name)
        return
    _send(limiter.processes(name), signal.SIGCONT)


def means(limiter: Limiter) -> str:
    """The means of ``stop`` on this machine."""
    return FREEZER if limiter.label == "cgroup v2" else SIGNALS


def usage(limiter: Limiter, name: str) -> Usage:
    """Memory and CPU time of a sandbox, as far as the cgroup reports them."""
    memory_bytes = cpu_ns = UNKNOWN
    for group in limiter.groups(name):
        for file in _MEMORY:
            with contextlib.suppress(OSError, ValueError):
                memory_bytes = int((group / file).read_text())
        with contextlib.suppress(OSError, ValueError):
            facts = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
            cpu_ns = int(facts["usage_usec"]) * 1000 if "usage_usec" in facts else cpu_ns
    return Usage(memory_bytes=memory_bytes, cpu_ns=cpu_ns)


def _freezer(limiter: Limiter, name: str) -> Path | None:
    return next((group for group in limiter.groups(name) if (group / "cgroup.freeze").exists()), None)


async def _until(reached: Callable[[], bool], name: str) -> None:
    give_up = time.monotonic() + _WITHIN_S
    try:
        while not reached():
            if time.monotonic() > give_up:
                raise ExecFailed(f"{name}: its processes cannot be stopped within {_WITHIN_S:g} s")
            await asyncio.sleep(_POLL_S)
    except OSError as error:
        raise ExecFailed(f"{name}: cannot stop or continue its processes: {error.strerror}") from error


def _send(pids: set[int] | list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _state(pid: int) -> str:
    """The state of a process as one letter of /proc; ``X`` for an ended process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"
