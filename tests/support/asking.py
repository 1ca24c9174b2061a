"""Small questions to the cost model, in which worker-hours are seconds per trajectory."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TypeVar

from costmodel import Row, TrainingRun, load, project

HOUR: Final = 3600
T = TypeVar("T")


def present(value: T | None) -> T:
    """Return a value that a test expects not to be None."""
    assert value is not None
    return value


def ask(**more: Any) -> TrainingRun:
    """3,600 trajectories on 10 workers, unless ``more`` says otherwise."""
    return TrainingRun(**{"trajectories": HOUR, "workers": 10} | more)


def one(recording: Path, **more: Any) -> Row:
    [row] = project([load(recording)], ask(**more))
    assert isinstance(row, Row)
    return row


def hours(row: Row) -> float:
    return present(row.worker_hours).value
