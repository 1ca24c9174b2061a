"""The answer about a training run: worker-hours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from costmodel import Answer, Reference, Row, TrainingRun, answer_of
from taxtui.options.rows import BY_SUBSTRATE, RowChoice
from taxtui.report.answer.order import arranged as in_order
from taxtui.report.answer.order import key_of, sorted_by
from taxtui.report.answer.sections import sections as answer_sections
from taxtui.report.formats import Section
from taxtui.report.projected.sections import title

__all__ = ["answer", "arranged", "in_tables", "key_of", "sections"]

MORE: Final = "--full has the tables behind this: causes, money, steps, extrapolation; --explain every formula."


def answer(rows: Sequence[Row], chosen: Sequence[Row], training_run: TrainingRun, choice: RowChoice) -> Answer:
    """Return the answer about the chosen rows. The baseline may be any row, the cheapest is a chosen row."""
    if training_run.baseline is None:
        result = answer_of(chosen, run_sd=training_run.run_sd)
    else:
        result = answer_of(rows, run_sd=training_run.run_sd, baseline=training_run.baseline).showing(chosen)
    return sorted_by(result, choice.sort)


def arranged(rows: Sequence[Row], result: Answer, choice: RowChoice) -> Sequence[Row]:
    """Return the rows for programs: in recorded order, or in the chosen order."""
    return in_order(rows, result, key_of, choice.group) if choice.sort or choice.group else rows


def in_tables(rows: Sequence[Row], result: Answer, choice: RowChoice) -> Sequence[Row]:
    """Return the rows for people: by substrate, tier, number of actions and mode, or in the chosen order."""
    return in_order(rows, result, key_of, choice.group or (None if choice.sort else BY_SUBSTRATE))


def sections(
    result: Answer, training_run: TrainingRun, choice: RowChoice, reference: Reference | None = None
) -> list[Section]:
    """Return the sentence and the tables. ``reference``: dispatch for the limits of an unknown tax."""
    heading = title([entry.row for line in result.lines for entry in line.entries], training_run)
    tables = answer_sections(result, heading, workers=training_run.workers, by=choice.group, reference=reference)
    return [*tables[:-1], tables[-1]._replace(notes=[*tables[-1].notes, MORE])]
