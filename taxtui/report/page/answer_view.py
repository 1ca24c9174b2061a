"""The answer as a table of a page: a line per work, a column per place, each with interval, ratio and tax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from costmodel import Projection
from costmodel.answer import HELD, Entry, Line, answer_of
from costmodel.uncertainty import Interval
from costmodel.verdict import CANNOT_TELL, TIE
from costmodel.wording import sentence
from taxtui.report.marks import FlagMarks
from taxtui.report.numbers import duration, hours
from taxtui.report.page.views import Cell, CellLine, cell_of, shown
from taxtui.report.projected.sections import marks_of
from taxtui.terminal_text import clean


class Column(NamedTuple):
    """A place."""

    name: str
    apart: str  # how it was come by, where that is not how the ranked ones were
    differs: str


class Told(NamedTuple):
    """One work at one place."""

    cell: Cell
    ratio: str
    verdict: str  # "best", "tie", "cannot tell" or nothing
    tax: str
    n: str  # with the letters of its flags


class AnswerView(NamedTuple):
    """For the template."""

    sentence: str
    columns: list[Column]
    lines: list[tuple[Cell, list[Told | None]]]
    notes: list[str]


def answer_view(rows: Sequence[Projection], run_sd: float | None = None) -> AnswerView:
    """Of projections of one demand: what a delivered trajectory holds a worker for."""
    found = answer_of(rows, HELD, run_sd=run_sd)
    marks = marks_of(rows)
    columns = [
        Column(shown(place.name), clean(place.provenance) if place in found.unranked else "", shown(place.differs))
        for place in found.places
    ]
    lines = [(_named(line), [_told(line, line.at(place), marks) for place in found.places]) for line in found.lines]
    notes = [
        "What one delivered trajectory holds a worker for, failures included, with its 95 % interval; below, how many "
        "times the cheapest that is, and how much of it is tax: neither think time nor the commands' own time. "
        "tie: the interval of the difference spans none.",
    ]
    notes += [f"{column.name}: {column.differs}." for column in columns if column.differs]
    notes += ["Apart, not ranked: what was not measured here."] if found.unranked else []
    notes += marks.notes()
    return AnswerView(clean(sentence(found)), columns, lines, notes)


def _named(line: Line) -> Cell:
    return Cell((CellLine(shown(line.name)),), "")


def _told(line: Line, entry: Entry | None, marks: FlagMarks) -> Told | None:
    if entry is None:
        return None
    if entry.amount is None:
        return Told(cell_of("no success"), "", "", "", "")
    amount = entry.amount.times(1e9)
    cell = cell_of(duration(*amount))._replace(sort=f"{amount.value:.12g}")
    letters = marks.of(entry.row.flags)
    n = "" if entry.row.trials is None else f"n={entry.row.trials:,}"
    return Told(
        cell, _ratio(entry.ratio), _verdict(line, entry), _tax(entry.row), f"{n}{f' [{letters}]' if letters else ''}"
    )


def _ratio(ratio: Interval | None) -> str:
    if ratio is None:
        return ""
    ends = "" if ratio.low is None or ratio.high is None else f" ({ratio.low:.3g}…{ratio.high:.3g})"
    return f"{ratio.value:.3g}x{ends}"


def _verdict(line: Line, entry: Entry) -> str:
    if entry.place == line.reference:
        return "cheapest"
    kind = entry.verdict.kind if entry.verdict is not None else ""
    return {TIE: "tie", CANNOT_TELL: "cannot tell"}.get(kind, "")


def _tax(row: Projection) -> str:
    """Of a million trajectories, as worker-hours."""
    if row.tax_worker_hours is None or row.worker_hours is None or not row.worker_hours.value:
        return ""
    return (
        f"tax {row.tax_worker_hours.value / row.worker_hours.value:.0%}, {hours(row.tax_worker_hours.value)} h per 1M"
    )
