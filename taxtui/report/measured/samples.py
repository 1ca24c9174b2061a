"""The exact samples behind the tables: every duration of every successful trial of a cell, as columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path

from costmodel import PER_ACTION, PER_TRIAL, Pool, RecordedTrial, Recording, pools, read_recordings


class Column:
    """One kind of duration in ns: the values of the first successful trial, of the second, and so on."""

    __slots__ = ("sizes", "values")

    def __init__(self) -> None:
        self.values = array("q")
        self.sizes = array("q")  # values per trial: 0 where it is unknown, 1, or one per action

    def add(self, values: Sequence[int]) -> None:
        self.values.extend(values)
        self.sizes.append(len(values))


def column(trials: Iterable[RecordedTrial], name: str) -> Column:
    """One kind of duration, as ``costmodel.recording.trial`` has them, of trials that succeeded."""
    result = Column()
    if (told := PER_TRIAL.get(name)) is None:
        for trial in trials:
            result.add(PER_ACTION[name](trial))
        return result
    values = list(map(told, trials))
    result.values.extend([value for value in values if value is not None])
    result.sizes.extend([value is not None for value in values])
    return result


def read_samples(paths: Iterable[Path]) -> tuple[list[Pool], list[Recording]]:
    """The cells of all recordings in the order in which they first appear, and the recordings.

    Raises:
        costmodel.errors.RecordingError: not a recording, damaged, of a newer version, or the same run twice.
    """
    recordings = read_recordings(list(paths))
    return pools(recordings), recordings
