"""Statistics of one column of a cell: percentiles, the mean, outliers, each with what the data support."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from costmodel.percentiles import Percentile, percentile
from costmodel.uncertainty import MIN_CLUSTERS, Interval, quantile, ratio_interval
from taxtui.report.measured.percentiles import effective_count, outliers
from taxtui.report.measured.samples import Column

Origin = tuple[str, int]
"""The run and block of a trial."""


class DurationSummary(NamedTuple):
    """What is known of one kind of duration, in ns."""

    n: int
    p50: Percentile
    p95: Percentile
    p99: Percentile
    mean: Interval
    outliers: int


def summarize(column: Column, origins: Sequence[Origin]) -> DurationSummary | None:
    """Statistics of a column whose trials come from ``origins``; None where it is empty.

    Trials count as independent in percentiles, the actions of one trial do not. The mean's interval is the cost
    model's: trials of one run or block may share a slow minute.
    """
    if not column.values:
        return None
    ascending = sorted(column.values)
    sizes = column.sizes
    totals = [sum(column.values[start:end]) for start, end in pairwise(accumulate(sizes, initial=0))]

    def at(p: float) -> Percentile:
        if max(sizes) == 1:
            return percentile(ascending, p)
        clusters = [size for size in sizes if size]
        return percentile(ascending, p, effective_count(column.values, clusters, quantile(ascending, p)))

    mean = ratio_interval(totals, sizes, clusters_of(origins))
    if ascending[0] >= 0:
        mean = not_negative(mean)
    return DurationSummary(len(ascending), at(0.5), at(0.95), at(0.99), mean, outliers(ascending))


def not_negative(mean: Interval) -> Interval:
    """Of something that cannot be below 0; the interval of a few very different values may be."""
    return mean if mean.low is None else mean._replace(low=max(0.0, mean.low))


def clusters_of(origins: Sequence[Origin]) -> Sequence[Hashable]:
    """What may move trials together: runs where there are enough of them, else blocks."""
    runs = [run_id for run_id, _ in origins]
    return runs if len(set(runs)) >= MIN_CLUSTERS else origins
