"""Warnings about this machine before a measurement: too many sandboxes at a time, or another load."""

from __future__ import annotations

import os
import time
from typing import Final

from taxtui import shipped
from taxtui.plan.spec import Plan

LOAD_LIMIT: Final = 0.5
"""Load per core of a busy machine: a measurement needs a core for the runner and one for the sandbox.

At a load of ten per core, the ratio of two substrates was half of the ratio on an idle machine.
"""
LOOK_EVERY_S: Final = 5.0


def cores() -> int:
    """Return the number of cores for this process."""
    allowed = getattr(os, "sched_getaffinity", None)  # only on Linux
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def crowding_warning(plan: Plan) -> str:
    """``docker: 8 sandboxes at a time on 2 cores …``; "" where each sandbox has a core."""
    widest: dict[str, int] = {}
    for cell in plan.cells:
        if shipped.row_of(cell.substrate.name).here:
            widest[cell.substrate.name] = max(cell.concurrency, widest.get(cell.substrate.name, 0))
    crowded = {name: width for name, width in widest.items() if width > cores()}
    if not crowded:
        return ""
    machine = f"{cores()} core{'' if cores() == 1 else 's'}"
    names, highest = ", ".join(crowded), max(crowded.values())
    return f"{names}: {highest} sandboxes at a time on {machine} wait for each other, which the numbers include"


def load_warning() -> str:
    """Return a warning for a high load of the last minute; "" for a lower or unknown load."""
    try:
        load = os.getloadavg()[0] / cores()
    except (AttributeError, OSError):
        return ""
    if load <= LOAD_LIMIT:
        return ""
    return (
        f"this machine is busy: its load is {load:.1f} per core (limit {LOAD_LIMIT:g}), so durations may be too long; "
        "--wait-idle 10m waits for an idle machine"
    )


def wait_until_idle(limit_s: float) -> None:
    """Return once the load is within the limit, or after ``limit_s``."""
    until = time.monotonic() + limit_s
    while load_warning() and (left_s := until - time.monotonic()) > 0:
        time.sleep(min(LOOK_EVERY_S, left_s))
