"""Whether a plan runs more sandboxes at a time than this machine has cores for."""

from __future__ import annotations

import os

from taxtui import shipped
from taxtui.plan.spec import Plan


def cores() -> int:
    """Return the number of cores for this process."""
    allowed = getattr(os, "sched_getaffinity", None)  # only on Linux
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def words(plan: Plan, cores: int) -> str:
    """``docker: 8 sandboxes at a time on 2 cores …``; "" where each sandbox has a core."""
    widest: dict[str, int] = {}
    for cell in plan.cells:
        if shipped.row_of(cell.substrate.name).here:
            widest[cell.substrate.name] = max(cell.concurrency, widest.get(cell.substrate.name, 0))
    crowded = {name: width for name, width in widest.items() if width > cores}
    if not crowded:
        return ""
    machine = f"{cores} core{'' if cores == 1 else 's'}"
    names, highest = ", ".join(crowded), max(crowded.values())
    return f"{names}: {highest} sandboxes at a time on {machine} wait for each other, which the numbers include"
