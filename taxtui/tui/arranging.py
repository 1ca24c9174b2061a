"""Sorting and filtering of tables, by their typed cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.widgets import Input

from taxtui.report.cells import Content, RowName, number_of
from taxtui.tui.fields import FilterField
from taxtui.tui.numbered_screen import NumberedScreen

Item = TypeVar("Item")
Key = tuple[int, float, tuple[tuple[bool, int, str], ...]]

_PIECES: Final = re.compile(r"\d+|\D+")
AMOUNT, TEXT, NOTHING = range(3)
"""Amounts come first, then texts; empty cells come last in both directions."""


class Arrangement(NamedTuple):
    """How a person wants a table."""

    wanted: str = ""  # words that a row must contain, all of them
    column: int | None = None  # the column to sort by; None: the table's own order
    descending: bool = False

    def next_order(self, columns: int) -> Arrangement:
        """Return the next order: each column up, then down; after the last column the table's own order."""
        if self.column is not None and not self.descending:
            return self._replace(descending=True)
        place = 0 if self.column is None else self.column + 1
        return self._replace(column=place if place < columns else None, descending=False)

    def passes(self, text: str) -> bool:
        folded = text.casefold()
        return all(word in folded for word in self.wanted.casefold().split())

    def in_words(self, titles: Sequence[str]) -> str:
        """Return ``sorted by p95 ↓ · only T1``, or ""."""
        parts = []
        if self.column is not None and self.column < len(titles):
            parts.append(f"sorted by {titles[self.column]} {'↓' if self.descending else '↑'}")
        parts += [f"only {self.wanted}"] if self.wanted.strip() else []
        return " · ".join(parts)


def natural(content: Content) -> Key:
    """Return the sort key of a cell: amounts by size, texts with their numbers in order.

    ``T0×10`` is before ``T0×150``, ``900 ms`` before ``1.1 s``; unknown amounts are last.
    """
    if not isinstance(content, str | RowName):
        number = number_of(content)
        return (NOTHING, 0.0, ()) if number is None else (AMOUNT, number, ())
    text = f"{content.label} {content.details}" if isinstance(content, RowName) else content.partition("\n")[0].strip()
    if not any(map(str.isalnum, text)):
        return NOTHING, 0.0, ()
    pieces = _PIECES.findall(text.casefold())
    digits = [piece[0].isdigit() for piece in pieces]
    return TEXT, 0.0, tuple((not d, int(piece) if d else 0, piece) for d, piece in zip(digits, pieces, strict=True))


def arranged(
    rows: Sequence[Item],
    arrangement: Arrangement,
    *,
    text: Callable[[Item], str],
    cell: Callable[[Item], Content],
) -> list[int]:
    """Return the numbers of the rows to show, in order.

    ``text`` gives the text that a filter looks at, ``cell`` the cell to sort by.
    """
    numbers = [number for number, row in enumerate(rows) if arrangement.passes(text(row))]
    if arrangement.column is not None:
        keys = {number: natural(cell(rows[number])) for number in numbers}
        numbers.sort(key=lambda number: keys[number], reverse=arrangement.descending)
        numbers.sort(key=lambda number: keys[number][0] == NOTHING)
    return numbers


class ArrangedScreen(NumberedScreen):
    """A screen whose tables can be sorted and filtered; a subclass names the columns and shows the table again."""

    def __init__(self) -> None:
        super().__init__()
        self.arrangement = Arrangement()

    @property
    def columns(self) -> Sequence[str]:
        raise NotImplementedError

    def rearrange(self) -> None:
        raise NotImplementedError

    def filter_field(self) -> ComposeResult:
        yield FilterField(id="wanted", placeholder="show only rows that contain …", compact=True)

    def arrange_anew(self) -> None:
        self.arrangement = Arrangement()
        self.query_one(FilterField).forget()

    def action_sort(self) -> None:
        self.arrangement = self.arrangement.next_order(len(self.columns))
        self.rearrange()

    @on(Input.Changed, "#wanted")
    def filtered(self, event: Input.Changed) -> None:
        self.arrangement = self.arrangement._replace(wanted=event.value)
        self.rearrange()
