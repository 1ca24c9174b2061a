"""Statistics of one column of a cell: percentiles, mean and outliers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import median
from typing import Final, NamedTuple

from costmodel import (
    Assumed,
    Estimate,
    Interval,
    Origin,
    Percentile,
    RunKey,
    percentile,
    percentile_with_runs,
    quantile,
    repetitions,
    worth_by_value,
)
from taxtui.report.measured.samples import Column

OUTLIER_Z: Final = 3.5


class DurationSummary(NamedTuple):
    """The statistics of one kind of duration, in ns."""

    n: int
    p50: Percentile
    p95: Percentile
    p99: Percentile
    mean: Interval
    outliers: int
    middle: Percentile  # p50 without the variation between runs
    estimate: Estimate  # of the mean, by run


def summarize(
    column: Column, origins: Sequence[Origin], assume: Assumed = repetitions.WITHIN_ONLY
) -> DurationSummary | None:
    """Return the statistics of a column whose trials come from ``origins``; None if empty.

    All intervals include the variation between runs: measured from three runs on, else ``assume``. Percentiles use the
    effective number of independent values, because actions of a trial and neighbouring trials are correlated.
    """
    if not column.values:
        return None
    ascending = sorted(column.values)
    sizes = column.sizes
    values = [column.values[start:end] for start, end in pairwise(accumulate(sizes, initial=0))]
    by_run: dict[RunKey, list[Sequence[int]]] = {}
    for (run, _), value in zip(origins, values, strict=True):
        if value:
            by_run.setdefault(run, []).append(value)

    runs = list(by_run.values())
    worth_at = worth_by_value(runs)

    def within(p: float) -> Percentile:
        return percentile(ascending, p, worth_at(quantile(ascending, p)))

    def between(p: float, within_run: Percentile) -> Percentile:
        return percentile_with_runs(within_run, p, runs, assume)

    result = repetitions.estimate([sum(value) for value in values], sizes, origins)
    mean = repetitions.interval(result, assume)
    if ascending[0] >= 0:
        mean = not_negative(mean)
    middle, late, last = within(0.5), within(0.95), within(0.99)
    return DurationSummary(
        n=len(ascending),
        p50=between(0.5, middle),
        p95=between(0.95, late),
        p99=between(0.99, last),
        mean=mean,
        outliers=outliers(ascending),
        middle=middle,
        estimate=result,
    )


def not_negative(mean: Interval) -> Interval:
    """Cut the interval of a non-negative quantity at 0."""
    return mean if mean.low is None else mean._replace(low=max(0.0, mean.low))


def outliers(ascending: Sequence[int]) -> int:
    """Count the values with a modified z = 0.6745·|x − median| / MAD above 3.5 (Iglewicz and Hoaglin 1993)."""
    middle = median(ascending)
    distances = sorted(abs(value - middle) for value in ascending)
    limit = OUTLIER_Z * median(distances) / 0.6745
    return len(distances) - bisect_right(distances, limit)
