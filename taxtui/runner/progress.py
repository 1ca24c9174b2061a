"""Progress of a run and cells."""

from __future__ import annotations

import msgspec

from taxtui.plan.spec import CellPlan


class Progress(msgspec.Struct):
    """Progress of a run, without warm-ups."""

    planned: int
    in_flight: int = 0
    ended: int = 0
    ok: int = 0
    limit: str = ""  # the plan's limit at which launching stopped
    before: int = 0  # trials that ended in earlier parts of a resumed run
    repetition: int = 1  # the current one
    repetitions: int = 1

    @property
    def cut_short(self) -> str:
        """The limit at which the run ended early; else empty."""
        return self.limit if self.ended < self.planned else ""

    def left_s(self, elapsed_s: float) -> float | None:
        """Return the remaining time by the pace so far; None before the first end in this part of the run."""
        done = self.ended - self.before
        return elapsed_s * max(0, self.planned - self.ended) / done if done else None


class CellProgress:
    """Number of a cell's successes."""

    def __init__(self, number: int, plan: CellPlan, ok: int = 0) -> None:
        """``ok``: successes of earlier parts and repetitions of the run."""
        self.cell = number
        self.plan = plan
        self.ok = ok

    def __str__(self) -> str:
        """As in every message: substrate, tier x actions, mode."""
        return f"{self.plan.substrate} {self.plan.tier.name} x {self.plan.actions} {self.plan.mode}"
