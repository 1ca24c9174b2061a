"""The answer about measured cells: occupied time of one delivered trajectory, at the recorded lengths."""

from __future__ import annotations

from collections.abc import Sequence

from costmodel import (
    HELD_PER_SUCCESS,
    Answer,
    CellFilter,
    Published,
    Recording,
    Reference,
    Row,
    SourceError,
    TrainingRun,
    answer_of,
    project,
)
from taxtui.report.answer.record import Key
from taxtui.report.measured.rows import MeasuredRow


def recorded(
    sources: Sequence[Recording],
    run_sd: float | None = None,
    bounds: Reference | None = None,
    wanted: CellFilter | None = None,
) -> list[Row]:
    """Return the row of one trajectory for each ``wanted`` cell. Raises ``SourceError``: no trial succeeded."""
    training_run = TrainingRun(trajectories=1, workers=1, run_sd=run_sd)
    return project(sources, training_run, None, bounds, each_level=True, wanted=wanted, checked=False)


def answer(
    rows: Sequence[MeasuredRow],
    sources: Sequence[Recording],
    run_sd: float | None = None,
    bounds: Reference | None = None,
    published: Sequence[Published] = (),
) -> Answer:
    """Return the answer about the cells of ``rows`` and published latencies; empty if no trial succeeded.

    ``sources``: the recordings of the rows. ``bounds``: dispatch of a reference, for rows with an unknown tax.
    """
    cells = {(row.identity, row.cell.provenance) for row in rows}
    identities = {identity for identity, _ in cells}
    try:
        measured = recorded(sources, run_sd, bounds, identities.__contains__)
    except SourceError:  # no success: the tables have the failures
        measured = []
    results = [row for row in measured if (row.identity, row.provenance) in cells]
    if published:
        results += project(published, TrainingRun(trajectories=1, workers=1))
    return answer_of(results, HELD_PER_SUCCESS, run_sd=run_sd)


def key_of(row: MeasuredRow) -> Key:
    """Return the key of a measured row."""
    return row.identity, row.cell.provenance, row.length.actions
