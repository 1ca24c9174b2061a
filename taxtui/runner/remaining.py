"""How long a run still takes, from what its trials have taken so far."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

from taxtui.plan.spec import CellPlan


class Measured(Protocol):
    """A cell while it is measured."""

    @property
    def plan(self) -> CellPlan:
        """What was planned of it."""

    @property
    def ended(self) -> int:
        """Counted trials that have ended."""

    @property
    def mean_s(self) -> float | None:
        """How long its trials took a lane, clean-up and warm-ups included; None before the first has ended."""


def left_s(cells: Iterable[Measured], *, side_by_side: bool) -> float | None:
    """Seconds until the last trial has ended; None before the first has.

    A cell goes in rounds of as many trials as it runs at a time, and a round takes as long as a trial, however many
    lanes there are. A cell that has not begun is taken to be as slow as the mean of the others. ``side_by_side``:
    substrates are measured at the same time, so the slowest counts.
    """
    cells = list(cells)
    known = [mean for cell in cells if (mean := cell.mean_s) is not None]
    if not known:
        return None
    typical = sum(known) / len(known)
    sides: dict[str, float] = {}
    for cell in cells:
        rounds = math.ceil((cell.plan.trials - cell.ended) / cell.plan.concurrency)
        side = str(cell.plan.substrate) if side_by_side else ""
        mean = typical if cell.mean_s is None else cell.mean_s
        sides[side] = sides.get(side, 0.0) + max(0, rounds) * mean
    return max(sides.values())
