"""Typed cells of tables: values with units and intervals, printed and sorted by each output format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from costmodel import NS_PER_HOUR, Interval, Percentile
from taxtui.report.numbers import NOTHING, NS, parts, span
from taxtui.terminal_text import width


class TableCell(NamedTuple):
    """An amount with its interval. Without a value only the limits are known; without both the cell is empty."""

    value: float | None = None  # a share of 1 where the unit is SHARE
    unit: str = ""  # NS, TIMES, DOLLARS, SHARE, COUNT or SHORT; "" where the head of the column names it
    low: float | None = None
    high: float | None = None
    note: str = ""  # printed behind the interval: a verdict
    signed: bool = False  # print a plus sign too

    @property
    def interval(self) -> Interval | None:
        return None if self.value is None else Interval(self.value, self.low, self.high)

    def inline(self) -> tuple[str, str]:
        """Return the value and the rest of its line: ``4.31x`` and ``±0.26 no difference``."""
        if self.interval is None:
            if self.low is None or self.high is None:
                return "", self.note
            return span(Interval(self.low, self.low, self.high), self._format), self.note
        value, limits = parts(self.interval, unit=self.unit, signed=self.signed)
        return value, f"{limits} {self.note}".strip()

    def lines(self) -> list[str]:
        """Return the value and, on a second line, its interval."""
        if self.value is None:
            if self.low is None or self.high is None:
                return list(filter(None, self.note.split("\n")))
            return [f"≥ {self._format(self.low)}", f"≤ {self._format(self.high)}"]
        value, limits = self.inline()
        return [value, *([limits] if limits else [])]

    def _format(self, value: float) -> str:
        return parts(Interval(value), unit=self.unit)[0]


class CellGroup(NamedTuple):
    """Several amounts in one column."""

    cells: tuple[TableCell, ...]
    below: bool = False  # one amount per line


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
"""Content of a table cell; a text has no value and is sorted as text."""


def duration_cell(ns: float | None, low_ns: float | None = None, high_ns: float | None = None) -> TableCell | str:
    """Return a duration with its interval, or a dash if unknown."""
    return NOTHING if ns is None else TableCell(ns, NS, low_ns, high_ns)


def amount_cell(amount: Interval | None, unit: str = "", *, signed: bool = False) -> TableCell | str:
    """Return an amount with its interval, or a dash if unknown."""
    return NOTHING if amount is None else TableCell(amount.value, unit, amount.low, amount.high, signed=signed)


def percentile_cell(item: Percentile) -> TableCell:
    """Return a percentile with its interval, or the number of values that are needed."""
    if item.value is None:
        return TableCell(note=f"needs\nn≥{item.needs:,}")
    return TableCell(item.value, NS, item.low, item.high)


def hours_cell(hours: float | None, low: float | None = None, high: float | None = None) -> TableCell | str:
    """Return hours of wall-clock as a duration: ``68 days``."""
    low, high = (None if limit is None else limit * NS_PER_HOUR for limit in (low, high))
    return NOTHING if hours is None else TableCell(hours * NS_PER_HOUR, NS, low, high)


def lines_of(content: Content) -> list[str]:
    """Return the printed lines of a cell."""
    match content:
        case TableCell():
            return content.lines()
        case CellGroup(cells=cells, below=True):
            return [line for cell in cells for line in cell.lines()[:1] or [NOTHING]]
        case CellGroup(cells=cells):
            return ["  ".join(" ".join(filter(None, cell.inline())) for cell in cells).rstrip()]
        case RowName():
            return content.text.split("\n")
    return content.split("\n")


def text_of(content: Content) -> str:
    """Return a cell as text."""
    return "\n".join(lines_of(content))


def number_of(content: Content) -> float | None:
    """Return the number for sorting; None for a text or an unknown amount."""
    match content:
        case TableCell():
            return content.low if content.value is None else content.value
        case CellGroup(cells=cells):
            return next((number for cell in cells if (number := number_of(cell)) is not None), None)
    return None


def aligned(column: Sequence[Content]) -> list[str]:
    """Return the cells of a column as texts, with the amounts of groups aligned at their right end."""
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
