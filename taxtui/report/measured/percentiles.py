"""Percentiles with intervals that assume nothing about the distribution, and how many values they need."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise
from statistics import median
from typing import Final, NamedTuple

from costmodel.uncertainty import LEVEL, MIN_CLUSTERS, quantile, student_t

TAIL: Final = (1 - LEVEL) / 2
OUTLIER_Z: Final = 3.5


class Percentile(NamedTuple):
    """A percentile and its 95 % interval, in the unit of the values; None where too few values support it."""

    value: int | None
    low: int | None
    high: int | None
    needs: int  # the least number of values that bounds it from above


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


def effective_count(values: Sequence[int], sizes: Sequence[int], at: int) -> int:
    """How many independent values a sample is worth at its quantile ``at``, if its values come in clusters.

    A trial's actions are a cluster; ``sizes`` are theirs, in the order of ``values``. The variance between clusters
    of the share that is not above ``at`` is compared with the binomial one, and few clusters are paid for through
    Student's t (Korn and Graubard, Survey Methodology 24, 1998). Fewer than three count as one value each.
    """
    count, clusters = len(values), len(sizes)
    if clusters < MIN_CLUSTERS:
        return clusters
    ends = pairwise(accumulate(sizes, initial=0))
    below = [sum(map(at.__ge__, values[start:end])) for start, end in ends]
    share = sum(below) / count
    spread = math.fsum((hits - share * size) ** 2 for hits, size in zip(below, sizes, strict=True))
    variance = clusters / (clusters - 1) * spread / count**2
    if variance == 0:
        return count
    price = student_t(count - 1) / student_t(clusters - 1)
    return max(1, min(count, math.floor(share * (1 - share) / variance * price**2)))


def outliers(ascending: Sequence[int]) -> int:
    """How many values have a modified z = 0.6745·|x − median| / MAD above 3.5 (Iglewicz and Hoaglin 1993)."""
    middle = median(ascending)
    distances = sorted(abs(value - middle) for value in ascending)
    limit = OUTLIER_Z * median(distances) / 0.6745
    return len(distances) - bisect_right(distances, limit)
