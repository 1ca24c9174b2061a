"""The answer as a table of a page: a row per workload and substrate, a column per number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from costmodel import NS_PER_S, Answer, Entry, Reference, WorkLine, warnings
from taxtui.report.answer import table
from taxtui.report.answer.order import tax_share
from taxtui.report.cells import COUNT, NS, SHARE, TIMES, Content, TableCell, amount_cell
from taxtui.report.formats import Section
from taxtui.report.marks import FlagMarks
from taxtui.report.numbers import NOTHING, UNSPLIT
from taxtui.report.page.views import PageTable, table_of
from taxtui.report.words import UNDECIDED
from taxtui.terminal_text import clean

HEAD = [
    "workload",
    "substrate",
    "time of a trajectory",
    "times the cheapest",
    "tax",
    "tax of 1M\nworker-hours",
    "trials",
]


class AnswerView(NamedTuple):
    """The answer for a template."""

    sentence: str
    table: PageTable


def answer_view(found: Answer, bounds: Reference | None = None, sources: Sequence[str] = ()) -> AnswerView:
    """Return the answer about occupied time.

    ``bounds``: the dispatch that bounds an unknown tax; ``sources``: of published latencies.
    """
    marks = FlagMarks([entry.row.flags for line in found.lines for entry in line.entries], warnings.DO)
    rows = [
        _row(line, entry, marks, apart=place in found.unranked)
        for line in found.lines
        for place in found.places
        if (entry := line.at(place)) is not None
    ]
    notes = [
        "Time: what one delivered trajectory occupies a rollout worker for, failures included. Tax: the share of it "
        "that is neither the model's time nor the commands' own time.",
        *table.notes(found, marks),
        *sources,
    ]
    if any(entry.row.tax_between_worker_hours for line in found.lines for entry in line.entries):
        notes.append(UNSPLIT)
        notes += [median.in_words(clean(substrate)) for substrate, median in (bounds or {}).items()]
    return AnswerView(table.said(found), table_of(Section("Answer", HEAD, rows, notes)))


def _row(line: WorkLine, entry: Entry, marks: FlagMarks, *, apart: bool) -> list[Content]:
    row, share = entry.row, tax_share(entry.row)
    letters = marks.of(row.flags)
    provenance = f" ({clean(entry.place.provenance).replace('_', '-')})" if apart else ""
    place = f"{clean(entry.place.name)}{provenance}{f' [{letters}]' if letters else ''}"
    trials = NOTHING if row.trials is None else TableCell(row.trials, COUNT)
    if entry.amount is None:
        return [clean(line.name), place, "no success", NOTHING, NOTHING, NOTHING, trials]
    return [
        clean(line.name),
        place,
        amount_cell(entry.amount.times(NS_PER_S), NS),
        _ratio(line, entry),
        NOTHING if share is None else TableCell(share, SHARE),
        _tax_hours(entry),
        trials,
    ]


def _ratio(line: WorkLine, entry: Entry) -> Content:
    if entry.ratio is None:
        return "cheapest" if entry.place == line.reference else NOTHING
    kind = entry.verdict.kind if entry.verdict is not None else ""
    value, low, high = entry.ratio
    return TableCell(value, TIMES, low, high, UNDECIDED.get(kind, ""))


def _tax_hours(entry: Entry) -> Content:
    """Worker-hours of tax in a million trajectories, or their limits."""
    row = entry.row
    if row.tax_between_worker_hours is not None:
        return TableCell(None, "", *row.tax_between_worker_hours)
    return amount_cell(row.tax_worker_hours)
