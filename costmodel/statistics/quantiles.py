"""Percentiles with intervals that assume nothing about the distribution, and how many values they need."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain
from statistics import variance
from typing import Final, NamedTuple

from costmodel.statistics.intervals import LEVEL, MIN_CLUSTERS, correlation_time, quantile, student_t
from costmodel.statistics.repetitions import MIN_RUNS, NORMAL, Assumed

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


def effective_count(clusters: Sequence[Sequence[int]], at: int) -> int:
    """How many independent values a sample is worth at its quantile ``at``, if its values come in clusters.

    A trial's actions are a cluster. The variance between clusters
    of the share that is not above ``at`` is compared with the binomial one, and few clusters are paid for through
    Student's t (Korn and Graubard, Survey Methodology 24, 1998). Fewer than three count as one value each.
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
    """How many independent values a sample is worth at its quantile ``at``: by run, then by trial, in time order.

    This number decides whether a percentile is printed at all, so only a correlation that is seen counts.
    """
    sizes = [list(map(len, run)) for run in runs]
    total = sum(map(sum, sizes))
    if all(size == 1 for own in sizes for size in own):  # a value of each trial: no more than a flag to each
        flags = [[at >= value for (value,) in run] for run in runs]
        share = sum(map(sum, flags)) / total
        parts = 0 - share, 1 - share
        off = [[parts[flag] for flag in run] for run in flags]
        return max(1, math.floor(total / correlation_time(off, only_if_seen=True)))
    count = total if max(map(max, sizes)) == 1 else effective_count([own for run in runs for own in run], at)
    hits = [[sum(map(at.__ge__, own)) for own in run] for run in runs]
    share = sum(map(sum, hits)) / total
    series = [
        [below - share * size for below, size in zip(own, of_run, strict=True)]
        for own, of_run in zip(hits, sizes, strict=True)
    ]
    return max(1, math.floor(count / correlation_time(series, only_if_seen=True)))


def worth_by_value(runs: Sequence[Sequence[Sequence[int]]]) -> Callable[[int], int]:
    """``worth`` at values of these runs, weighed once for each: the upper percentiles of a few are one of them."""
    return cache(lambda value: worth(runs, value))


def percentile_with_runs(
    one: Percentile,
    p: float,
    runs: Sequence[Sequence[Sequence[int]]],
    assume: Assumed,
    beside: Sequence[Sequence[Sequence[int]]] = (),
) -> Percentile:
    """A percentile's interval with how much runs differ: as their own percentiles do, from three runs on.

    ``beside`` are the runs of what it is compared with: both are then taken to have one relative sd between runs.
    """
    if not one.value:
        return one
    if (spread := None if assume.given else spread_of(p, runs, beside)) is not None:
        factor = math.exp(student_t(spread.freedom) * spread.sd / math.sqrt(len(runs)))
        low = None if one.low is None else min(one.low, round(one.value / factor))
        return one._replace(low=low, high=None if one.high is None else max(one.high, round(one.value * factor)))
    total = sum(map(len, runs))
    factor = math.exp(NORMAL * assume.sd * math.sqrt(sum((len(trials) / total) ** 2 for trials in runs)))
    below, above = one.value * (1 - 1 / factor), one.value * (factor - 1)
    return one._replace(
        low=None if one.low is None else round(one.value - math.hypot(one.value - one.low, below)),
        high=None if one.high is None else round(one.value + math.hypot(one.high - one.value, above)),
    )


class RunSpread(NamedTuple):
    """The sd of the logarithms of runs' own percentiles, with its degrees of freedom."""

    sd: float
    freedom: int


def spread_of(p: float, *sides: Sequence[Sequence[Sequence[int]]]) -> RunSpread | None:
    """By how much runs differ about their own side's mean, pooled over sides.

    None where no side has three runs, or a run's percentile is 0, of which there is no logarithm.
    """
    if max(map(len, sides)) < MIN_RUNS:
        return None
    own = [[quantile(sorted(chain.from_iterable(trials)), p) for trials in runs] for runs in sides]
    if min(value for side in own for value in side) <= 0:
        return None
    freedom = sum(max(0, len(side) - 1) for side in own)
    squares = sum((len(side) - 1) * variance(map(math.log, side)) for side in own if len(side) > 1)
    return RunSpread(math.sqrt(squares / freedom), freedom)
