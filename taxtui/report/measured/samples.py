"""Samples behind the tables: the durations of all successful trials of a cell, as columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path

from costmodel import PER_ACTION, PER_TRIAL, Pool, RecordedTrial, Recording, pools, read_recordings


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
    recordings = read_recordings(list(paths))
    return pools(recordings), recordings
