"""Statistics of one column of a cell: percentiles, the mean, outliers, each with what the data support."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import stdev
from typing import NamedTuple

from costmodel.percentiles import Percentile, percentile
from costmodel.runs import MIN_RUNS, NORMAL, WITHIN_ONLY, Assumed, Estimate, Origin, RunKey, estimate, interval
from costmodel.uncertainty import Interval, correlation_time, quantile, student_t
from taxtui.report.measured.percentiles import effective_count, outliers
from taxtui.report.measured.samples import Column


class DurationSummary(NamedTuple):
    """What is known of one kind of duration, in ns."""

    n: int
    p50: Percentile
    p95: Percentile
    p99: Percentile
    mean: Interval
    outliers: int
    middle: Percentile  # p50 for these runs as they were
    estimate: Estimate  # of the mean, by run


def summarize(column: Column, origins: Sequence[Origin], assume: Assumed = WITHIN_ONLY) -> DurationSummary | None:
    """Statistics of a column whose trials come from ``origins``; None where it is empty.

    Every interval includes how much runs differ: measured from three runs on, else as ``assume`` says. In percentiles
    a sample counts for as many values as are independent: actions of one trial are not, nor are neighbouring trials.
    """
    if not column.values:
        return None
    ascending = sorted(column.values)
    sizes = column.sizes
    values = [column.values[start:end] for start, end in pairwise(accumulate(sizes, initial=0))]
    by_run: dict[RunKey, list[Sequence[int]]] = {}
    for (run, _), own in zip(origins, values, strict=True):
        if own:
            by_run.setdefault(run, []).append(own)

    def within(p: float) -> Percentile:
        worth = _worth(column, list(by_run.values()), quantile(ascending, p))
        return percentile(ascending, p, worth)

    def at(p: float, one: Percentile) -> Percentile:
        return _with_runs(one, p, list(by_run.values()), assume)

    found = estimate([sum(own) for own in values], sizes, origins)
    mean = interval(found, assume)
    if ascending[0] >= 0:
        mean = not_negative(mean)
    middle, late, last = within(0.5), within(0.95), within(0.99)
    return DurationSummary(
        n=len(ascending),
        p50=at(0.5, middle),
        p95=at(0.95, late),
        p99=at(0.99, last),
        mean=mean,
        outliers=outliers(ascending),
        middle=middle,
        estimate=found,
    )


def _worth(column: Column, runs: Sequence[Sequence[Sequence[int]]], at: int) -> int:
    """How many independent values the column is worth at its quantile ``at``.

    This number decides whether a percentile is printed at all, so only a correlation that is seen counts.
    """
    clusters = [size for size in column.sizes if size]
    count = len(column.values) if max(clusters) == 1 else effective_count(column.values, clusters, at)
    share = sum(map(at.__ge__, column.values)) / len(column.values)
    series = [[sum(map(at.__ge__, own)) - share * len(own) for own in trials] for trials in runs]
    return max(1, math.floor(count / correlation_time(series, only_if_seen=True)))


def _with_runs(one: Percentile, p: float, runs: Sequence[Sequence[Sequence[int]]], assume: Assumed) -> Percentile:
    """A percentile's interval with how much runs differ: as their own percentiles do, from three runs on."""
    if not one.value:
        return one
    if len(runs) >= MIN_RUNS and not assume.given:
        own = [quantile(sorted(value for trial in trials for value in trial), p) for trials in runs]
        if min(own) <= 0:
            return one
        factor = math.exp(student_t(len(own) - 1) * stdev(map(math.log, own)) / math.sqrt(len(own)))
        low = None if one.low is None else min(one.low, round(one.value / factor))
        return one._replace(low=low, high=None if one.high is None else max(one.high, round(one.value * factor)))
    total = sum(map(len, runs))
    factor = math.exp(NORMAL * assume.sd * math.sqrt(sum((len(trials) / total) ** 2 for trials in runs)))
    below, above = one.value * (1 - 1 / factor), one.value * (factor - 1)
    return one._replace(
        low=None if one.low is None else round(one.value - math.hypot(one.value - one.low, below)),
        high=None if one.high is None else round(one.value + math.hypot(one.high - one.value, above)),
    )


def not_negative(mean: Interval) -> Interval:
    """Of something that cannot be below 0; the interval of a few very different values may be."""
    return mean if mean.low is None else mean._replace(low=max(0.0, mean.low))
