"""Load of the machine before a measurement."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

from taxtui.plan.crowding import cores

LOAD_LIMIT: Final = 0.5
"""Load per core of a busy machine: a measurement needs a core for the runner and one for the sandbox.

At a load of ten per core, the ratio of two substrates was half of the ratio on an idle machine.
"""
LOOK_EVERY_S: Final = 5.0


def load_per_core() -> float | None:
    """Return the average of the last minute; None where unknown."""
    try:
        return os.getloadavg()[0] / cores()
    except (AttributeError, OSError):
        return None


def words(load: float | None) -> str:
    """Return a warning for a high load; "" for a lower or unknown load."""
    if load is None or load <= LOAD_LIMIT:
        return ""
    return (
        f"this machine is busy: its load is {load:.1f} per core (limit {LOAD_LIMIT:g}), so durations may be too long; "
        "--wait-idle 10m waits for an idle machine"
    )


def wait(limit_s: float, tell: Callable[[str], None]) -> None:
    """Return once the load is within the limit, or after ``limit_s``; ``tell`` gets a line if there is a wait."""
    until = time.monotonic() + limit_s
    announced = False
    while (load := load_per_core()) is not None and load > LOAD_LIMIT and time.monotonic() < until:
        if not announced:
            announced = True
            tell(f"waiting until the load is at most {LOAD_LIMIT:g} per core, now {load:.1f}")
        time.sleep(min(LOOK_EVERY_S, max(0.0, until - time.monotonic())))
