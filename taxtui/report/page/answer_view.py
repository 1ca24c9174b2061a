"""The answer as a table of a page: a line per work, a column per place, each with interval, ratio and tax."""

from __future__ import annotations

from typing import NamedTuple

from costmodel.analysis.ranking import Answer, Entry, WorkLine
from costmodel.projection.tax_bounds import Reference
from costmodel.projection.warnings import DO
from costmodel.units import NS_PER_S
from taxtui.report.answer import table
from taxtui.report.answer.order import tax_share
from taxtui.report.cells import NS, TableCell
from taxtui.report.marks import FlagMarks
from taxtui.report.numbers import UNSPLIT, number, percent, plus_minus
from taxtui.report.page.views import PageCell, cell_of, named, shown
from taxtui.report.words import UNDECIDED
from taxtui.terminal_text import clean


class AnswerColumn(NamedTuple):
    """A place."""

    name: str
    apart: str  # how it was come by, where that is not how the ranked ones were


class AnswerTold(NamedTuple):
    """One work at one place."""

    cell: PageCell
    verdict: str  # "cheapest", a verdict of ``words.UNDECIDED`` or nothing
    ratio: str
    n: str  # with the letters of its flags
    tax: str


class AnswerView(NamedTuple):
    """For the template."""

    sentence: str
    columns: list[AnswerColumn]
    lines: list[tuple[PageCell, list[AnswerTold | None]]]
    notes: list[str]


def answer_view(found: Answer, bounds: Reference | None = None) -> AnswerView:
    """Of what a delivered trajectory holds a worker for; ``bounds`` is what bounds a tax that is not known."""
    marks = FlagMarks([entry.row.flags for line in found.lines for entry in line.entries], DO)
    apart = [clean(place.provenance) if place in found.unranked else "" for place in found.places]
    columns = [AnswerColumn(shown(place.name), how) for place, how in zip(found.places, apart, strict=True)]
    lines = [(named(line.name), [_told(line, line.at(place), marks) for place in found.places]) for line in found.lines]
    notes = [
        "What one delivered trajectory holds a worker for, failures included; how many times the cheapest that is; how "
        "much of it is tax, neither think time nor the commands' own time.",
        *table.notes(found, marks),
    ]
    if any(entry.row.tax_between_worker_hours for line in found.lines for entry in line.entries):
        notes.append(UNSPLIT)
        notes += [median.in_words(clean(substrate)) for substrate, median in (bounds or {}).items()]
    return AnswerView(table.said(found), columns, lines, notes)


def _told(line: WorkLine, entry: Entry | None, marks: FlagMarks) -> AnswerTold | None:
    if entry is None:
        return None
    row = entry.row
    if entry.amount is None:
        return AnswerTold(cell_of("no success"), "", "", "", "")
    value, low, high = entry.amount.times(NS_PER_S)
    cell = cell_of(TableCell(value, NS, low, high))
    letters = marks.of(row.flags)
    n = "" if row.trials is None else f"n={row.trials:,}{f' [{letters}]' if letters else ''}"
    ratio = "" if entry.ratio is None else plus_minus(entry.ratio, unit="x")
    return AnswerTold(cell, _verdict(line, entry), ratio, n, _tax(entry))


def _verdict(line: WorkLine, entry: Entry) -> str:
    if entry.place == line.reference:
        return "cheapest"
    kind = entry.verdict.kind if entry.verdict is not None else ""
    return UNDECIDED.get(kind, "")


def _tax(entry: Entry) -> str:
    """Its share, and what it comes to in a million trajectories, of which the row is."""
    row, share = entry.row, tax_share(entry.row)
    if share is not None and row.tax_worker_hours is not None:
        return f"tax {percent(share)}, {number(row.tax_worker_hours.value)} h per 1M"
    if row.tax_between_worker_hours is not None:
        low, high = row.tax_between_worker_hours
        return f"tax {number(low)} … {number(high)} h per 1M"
    return ""
