"""The answer of what was measured: what one delivered trajectory holds a worker for, at the recorded lengths."""

from __future__ import annotations

from collections.abc import Sequence

from costmodel import (
    HELD_PER_SUCCESS,
    Answer,
    CellFilter,
    Recording,
    Reference,
    Row,
    SourceError,
    TrainingRun,
    answer_of,
    project,
)
from taxtui.report.answer.order import Key
from taxtui.report.measured.rows import MeasuredRow


def recorded(
    sources: Sequence[Recording],
    run_sd: float | None = None,
    bounds: Reference | None = None,
    wanted: CellFilter | None = None,
) -> list[Row]:
    """A row for each ``wanted`` cell, of one trajectory as it was recorded. Raises ``SourceError``: no success."""
    training_run = TrainingRun(trajectories=1, workers=1, run_sd=run_sd)
    return project(sources, training_run, None, bounds, each_level=True, wanted=wanted, checked=False, stressed=False)


def answer(
    rows: Sequence[MeasuredRow],
    sources: Sequence[Recording],
    run_sd: float | None = None,
    bounds: Reference | None = None,
) -> Answer:
    """Return the answer about the cells of ``rows``, which come from ``sources``; empty where no trial succeeded."""
    kept = {(row.identity, row.cell.provenance) for row in rows}
    shown = {identity for identity, _ in kept}
    try:
        result = recorded(sources, run_sd, bounds, shown.__contains__)
    except SourceError:  # no success: the tables say how they failed
        result = []
    return answer_of([row for row in result if (row.identity, row.provenance) in kept], HELD_PER_SUCCESS, run_sd=run_sd)


def key_of(row: MeasuredRow) -> Key:
    """Return the key of a measured row, as ``order.key_of`` returns it for a projection."""
    return row.identity, row.cell.provenance, row.length.actions
