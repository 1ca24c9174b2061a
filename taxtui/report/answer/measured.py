"""The answer about measured cells: occupied time of one delivered trajectory, at the recorded lengths."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from costmodel import (
    Answer,
    CellFilter,
    Recording,
    Reference,
    Row,
    SourceError,
    TrainingRun,
    answer_of,
    project,
    ranking,
    read_recording,
)
from taxtui.report.answer import sections
from taxtui.report.bars import pen_of
from taxtui.report.formats import Section
from taxtui.report.formats.plain_tables import terminal_width, to_text
from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.projected.sections import check_reference_used


def recorded(
    sources: Sequence[Recording],
    run_sd: float | None = None,
    bounds: Reference | None = None,
    wanted: CellFilter | None = None,
) -> list[Row]:
    """Return the row of one trajectory for each ``wanted`` cell. Raises ``SourceError``: no trial succeeded."""
    training_run = TrainingRun(trajectories=1, workers=1, run_sd=run_sd)
    return project(sources, training_run, None, bounds, each_level=True, wanted=wanted)


def answer(
    rows: Sequence[MeasuredRow],
    sources: Sequence[Recording],
    run_sd: float | None = None,
    bounds: Reference | None = None,
) -> Answer:
    """Return the answer about the cells of ``rows``; empty if no trial succeeded.

    ``sources``: the recordings of the rows. ``bounds``: dispatch of a reference, for rows with an unknown tax.

    Raises:
        TrainingRunError: no row on a substrate of the reference has an unknown tax.
    """
    cells = {(row.identity, row.cell.provenance) for row in rows}
    identities = {identity for identity, _ in cells}
    try:
        measured = recorded(sources, run_sd, bounds, identities.__contains__)
    except SourceError:  # no success: the tables have the failures
        measured = []
    results = [row for row in measured if (row.identity, row.provenance) in cells]
    if bounds is not None:
        check_reference_used(bounds, (row.identity.substrate for row in results if row.tax_between_worker_hours))
    return answer_of(results, ranking.HELD_PER_SUCCESS, run_sd=run_sd)


def summary(path: Path) -> str:
    """Return the short answer of a recording: table, sentence and bars by cause, as wide as the terminal.

    Raises:
        costmodel.errors.CostModelError: the recording is unreadable, or no trial succeeded.
    """
    result = answer_of(recorded([read_recording(path)]), ranking.HELD_PER_SUCCESS)
    sentence = Section("", [], [], [sections.headline_text(result)])
    parts = [sections.main(result, "", brief=True), sentence, *sections.bars(result)]
    return to_text(parts, terminal_width(), pen_of(sys.stderr))
