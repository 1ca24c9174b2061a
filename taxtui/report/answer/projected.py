"""The answer about a training run: worker-hours."""

from __future__ import annotations

from collections.abc import Sequence

from costmodel import Answer, Reference, Row, TrainingRun, answer_of, matches_spec
from taxtui.report.answer.record import key_of
from taxtui.report.answer.sections import sections as answer_sections
from taxtui.report.bars import workload_of
from taxtui.report.cells import hours_cell, text_of
from taxtui.report.formats import Section
from taxtui.report.projected import attributed
from taxtui.report.projected.sections import at_least, title
from taxtui.report.projected.sections import sections as projected_sections
from taxtui.terminal_text import clean


def answer(rows: Sequence[Row], chosen: Sequence[Row], training_run: TrainingRun) -> Answer:
    """Return the answer about the chosen rows, with the baseline, which may be any row, beside them."""
    baseline, identities = training_run.baseline, {key_of(row) for row in chosen}
    shown = [row for row in rows if key_of(row) in identities or (baseline and matches_spec(row.identity, baseline))]
    result = answer_of(shown, run_sd=training_run.run_sd, baseline=baseline)
    lines = tuple(line for line in result.lines if any(key_of(entry.row) in identities for entry in line.entries))
    entries = [entry for line in lines for entry in line.entries]
    places, listed = {entry.place for entry in entries}, {key_of(entry.row) for entry in entries}
    return result._replace(
        places=tuple(place for place in result.places if place in places),
        lines=lines,
        modes=tuple(mode for mode in result.modes if {key_of(mode.row), key_of(mode.session)} <= listed),
    )


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
    """Return the headline, the bars by cause and the ranking with wall-clocks; ``full``: with exec against session."""
    rows = [entry.row for line in result.lines for entry in line.entries]
    tables = answer_sections(result, title(rows, training_run), full=full)
    if full:  # further tables have the wall-clocks
        return tables
    return [*tables[:-1], tables[-1]._replace(notes=[*_wall_clock(result), *tables[-1].notes])]


def all_sections(
    rows: Sequence[Row],
    result: Answer,
    training_run: TrainingRun,
    sources: Sequence[object],
    bounds: Reference | None = None,
) -> list[Section]:
    """Return the costs by cause of a run with steps, the answer, and every other table of the projection."""
    rows = by_substrate(rows, result)
    first = [*attributed.sections(rows, training_run), *sections(result, training_run, full=True)]
    titles = {section.title for section in first}
    tables = projected_sections(rows, training_run, sources, bounds)
    return [*first, *(section for section in tables if section.title not in titles)]


def _wall_clock(result: Answer) -> list[str]:
    """Return ``Wall-clock for T1 50 exec: local:bwrap 22.4 min ±2.6, …`` for the workload of the headline."""
    line = workload_of(result)
    if line is None:
        return []
    ends = [(entry.place.name, entry.row.wall_clock_hours) for entry in line.entries]
    words = [
        " ".join([clean(name), *text_of(hours_cell(end.value, end.low, end.high)).split()])
        for name, end in ends
        if end is not None
    ]
    if not words:
        return []
    return [f"Wall-clock for {clean(line.name)}: {', '.join(words)}.", *at_least([entry.row for entry in line.entries])]
