"""Small questions to the cost model, in which worker-hours are seconds per trajectory."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from costmodel import Projection, TrainingRun, project, read

HOUR: Final = 3600


def ask(**more: Any) -> TrainingRun:
    """3,600 trajectories on 10 workers, unless ``more`` says otherwise."""
    return TrainingRun(**{"trajectories": HOUR, "workers": 10} | more)


def one(recording: Path, **more: Any) -> Projection:
    """The only row of a recording."""
    [row] = project([read(recording)], ask(**more))
    assert isinstance(row, Projection)
    return row


def hours(row: Projection) -> float:
    """Its worker-hours."""
    assert row.worker_hours is not None
    return row.worker_hours.value
