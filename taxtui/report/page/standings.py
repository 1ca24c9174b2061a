"""Ranks of substrates for one workload, by worker-hours and by dollars, and the cost frontier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from costmodel import DIFFERS, Interval, Place, Row, WorkLine, judge_rows
from taxtui.report.measured.rows import Rank

ON: Final = "on it"
TIED: Final = "tie"
OFF: Final = "off it"
"""Relation to the frontier: no substrate is better in both hours and dollars, a substrate may be, or one surely is."""


class PlaceStanding(NamedTuple):
    """One substrate."""

    place: Place
    row: Row
    hours: Interval  # worker-hours
    hours_rank: Rank
    usd: Interval | None  # None: no price
    usd_rank: Rank | None
    frontier: str | None  # ``ON``, ``TIED`` or ``OFF``; None without a price


def standings(line: WorkLine, run_sd: float | None = None) -> list[PlaceStanding]:
    """Return the ranked entries of one workload, the fewest hours first."""
    rows = [(entry.place, entry.row) for entry in line.ranked if entry.row.worker_hours is not None]
    results = []
    for place, row in rows:
        rivals = [rival for _, rival in rows if rival is not row]
        priced = [rival for rival in rivals if usd_of(rival) is not None]
        assert row.worker_hours is not None
        usd = usd_of(row)
        results.append(
            PlaceStanding(
                place,
                row,
                row.worker_hours,
                _rank(row, rivals, hours_of, run_sd),
                usd,
                None if usd is None else _rank(row, priced, usd_of, run_sd),
                None if usd is None else _frontier(row, priced, run_sd),
            )
        )
    return sorted(results, key=lambda item: item.hours.value)


def hours_of(row: Row) -> Interval | None:
    """Return the worker-hours."""
    return row.worker_hours


def usd_of(row: Row) -> Interval | None:
    """Return the total dollars; the interval of the workers' part follows from their hours."""
    cost, hours = row.cost, row.worker_hours
    if cost is None or hours is None:
        return None
    sandbox, worker = cost.sandbox_usd, cost.worker_usd or 0.0

    def limit(sandbox_usd: float | None, worker_hours: float | None) -> float | None:
        if sandbox_usd is None or worker_hours is None:
            return None
        return sandbox_usd + cost.idle_pool_usd + worker * (worker_hours / hours.value if hours.value else 1.0)

    return Interval(cost.total_usd, limit(sandbox.low, hours.low), limit(sandbox.high, hours.high))


Amount = Callable[[Row], Interval | None]


def _surely_below(row: Row, rival: Row, amount: Amount, run_sd: float | None) -> bool:
    result = judge_rows(row, rival, amount(row), amount(rival), run_sd)
    return result.verdict.kind == DIFFERS and result.value.value < 0


def _rank(row: Row, rivals: Sequence[Row], amount: Amount, run_sd: float | None) -> Rank:
    """Return the best and the worst rank within the intervals of the differences."""
    better = sum(_surely_below(rival, row, amount, run_sd) for rival in rivals)
    worse = sum(_surely_below(row, rival, amount, run_sd) for rival in rivals)
    return Rank(1 + better, 1 + len(rivals) - worse)


def _frontier(row: Row, rivals: Sequence[Row], run_sd: float | None) -> str:
    def below(rival: Row, amount: Amount) -> bool:
        rival_amount, row_amount = amount(rival), amount(row)
        return rival_amount is not None and row_amount is not None and rival_amount.value < row_amount.value

    better = [rival for rival in rivals if below(rival, hours_of) and below(rival, usd_of)]
    if any(
        _surely_below(rival, row, hours_of, run_sd) and _surely_below(rival, row, usd_of, run_sd) for rival in better
    ):
        return OFF
    return TIED if better else ON
