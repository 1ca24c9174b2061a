"""Percentiles with intervals that assume nothing about the distribution, and how many values they need."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from costmodel.uncertainty import LEVEL, quantile

TAIL: Final = (1 - LEVEL) / 2


class Percentile(NamedTuple):
    """A percentile and its 95 % interval, in the unit of the values; None where too few values support it."""

    value: int | None
    low: int | None
    high: int | None  # None beside a lower limit: at least that
    needs: int  # the least number of values that bounds it from above


class Quantile(NamedTuple):
    """The same in another unit."""

    value: float | None
    low: float | None
    high: float | None
    needs_trials: int


def percentile(ascending: Sequence[int], p: float, effective: int | None = None) -> Percentile:
    """The order statistic at ``p`` with the two that enclose the true one; ``ascending`` is not empty.

    ``effective`` is how many independent values the sample is worth, all by default. Above the median a percentile
    without an upper limit is not a number to print, so its value is None.
    """
    count = len(ascending)
    draws = count if effective is None else effective
    low, high = rank_limits(draws, p)
    return Percentile(
        value=quantile(ascending, p) if p <= 0.5 or high is not None else None,
        low=None if low is None else ascending[low * (count + 1) // (draws + 1) - 1],
        high=None if high is None else ascending[-(-high * (count + 1) // (draws + 1)) - 1],
        needs=-(-least_count(p) * count // draws),
    )


def rank_limits(count: int, p: float) -> tuple[int | None, int | None]:
    """Ranks from 1 of the closest order statistics that lie beyond the ``p`` quantile with at most 2.5 % risk each.

    How many of ``count`` independent values lie below the quantile is binomial, whatever their distribution.
    """
    return _rank_below(count, p) or None, count + 1 - above if (above := _rank_below(count, 1 - p)) else None


def least_count(p: float) -> int:
    """The least n whose greatest value exceeds the ``p`` quantile with 97.5 %: 72 for p95, 368 for p99."""
    return math.ceil(math.log(TAIL) / math.log(p))


@cache
def _rank_below(count: int, p: float) -> int:
    """The largest r with P(Bin(count, p) < r) ≤ ``TAIL``."""
    rank, below = 0, 0.0
    for successes, mass in _binomial(count, p):
        below += mass
        if below > TAIL:
            break
        rank = successes + 1
    return rank


def _binomial(count: int, p: float) -> Iterator[tuple[int, float]]:
    """(k, P(Bin = k)) upwards, from where the mass below is lost in rounding."""
    first = max(0, math.floor(count * p - 12 * math.sqrt(count * p * (1 - p)) - 40))
    choose = math.lgamma(count + 1) - math.lgamma(first + 1) - math.lgamma(count - first + 1)
    mass = math.exp(choose + first * math.log(p) + (count - first) * math.log1p(-p))
    for successes in range(first, count + 1):
        yield successes, mass
        mass *= (count - successes) / (successes + 1) * p / (1 - p)
