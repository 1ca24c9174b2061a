"""Places of equal work against each other, by hours and by dollars: ranks that tie, and which of them nothing beats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from costmodel import DIFFERS, Interval, Place, Row, WorkLine, judge_rows
from taxtui.report.measured.rows import Rank

ON: Final = "on it"
TIED: Final = "tie"
OFF: Final = "off it"
"""Relation to the frontier: nothing is better in both; something may be; something surely is."""


class PlaceStanding(NamedTuple):
    """One place."""

    place: Place
    row: Row
    hours: Interval  # worker-hours
    hours_rank: Rank
    usd: Interval | None  # None: no price
    usd_rank: Rank | None
    frontier: str | None  # ``ON``, ``TIED`` or ``OFF``; None without a price


def standings(line: WorkLine, run_sd: float | None = None) -> list[PlaceStanding]:
    """The ranked entries of one work, the fewest hours first; none where there is nothing to compare."""
    rows = [(entry.place, entry.row) for entry in line.ranked if entry.row.worker_hours is not None]
    results = []
    for place, row in rows:
        others = [other for _, other in rows if other is not row]
        priced = [other for other in others if usd_of(other) is not None]
        assert row.worker_hours is not None
        usd = usd_of(row)
        results.append(
            PlaceStanding(
                place,
                row,
                row.worker_hours,
                _rank(row, others, hours_of, run_sd),
                usd,
                None if usd is None else _rank(row, priced, usd_of, run_sd),
                None if usd is None else _frontier(row, priced, run_sd),
            )
        )
    return sorted(results, key=lambda item: item.hours.value)


def hours_of(row: Row) -> Interval | None:
    """Worker-hours."""
    return row.worker_hours


def usd_of(row: Row) -> Interval | None:
    """All that a run is charged; the part for workers is as sure as their hours."""
    cost, hours = row.cost, row.worker_hours
    if cost is None or hours is None:
        return None
    sandbox, worker = cost.sandbox_usd, cost.worker_usd or 0.0

    def end(of: float | None, at: float | None) -> float | None:
        if of is None or at is None:
            return None
        return of + cost.idle_pool_usd + worker * (at / hours.value if hours.value else 1.0)

    return Interval(cost.total_usd, end(sandbox.low, hours.low), end(sandbox.high, hours.high))


Amount = Callable[[Row], Interval | None]


def _surely_below(row: Row, other: Row, amount: Amount, run_sd: float | None) -> bool:
    result = judge_rows(row, other, amount(row), amount(other), run_sd)
    return result.verdict.kind == DIFFERS and result.value.value < 0


def _rank(row: Row, others: Sequence[Row], amount: Amount, run_sd: float | None) -> Rank:
    """The best and the worst place that the intervals of the differences allow."""
    better = sum(_surely_below(other, row, amount, run_sd) for other in others)
    worse = sum(_surely_below(row, other, amount, run_sd) for other in others)
    return Rank(1 + better, 1 + len(others) - worse)


def _frontier(row: Row, others: Sequence[Row], run_sd: float | None) -> str:
    def below(other: Row, amount: Amount) -> bool:
        group, theirs = amount(row), amount(other)
        assert group is not None
        assert theirs is not None
        return theirs.value < group.value

    better = [other for other in others if below(other, hours_of) and below(other, usd_of)]
    if any(
        _surely_below(other, row, hours_of, run_sd) and _surely_below(other, row, usd_of, run_sd) for other in better
    ):
        return OFF
    return TIED if better else ON
