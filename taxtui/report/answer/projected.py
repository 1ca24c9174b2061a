"""The answer about a training run: worker-hours."""

from __future__ import annotations

from collections.abc import Sequence

from costmodel import Answer, Row, TrainingRun, answer_of
from taxtui.report.answer.record import key_of
from taxtui.report.answer.sections import sections as answer_sections
from taxtui.report.formats import Section
from taxtui.report.projected.sections import title


def answer(rows: Sequence[Row], chosen: Sequence[Row], training_run: TrainingRun) -> Answer:
    """Return the answer about the chosen rows. The baseline may be any row, the cheapest is a chosen row."""
    if training_run.baseline is None:
        return answer_of(chosen, run_sd=training_run.run_sd)
    return answer_of(rows, run_sd=training_run.run_sd, baseline=training_run.baseline).showing(chosen)


def by_substrate(rows: Sequence[Row], result: Answer) -> Sequence[Row]:
    """Return the rows for people: by substrate, tier, number of actions and mode; unranked rows are last."""
    keys = [
        key_of(entry.row)
        for place in result.places
        for line in result.lines
        for entry in line.entries
        if entry.place == place
    ]
    order = {key: number for number, key in enumerate(keys)}
    return sorted(rows, key=lambda row: order.get(key_of(row), len(order)))


def sections(result: Answer, training_run: TrainingRun, *, full: bool) -> list[Section]:
    """Return the headline, the bars by cause and the ranking; ``full``: with exec against session."""
    rows = [entry.row for line in result.lines for entry in line.entries]
    return answer_sections(result, title(rows, training_run), full=full)
