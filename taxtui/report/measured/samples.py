"""Samples of a cell: the durations of all successful trials, as columns with their statistics."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from costmodel import (
    PER_ACTION,
    PER_TRIAL,
    Assumed,
    Estimate,
    Interval,
    Origin,
    Percentile,
    Pool,
    RecordedTrial,
    Recording,
    RunKey,
    percentile,
    percentile_with_runs,
    pools,
    quantile,
    read_recording,
    repetitions,
    worth_by_value,
)


class Column:
    """One kind of duration in ns, in the order of the trials."""

    __slots__ = ("sizes", "values")

    def __init__(self) -> None:
        self.values = array("q")
        self.sizes = array("q")  # values per trial: 0 if unknown, 1, or one per action

    def add(self, values: Sequence[int]) -> None:
        self.values.extend(values)
        self.sizes.append(len(values))


def column(trials: Iterable[RecordedTrial], name: str) -> Column:
    """Return one kind of duration of successful trials."""
    result = Column()
    if (value_of := PER_TRIAL.get(name)) is None:
        for trial in trials:
            result.add(PER_ACTION[name](trial))
        return result
    values = list(map(value_of, trials))
    result.values.extend([value for value in values if value is not None])
    result.sizes.extend([value is not None for value in values])
    return result


def read_samples(paths: Iterable[Path]) -> tuple[list[Pool], list[Recording]]:
    """Return the cells of all recordings in order of appearance, and the recordings.

    Raises:
        costmodel.errors.RecordingError: not a recording, damaged, of a newer version, or one run twice.
    """
    recordings = [read_recording(path) for path in paths]
    return pools(recordings), recordings


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
