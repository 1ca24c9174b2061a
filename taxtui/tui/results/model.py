"""Reads recordings into the tables of the Results screen; meant to be called off the event loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from costmodel import FIXED_LENGTH, Answer, Recording, concurrency_sweep
from taxtui.errors import RecordingError
from taxtui.live import catalogue
from taxtui.live.cell_state import CellState
from taxtui.report.answer import measured
from taxtui.report.cells import Content, RowName, text_of
from taxtui.report.formats import Section
from taxtui.report.measured import ladders
from taxtui.report.measured.ladders import LADDER, ladders_of
from taxtui.report.measured.rows import MeasuredRow, rows_of
from taxtui.report.measured.samples import read_samples
from taxtui.report.measured.sections import sections
from taxtui.terminal_text import clean
from taxtui.tui.arranging import Arrangement, arranged

ANSWER: Final = "answer"
TABLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        ANSWER: "Answer",
        "cold-start": "Cold start",
        "fresh": "Fresh",
        "completion": "Completion",
        "actions": "Per action",
        "breakdown": "Breakdown",
        "tax": "Tax",
        LADDER: "Ladder",
    }
)
"""Name of a table, as ``taxtui report --table`` takes it → title of its tab."""


class Wanted(NamedTuple):
    """A request for a table."""

    paths: tuple[Path, ...]
    table: str


class ResultsShown(NamedTuple):
    """The sections of a table with the measured rows, or the answer."""

    sections: Sequence[Section]
    rows: Sequence[MeasuredRow]
    answer: Answer | None = None
    climbed: Sequence[concurrency_sweep.Ladder] = ()


def arranged_section(section: Section, arrangement: Arrangement) -> Section:
    """Return a section with its rows arranged; a section without named rows as it is."""
    if arrangement == Arrangement() or not section.rows or not all(isinstance(row[0], RowName) for row in section.rows):
        return section

    def text(row: Sequence[Content]) -> str:
        return " ".join(map(text_of, row))

    def cell(row: Sequence[Content]) -> Content:
        column = arrangement.column or 0
        return row[column] if column < len(row) else ""

    order = arranged(section.rows, arrangement, text=text, cell=cell)
    return section._replace(rows=[section.rows[number] for number in order])


def named(row: MeasuredRow, name: Content) -> bool:
    """Whether the first cell of a line names this row."""
    return isinstance(name, RowName) and (name.label, name.details) == (row.label, row.details)


def of_row(row: MeasuredRow, cell: CellState) -> bool:
    """Whether a row includes a cell of a recording."""
    identity = row.identity
    return (cell.label, cell.tier, cell.mode, cell.concurrency, cell.length, cell.think, cell.acquire) == (
        *(
            clean(identity.label),
            identity.tier,
            identity.mode,
            identity.concurrency,
            identity.length,
            identity.think,
            identity.acquire,
        ),
    ) and (cell.length != FIXED_LENGTH or cell.actions == identity.actions)


class ResultsReader:
    """Reads recordings once, until a file changes."""

    def __init__(self) -> None:
        self._read: dict[tuple[Path, ...], tuple[object, tuple[list[MeasuredRow], list[Recording], int]]] = {}

    def show(self, wanted: Wanted) -> ResultsShown:
        """Return the sections of a table; the last one explains the warnings.

        Raises:
            RecordingError: nothing has been measured yet.
            costmodel.errors.RecordingError: a recording cannot be read, or a run was given twice.
        """
        if not wanted.paths:
            raise RecordingError("there is no recording yet", fix="1 measures, 5 lists recordings")
        self._read = {key: read for key, read in self._read.items() if key == wanted.paths}
        rows, sources, unfinished = self._rows(wanted.paths)
        if not rows:
            raise RecordingError("no trial has ended yet", fix="r reads the recording again")
        if wanted.table == ANSWER:
            return ResultsShown((), rows, measured.answer(rows, sources))
        if wanted.table == LADDER:
            climbed = ladders_of(rows)
            if not climbed:
                raise RecordingError(ladders.NONE, fix="measure one: taxtui run --ladder 1:64")
            return ResultsShown(ladders.sections(climbed), rows, climbed=climbed)
        return ResultsShown(sections(rows, sources, [wanted.table], unfinished), rows)

    def _rows(self, paths: tuple[Path, ...]) -> tuple[list[MeasuredRow], list[Recording], int]:
        state = [catalogue.stamp(path) for path in paths]
        cached = self._read.get(paths)
        if cached is None or cached[0] != state:
            cells, sources = read_samples(paths)
            rows = rows_of(cells)
            cached = (state, (rows, sources, len(cells) - len(rows)))
        self._read[paths] = cached
        return cached[1]
