"""Reads recordings into the tables of the Results screen; runs in a thread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from costmodel import FIXED_LENGTH, Answer, Recording
from taxtui.errors import RecordingError
from taxtui.live import catalogue
from taxtui.live.cell_state import CellState
from taxtui.report.answer import measured
from taxtui.report.cells import RowName
from taxtui.report.formats import Section
from taxtui.report.measured import ladders
from taxtui.report.measured.ladders import LADDER, ladders_of
from taxtui.report.measured.rows import MeasuredRow, rows_of
from taxtui.report.measured.samples import read_samples
from taxtui.report.measured.sections import sections
from taxtui.terminal_text import clean

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
"""Name of a table for ``taxtui report --table`` → title of the tab."""


class ResultsRequest(NamedTuple):
    """A request for a table."""

    paths: tuple[Path, ...]
    table: str


class ResultsShown(NamedTuple):
    """The measured rows, with the ranking or the sections of a table."""

    sections: Sequence[Section]
    rows: Sequence[MeasuredRow]
    answer: Answer | None = None


def is_named(row: MeasuredRow, name: RowName) -> bool:
    """Whether a row has this name."""
    return (name.label, name.details) == (row.label, row.details)


def is_of_row(row: MeasuredRow, cell: CellState) -> bool:
    """Whether a row includes a cell of a recording."""
    identity = row.identity
    fields = ("tier", "mode", "concurrency", "length", "think", "acquire")
    return (
        cell.label == clean(identity.label)
        and all(getattr(cell, field) == getattr(identity, field) for field in fields)
        and (cell.length != FIXED_LENGTH or cell.actions == identity.actions)
    )


class ResultsReader:
    """Reads recordings once, until a file changes."""

    def __init__(self) -> None:
        self._cache: dict[tuple[Path, ...], tuple[object, tuple[list[MeasuredRow], list[Recording], int]]] = {}

    def show(self, request: ResultsRequest) -> Iterator[ResultsShown]:
        """Yield the sections of a table; the last section explains the warnings.

        Raises:
            RecordingError: nothing has been measured yet.
            costmodel.errors.RecordingError: a recording cannot be read, or two files have the same run.
        """
        if not request.paths:
            raise RecordingError("there is no recording yet", fix="1 measures, 5 lists recordings")
        rows, sources, unfinished = self._rows(request.paths)
        if not rows:
            raise RecordingError("no trial has ended yet", fix="r reads the recording again")
        if request.table == ANSWER:
            yield ResultsShown((), rows, measured.answer(rows, sources))
        elif request.table == LADDER:
            sweeps = ladders_of(rows)
            if not sweeps:
                raise RecordingError(ladders.NONE, fix="measure one: taxtui run --ladder 1:64")
            yield ResultsShown(ladders.sections(sweeps), rows)
        else:
            answer = measured.answer(rows, sources) if request.table == "tax" else None
            yield ResultsShown(sections(rows, sources, [request.table], unfinished, answer), rows)

    def _rows(self, paths: tuple[Path, ...]) -> tuple[list[MeasuredRow], list[Recording], int]:
        stamps = [catalogue.stamp(path) for path in paths]
        if paths not in self._cache or self._cache[paths][0] != stamps:
            cells, sources = read_samples(paths)
            rows = rows_of(cells)
            self._cache = {paths: (stamps, (rows, sources, len(cells) - len(rows)))}
        return self._cache[paths][1]
