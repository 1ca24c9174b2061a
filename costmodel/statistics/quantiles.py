"""Percentiles with intervals that assume no distribution, and the number of values that they need."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from statistics import variance
from typing import Final, NamedTuple

from costmodel.statistics.intervals import LEVEL, MIN_CLUSTERS, correlation_time, quantile, student_t
from costmodel.statistics.repetitions import MIN_RUNS, NORMAL, Assumed

TAIL: Final = (1 - LEVEL) / 2


class Percentile(NamedTuple):
    """A percentile and its 95 % interval, in the unit of the values; None where too few values support it."""

    value: float | None
    low: float | None
    high: float | None  # None with a lower limit: "at least"
    needs: int  # number of values for an upper limit


def percentile(ascending: Sequence[int], p: float, effective: int | None = None) -> Percentile:
    """Return the order statistic at ``p`` with the two that enclose the true percentile.

    ``ascending`` is not empty. ``effective`` is the number of independent values, by default all. Above the median, a
    percentile without an upper limit has the value None.
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
    """Return the 1-based ranks of the closest order statistics beyond the ``p`` quantile, at most 2.5 % risk each.

    The number of ``count`` independent values below the quantile is binomial, for every distribution.
    """
    return _rank_below(count, p) or None, count + 1 - above if (above := _rank_below(count, 1 - p)) else None


def least_count(p: float) -> int:
    """Return the smallest n whose maximum exceeds the ``p`` quantile with 97.5 %: 72 for p95, 368 for p99."""
    return math.ceil(math.log(TAIL) / math.log(p))


@cache
def _rank_below(count: int, p: float) -> int:
    """Return the largest r with P(Bin(count, p) < r) ≤ ``TAIL``; the mass below the first k is lost in rounding."""
    first = max(0, math.floor(count * p - 12 * math.sqrt(count * p * (1 - p)) - 40))
    choose = math.lgamma(count + 1) - math.lgamma(first + 1) - math.lgamma(count - first + 1)
    mass = math.exp(choose + first * math.log(p) + (count - first) * math.log1p(-p))
    rank, below = 0, 0.0
    for successes in range(first, count + 1):
        below += mass
        if below > TAIL:
            break
        rank = successes + 1
        mass *= (count - successes) / rank * p / (1 - p)
    return rank


def effective_count(clusters: Sequence[Sequence[int]], at: int) -> int:
    """Return the number of independent values that clustered values are worth at their quantile ``at``.

    The actions of a trial are a cluster. The variance between clusters of the share up to ``at`` is compared with the
    binomial variance. Few clusters cost a factor of Student's t (Korn and Graubard, Survey Methodology 24, 1998). Fewer
    than three clusters count as one value each.
    """
    sizes = list(map(len, clusters))
    count, number = sum(sizes), len(sizes)
    if number < MIN_CLUSTERS:
        return number
    below = [sum(map(at.__ge__, values)) for values in clusters]
    share = sum(below) / count
    spread = math.fsum((hits - share * size) ** 2 for hits, size in zip(below, sizes, strict=True))
    variance = number / (number - 1) * spread / count**2
    if variance == 0:
        return count
    price = student_t(count - 1) / student_t(number - 1)
    return max(1, min(count, math.floor(share * (1 - share) / variance * price**2)))


def worth(runs: Sequence[Sequence[Sequence[int]]], at: int) -> int:
    """Return the number of independent values at the quantile ``at``; values by run, trial and time.

    This number decides whether a percentile is printed, so only a correlation that the sample shows counts.
    """
    trials = list(chain.from_iterable(runs))
    total = sum(map(len, trials))
    count = total if all(len(values) == 1 for values in trials) else effective_count(trials, at)
    share = sum(sum(map(at.__ge__, values)) for values in trials) / total
    series = [[sum(map(at.__ge__, values)) - share * len(values) for values in run] for run in runs]
    return max(1, math.floor(count / correlation_time(series, only_if_seen=True)))


def worth_by_value(runs: Sequence[Sequence[Sequence[int]]]) -> Callable[[int], int]:
    """Cache ``worth`` by value: the upper percentiles of a few values coincide."""
    return cache(lambda value: worth(runs, value))


def percentile_with_runs(
    within: Percentile,
    p: float,
    runs: Sequence[Sequence[Sequence[int]]],
    assume: Assumed,
    reference_runs: Sequence[Sequence[Sequence[int]]] = (),
) -> Percentile:
    """Widen the interval of a percentile by the spread between repetitions, measured from three on.

    ``reference_runs`` belong to the other side of a comparison; both sides then share a relative sd.
    """
    value = within.value or within.low  # without an upper limit there is no value
    if not value:
        return within
    if (spread := None if assume.by_user else spread_of(p, runs, reference_runs)) is not None:
        sd, freedom = spread
        factor = math.exp(student_t(freedom) * sd / math.sqrt(len(runs)))
        low = None if within.low is None else min(within.low, round(value / factor))
        return within._replace(low=low, high=None if within.high is None else max(within.high, round(value * factor)))
    total = sum(map(len, runs))
    factor = math.exp(NORMAL * assume.sd * math.sqrt(sum((len(trials) / total) ** 2 for trials in runs)))
    below, above = value * (1 - 1 / factor), value * (factor - 1)
    return within._replace(
        low=None if within.low is None else round(value - math.hypot(value - within.low, below)),
        high=None if within.high is None else round(value + math.hypot(within.high - value, above)),
    )


def spread_of(p: float, *sides: Sequence[Sequence[Sequence[int]]]) -> tuple[float, int] | None:
    """Return the sd of the logarithms of the runs' percentiles with its degrees of freedom, pooled over sides.

    None: no side has three runs, or a percentile is 0 and has no logarithm.
    """
    if max(map(len, sides)) < MIN_RUNS:
        return None
    percentiles = [[quantile(sorted(chain.from_iterable(trials)), p) for trials in runs] for runs in sides]
    if min(value for side in percentiles for value in side) <= 0:
        return None
    freedom = sum(max(0, len(side) - 1) for side in percentiles)
    squares = sum((len(side) - 1) * variance(map(math.log, side)) for side in percentiles if len(side) > 1)
    return math.sqrt(squares / freedom), freedom
