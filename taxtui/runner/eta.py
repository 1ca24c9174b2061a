"""How long a repetition of a run still takes, from the time that its trials took so far."""

from __future__ import annotations

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
        """How long its trials took a slot, clean-up and warm-ups included; None before the first has ended."""


def eta_s(cells: Iterable[Measured], *, side_by_side: bool) -> float | None:
    """Seconds until the last trial has ended; None before the first has.

    A cell's trials take as long as its arrival says of trials of this length, however many slots there are. A cell that
    has not begun is taken to be as slow as the mean of the others. ``side_by_side``: substrates are measured at the
    same time, so the slowest counts.
    """
    cells = list(cells)
    known = [mean for cell in cells if (mean := cell.mean_s) is not None]
    if not known:
        return None
    typical = sum(known) / len(known)
    sides: dict[str, float] = {}
    for cell in cells:
        plan, left = cell.plan, max(0, cell.plan.trials - cell.ended)
        side = str(plan.substrate) if side_by_side else ""
        mean = typical if cell.mean_s is None else cell.mean_s
        sides[side] = sides.get(side, 0.0) + plan.arrival.wall_ns(left, plan.concurrency, mean * 1e9) / 1e9
    return max(sides.values())
