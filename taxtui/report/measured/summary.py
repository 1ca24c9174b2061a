"""Statistics of one column of a cell: percentiles and mean."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

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


class DurationSummary(NamedTuple):
    """The statistics of one kind of duration, in ns."""

    n: int
    p50: Percentile
    p95: Percentile
    p99: Percentile
    mean: Interval
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

    def at(p: float) -> Percentile:
        within_run = percentile(ascending, p, worth_at(quantile(ascending, p)))
        return percentile_with_runs(within_run, p, runs, assume)

    result = repetitions.estimate([sum(value) for value in values], sizes, origins)
    mean = repetitions.interval(result, assume)
    if ascending[0] >= 0 and mean.low is not None:
        mean = mean._replace(low=max(0.0, mean.low))
    return DurationSummary(len(ascending), at(0.5), at(0.95), at(0.99), mean, result)
