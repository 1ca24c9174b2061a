"""Progress of a run and cells, and the remaining time of a repetition."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from costmodel import LAG_LIMIT_NS, Notice, breakdown, quantile
from taxtui.plan.spec import CellPlan


class Progress(msgspec.Struct):
    """Progress of a run, without warm-ups."""

    planned: int
    in_flight: int = 0
    ended: int = 0
    ok: int = 0
    limit: str = ""  # the plan's limit at which launching stopped
    left_s: float | None = None  # estimated at the end of the last trial; None before the first
    repetition: int = 1  # the current one
    repetitions: int = 1

    @property
    def cut_short(self) -> str:
        """The limit at which the run ended early; else empty."""
        return self.limit if self.ended < self.planned else ""


class CellProgress:
    """Number, durations and start delays of a cell's ended trials."""

    def __init__(self, number: int, plan: CellPlan, ok: int = 0) -> None:
        """``ok``: successes of earlier parts and repetitions of the run."""
        self.cell = number
        self.plan = plan
        self.ok = ok
        self.ended = 0  # counted trials
        self.start_delays_ns: list[int] = []  # of counted trials
        self._took_s, self._took = 0.0, 0  # sum and number of all ended trials, with warm-ups

    def __str__(self) -> str:
        """As in every message: substrate, tier x actions, mode."""
        return f"{self.plan.substrate} {self.plan.tier.name} x {self.plan.actions} {self.plan.mode}"

    @property
    def mean_s(self) -> float | None:
        """Mean time of a trial in a slot, with clean-up; None before the first end."""
        return self._took_s / self._took if self._took else None

    def took(self, seconds: float) -> None:
        self._took_s, self._took = self._took_s + seconds, self._took + 1

    def start_delays(self, at_ns: int) -> Notice | None:
        """Return how late the trials started; None where no start had a scheduled instant."""
        delays_ns = sorted(self.start_delays_ns)
        if not delays_ns or not breakdown.has_schedule(str(self.plan.arrival)):
            return None
        p50, p99, highest = (quantile(delays_ns, q) / 1e6 for q in (0.5, 0.99, 1.0))
        late = sum(delay_ns > LAG_LIMIT_NS for delay_ns in delays_ns)
        text = f"{self}: {self.plan.arrival}: started late by p50 {p50:,.1f}, p99 {p99:,.1f}, at most {highest:,.1f} ms"
        text += f"; {late:,} of {len(delays_ns):,} by more than {LAG_LIMIT_NS / 1e6:g} ms, which is in response"
        return Notice(at_ns, "warning" if late else "info", text)


def eta_s(cells: Iterable[CellProgress], *, side_by_side: bool) -> float | None:
    """Return the seconds until the end of the last trial; None before the end of the first.

    A cell's trials take as long as its arrival says of trials of this length, however many slots there are. A cell that
    has not begun is taken to be as slow as the mean of the others. ``side_by_side``: substrates are measured at the
    same time, so the slowest counts.
    """
    cells = list(cells)
    means = [mean for cell in cells if (mean := cell.mean_s) is not None]
    if not means:
        return None
    typical = sum(means) / len(means)
    sides: dict[str, float] = {}
    for cell in cells:
        plan, trials = cell.plan, max(0, cell.plan.trials - cell.ended)
        side = str(plan.substrate) if side_by_side else ""
        mean = typical if cell.mean_s is None else cell.mean_s
        sides[side] = sides.get(side, 0.0) + plan.arrival.wall_ns(trials, plan.concurrency, mean * 1e9) / 1e9
    return max(sides.values())
