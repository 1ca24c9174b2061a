"""Whether the machine has other things to do before a measurement begins."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

from taxtui.plan.crowding import cores

LOAD_LIMIT: Final = 0.5
"""Load per core above which a machine is busy: a measurement needs a core for itself and one for its sandbox.

At a load of ten per core, a recording said half of the ratio of two substrates that the idle machine says.
"""
LOOK_EVERY_S: Final = 5.0


def load_per_core() -> float | None:
    """Average of the last minute; None where the system does not report it."""
    try:
        return os.getloadavg()[0] / cores()
    except (AttributeError, OSError):
        return None


def words(load: float | None) -> str:
    """One line about a load that is too high; "" where it is not, or unknown."""
    if load is None or load <= LOAD_LIMIT:
        return ""
    return (
        f"this machine is busy: its load is {load:.1f} per core (limit {LOAD_LIMIT:g}), so durations may be too long; "
        "--wait-idle 10m waits until it is idle"
    )


def wait(limit_s: float, tell: Callable[[str], None]) -> None:
    """Return once the load is within its limit, or after ``limit_s``; ``tell`` gets a line if there is a wait."""
    until = time.monotonic() + limit_s
    announced = False
    while (load := load_per_core()) is not None and load > LOAD_LIMIT and time.monotonic() < until:
        if not announced:
            announced = True
            tell(f"waiting until the load is at most {LOAD_LIMIT:g} per core; it is {load:.1f}")
        time.sleep(min(LOOK_EVERY_S, max(0.0, until - time.monotonic())))
