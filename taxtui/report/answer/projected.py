"""The answer of a projection: worker-hours of the run that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from costmodel import Answer, Reference, Row, TrainingRun, answer_of
from taxtui.options.rows import BY_SUBSTRATE, RowChoice
from taxtui.report.answer import table
from taxtui.report.answer.order import arranged as in_order
from taxtui.report.answer.order import key_of, sorted_by
from taxtui.report.formats import Section
from taxtui.report.projected.sections import title

__all__ = ["answer", "arranged", "in_tables", "key_of", "sections"]

MORE: Final = "--full has the tables behind this: causes, money, steps, extrapolation; --explain every formula."


def answer(rows: Sequence[Row], chosen: Sequence[Row], training_run: TrainingRun, choice: RowChoice) -> Answer:
    """Return the answer about the chosen rows; the cheapest is one of them, the baseline any of all rows."""
    if training_run.baseline is None:
        result = answer_of(chosen, run_sd=training_run.run_sd)
    else:
        result = answer_of(rows, run_sd=training_run.run_sd, baseline=training_run.baseline).showing(chosen)
    return sorted_by(result, choice.sort)


def arranged(rows: Sequence[Row], found: Answer, choice: RowChoice) -> Sequence[Row]:
    """The rows as they were recorded, unless an order was chosen: for programs."""
    return in_order(rows, found, key_of, choice.group) if choice.sort or choice.group else rows


def in_tables(rows: Sequence[Row], found: Answer, choice: RowChoice) -> Sequence[Row]:
    """The rows for people: by substrate where no order was chosen, then by tier, number of actions and mode."""
    return in_order(rows, found, key_of, choice.group or (None if choice.sort else BY_SUBSTRATE))


def sections(
    found: Answer, training_run: TrainingRun, choice: RowChoice, reference: Reference | None = None
) -> list[Section]:
    """The sentence and the tables, with where there is more; ``reference`` is what bounds a tax, in the notes."""
    asked = title([entry.row for line in found.lines for entry in line.entries], training_run)
    tables = table.sections(found, asked, workers=training_run.workers, by=choice.group, reference=reference)
    return [*tables[:-1], tables[-1]._replace(notes=[*tables[-1].notes, MORE])]
