"""Typed cells of tables: values with units and intervals, which each medium prints, sorts and converts by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from costmodel import NS_PER_HOUR, Between, Interval
from taxtui.report.numbers import COUNT, DOLLARS, NOTHING, NS, SHARE, SHORT, TIMES, between, parts, span

__all__ = [
    "COUNT",
    "DOLLARS",
    "NS",
    "SHARE",
    "SHORT",
    "TIMES",
    "CellGroup",
    "Content",
    "PrintedLine",
    "RowName",
    "TableCell",
    "aligned",
    "amount_cell",
    "duration_cell",
    "hours_cell",
    "lines_of",
    "number_of",
    "text_of",
]


class TableCell(NamedTuple):
    """One amount with its interval. Without a value the limits are all that is known; without limits it is empty."""

    value: float | None = None  # a share of 1 where the unit is SHARE
    unit: str = ""  # NS, TIMES, DOLLARS, SHARE, COUNT or SHORT; "" where the head of the column names it
    low: float | None = None
    high: float | None = None
    note: str = ""  # printed behind the interval: a verdict
    signed: bool = False  # a difference, printed with its sign

    @property
    def interval(self) -> Interval | None:
        return None if self.value is None else Interval(self.value, self.low, self.high)

    def inline(self) -> tuple[str, str]:
        """The value and what follows on the same line: ``4.31x`` and ``±0.26 no difference``."""
        if self.interval is None:
            if self.low is None or self.high is None:
                return "", self.note
            return span(Interval(self.low, self.low, self.high), lambda end: _printed(end, self.unit)), self.note
        value, sure = parts(self.interval, unit=self.unit, signed=self.signed)
        return value, f"{sure} {self.note}".strip()

    def lines(self) -> list[PrintedLine]:
        """The value, and its interval on a second line."""
        if self.value is None:
            if self.low is None or self.high is None:
                return [PrintedLine(line) for line in self.note.split("\n") if line]
            low, high = between(Between(self.low, self.high), lambda end: _printed(end, self.unit)).split("\n")
            return [PrintedLine(low, self._only(self.low)), PrintedLine(high, self._only(self.high))]
        value, sure = self.inline()
        return [PrintedLine(value, self._only(self.value)), *([PrintedLine(sure, self)] if sure else [])]

    def _only(self, value: float) -> TableCell:
        return TableCell(value, self.unit)


class PrintedLine(NamedTuple):
    """One line of a cell: its text, and the amount or the interval that it prints."""

    text: str
    amount: TableCell | None = None


class CellGroup(NamedTuple):
    """Several amounts in one column: beside one another, or one below the other."""

    cells: tuple[TableCell, ...]
    below: bool = False


class RowName(NamedTuple):
    """The first cell of a row."""

    label: str  # of the substrate, with how it was measured
    details: str  # the workload
    letters: str = ""  # of the row's warnings

    @property
    def text(self) -> str:
        """The label with its letters, and the details on a second line."""
        return f"{self.label}{f' [{self.letters}]' if self.letters else ''}\n{self.details}"


Content: TypeAlias = str | TableCell | CellGroup | RowName
"""Content of a table's cell; a text has no value and is sorted as text."""


def duration_cell(ns: float | None, low_ns: float | None = None, high_ns: float | None = None) -> TableCell | str:
    """A duration with its interval; a dash where it is unknown."""
    return NOTHING if ns is None else TableCell(ns, NS, low_ns, high_ns)


def amount_cell(amount: Interval | None, unit: str = "", *, signed: bool = False) -> TableCell | str:
    """An amount with its interval; a dash where it is unknown."""
    return NOTHING if amount is None else TableCell(amount.value, unit, amount.low, amount.high, signed=signed)


def hours_cell(hours: float | None, low: float | None = None, high: float | None = None) -> TableCell | str:
    """Hours of wall-clock as a duration: ``68 days``."""
    low, high = (None if end is None else end * NS_PER_HOUR for end in (low, high))
    return NOTHING if hours is None else TableCell(hours * NS_PER_HOUR, NS, low, high)


def lines_of(content: Content) -> list[PrintedLine]:
    """The lines of a cell."""
    match content:
        case TableCell():
            return content.lines()
        case CellGroup(cells=cells, below=True):
            return [line for cell in cells for line in cell.lines()[:1] or [PrintedLine(NOTHING)]]
        case CellGroup(cells=cells):
            return [PrintedLine("  ".join(" ".join(filter(None, cell.inline())) for cell in cells).rstrip())]
        case RowName():
            return [PrintedLine(line) for line in content.text.split("\n")]
    return [PrintedLine(line) for line in content.split("\n")]


def text_of(content: Content) -> str:
    """A cell as text, its lines as lines."""
    return "\n".join(line.text for line in lines_of(content))


def number_of(content: Content) -> float | None:
    """The number that a column is sorted by; None of a text and of an unknown amount."""
    match content:
        case TableCell():
            return content.low if content.value is None else content.value
        case CellGroup(cells=cells):
            return next((number for cell in cells if (number := number_of(cell)) is not None), None)
    return None


def aligned(column: Sequence[Content]) -> list[str]:
    """The cells of a column as texts; the amounts of groups end under one another, what follows them begins so."""
    from taxtui.terminal_text import width

    groups = [content for content in column if isinstance(content, CellGroup) and not content.below]
    if not groups:
        return [text_of(content) for content in column]
    count = max(len(group.cells) for group in groups)
    pieces = [
        [cell.inline() for cell in content.cells] if isinstance(content, CellGroup) else [(text_of(content), "")]
        for content in column
    ]
    padded = [[*row, *[("", "")] * (count - len(row))] for row in pieces]
    rooms = [[max(map(width, texts)) for texts in zip(*member, strict=True)] for member in zip(*padded, strict=True)]
    return [
        "  ".join(
            f"{' ' * (room - width(value))}{value}{' ' * bool(after_room)}{after}{' ' * (after_room - width(after))}"
            for (value, after), (room, after_room) in zip(row, rooms, strict=True)
            if room or after_room
        )
        for row in padded
    ]


def _printed(value: float, unit: str) -> str:
    return parts(Interval(value), unit=unit)[0]
