"""How a table is sorted, filtered and grouped: by its typed cells, so any table can be."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from taxtui.report.cells import Content, RowName, number_of

Item = TypeVar("Item")
Key = tuple[int, float, tuple[tuple[bool, int, str], ...]]

GROUPS: Final = ("", "work", "substrate")
"""What rows can stand together by; "" is the table's own order."""
_PIECES: Final = re.compile(r"\d+|\D+")
AMOUNT, TEXT, NOTHING = range(3)
"""Amounts stand before texts, and what says nothing stands last, in whichever direction."""


class Arrangement(NamedTuple):
    """What a person asked of a table."""

    wanted: str = ""  # words that a row must have, all of them
    column: int | None = None  # that it is sorted by; None: its own order
    descending: bool = False
    group: str = GROUPS[0]

    def next_column(self, columns: int) -> Arrangement:
        """Sorted by the next column; by none behind the last."""
        place = 0 if self.column is None else self.column + 1
        return self._replace(column=place if place < columns else None, descending=False)

    def next_group(self) -> Arrangement:
        """Grouped by something else."""
        return self._replace(group=GROUPS[(GROUPS.index(self.group) + 1) % len(GROUPS)])

    def passes(self, text: str) -> bool:
        """Whether a row with this text is shown."""
        told = text.casefold()
        return all(word in told for word in self.wanted.casefold().split())

    def in_words(self, titles: Sequence[str]) -> str:
        """``by work · sorted by p95 ↓ · only T1``; "" where nothing is asked."""
        parts = [f"by {self.group}"] if self.group else []
        if self.column is not None and self.column < len(titles):
            parts.append(f"sorted by {titles[self.column]} {'↓' if self.descending else '↑'}")
        parts += [f"only {self.wanted}"] if self.wanted.strip() else []
        return " · ".join(parts)


def natural(content: Content) -> Key:
    """The place of a cell among those of its column: amounts by size, texts with the numbers in them in order.

    ``T0×10`` is before ``T0×150``, ``900 ms`` before ``1.1 s``; an unknown amount is behind all.
    """
    if not isinstance(content, str | RowName):
        number = number_of(content)
        return (NOTHING, 0.0, ()) if number is None else (AMOUNT, number, ())
    text = f"{content.label} {content.details}" if isinstance(content, RowName) else content.partition("\n")[0].strip()
    if not any(map(str.isalnum, text)):
        return NOTHING, 0.0, ()
    pieces = _PIECES.findall(text.casefold())
    return TEXT, 0.0, tuple((not one[0].isdigit(), int(one) if one[0].isdigit() else 0, one) for one in pieces)


def arranged(
    rows: Sequence[Item],
    asked: Arrangement,
    *,
    text: Callable[[Item], str],
    group: Callable[[Item], str],
    cell: Callable[[Item], Content],
) -> list[int]:
    """Which rows are shown, by their number, in the order asked for.

    ``text`` is all that a filter looks at, ``group`` what rows of one group share, ``cell`` what they are sorted by.
    """
    found = [number for number, row in enumerate(rows) if asked.passes(text(row))]
    if asked.column is not None:
        keys = {number: natural(cell(rows[number])) for number in found}
        found.sort(key=lambda number: keys[number], reverse=asked.descending)
        found.sort(key=lambda number: keys[number][0] == NOTHING)
    if asked.group:
        found.sort(key=lambda number: natural(group(rows[number])))
    return found
