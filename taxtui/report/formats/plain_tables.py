"""A report for a terminal: aligned tables, no wider than the terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from taxtui.report.bars import Pen, draw, pen_of
from taxtui.report.cells import Content, aligned
from taxtui.report.formats import Report, Section
from taxtui.terminal_text import clean, clean_lines, cut, widest, wrap
from taxtui.terminal_text import width as width_of

WIDTH: Final = 80
"""Columns of a pipe, unless ``COLUMNS`` is set."""
NARROWEST: Final = 50
PROSE: Final = 100
"""Maximum columns of notes and titles."""
MIN_FIRST: Final = 12
HATCHES: Final = Pen()
MOST_LINES: Final = 12
"""Maximum lines of a name that is wider than the table."""


def render(report: Report) -> str:
    """Return the report's lines, if any, else its sections, as wide as the terminal."""
    return report.lines() if report.lines else to_text(report.sections(), terminal_width(), pen_of(sys.stdout))


def terminal_width() -> int:
    """Return ``COLUMNS``, else the width of the terminal, else 80."""
    return max(NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns)


def to_text(sections: Sequence[Section], width: int = WIDTH, pen: Pen = HATCHES) -> str:
    """Return all sections with a blank line between them."""
    return "\n\n".join("\n".join(line for line, _ in laid_out(section, width, pen)) for section in sections)


def laid_out(section: Section, width: int = WIDTH, pen: Pen = HATCHES) -> list[tuple[str, int | None]]:
    """Return the lines of a section, at most ``width`` columns wide, each with the number of its row, if any.

    If the columns do not fit side by side, the rest follows below with the names again. A name of more than twelve
    lines is cut.
    """
    lines: list[tuple[str, int | None]] = []
    if section.title:
        lines += [(line, None) for line in wrap(clean(section.title), min(width, PROSE))]
        lines += [("", None)] if section.head or section.notes else []
    if section.head:
        lines += _fitted(section, width)
    if section.head and section.notes:
        lines.append(("", None))
    if section.command:  # one line, for copying
        return [*lines, (f"  {section.command}", None)]
    for note in section.notes:
        indent = ("   " if note[1:3] == "  " else "  ") if section.title or section.head else ""
        text = f"{'- ' * section.items}{clean(note)}"
        lines += [(line, None) for line in wrap(text, min(width, PROSE), indent)]
    if section.bars is not None:
        lines += [(line, None) for line in draw(section.bars, width, pen)]
    return lines


def _fitted(section: Section, width: int) -> list[tuple[str, int | None]]:
    contents = list(zip(*section.rows, strict=True)) or [()] * len(section.head)
    columns = [
        _measured([head, *map(clean_lines, aligned(column))], left_aligned=number == 0 or _is_text(column))
        for number, (head, column) in enumerate(zip(section.head, contents, strict=True))
    ]
    gap = 2 if _needed(columns, 2) <= width else 1
    if _needed(columns, gap) > width:
        columns = [column._replace(head=_broken(column.head, column.cell_width)) for column in columns]
    names, *values = columns
    values = [_wrapped(column, width - gap - MIN_FIRST) for column in values]
    if values:
        names = _wrapped(names, width - gap - max(column.width for column in values))
    lines: list[tuple[str, int | None]] = []
    for number, block in enumerate(_blocks(names, values, width, gap)):
        lines += [("", None)] if number else []
        lines += _table([names, *block], gap)
    return lines


def _is_text(column: Sequence[Content]) -> bool:
    """Return whether a column has words instead of amounts."""
    words = [cell for cell in column if isinstance(cell, str)]
    return len(words) == len(column) and any(letter.isalpha() for cell in words for letter in cell)


class TextColumn(NamedTuple):
    """A head and its cells, with their width: a table may have very many cells, and each is measured once."""

    head: str
    cells: Sequence[str]
    cell_width: int
    left_aligned: bool = False

    @property
    def width(self) -> int:
        return max(self.cell_width, _width([self.head]))


def _measured(texts: Sequence[str], *, left_aligned: bool) -> TextColumn:
    head, *cells = texts
    return TextColumn(head, cells, _width(cells), left_aligned)


def _needed(columns: Sequence[TextColumn], gap: int) -> int:
    return sum(column.width for column in columns) + gap * (len(columns) - 1)


def _wrapped(column: TextColumn, room: int) -> TextColumn:
    """Break the lines of a column that are wider than ``room``."""
    room = max(MIN_FIRST, room)
    if column.width <= room:
        return column
    texts = []
    for cell in (column.head, *column.cells):
        lines = [part for line in cell.split("\n") for part in wrap(line, room)]
        texts.append("\n".join([*lines[: MOST_LINES - 1], cut("".join(lines[MOST_LINES - 1 :]), room)]).rstrip("\n"))
    return _measured(texts, left_aligned=column.left_aligned)


def _blocks(names: TextColumn, columns: Sequence[TextColumn], width: int, gap: int) -> list[list[TextColumn]]:
    blocks: list[list[TextColumn]] = [[]]
    for column in columns:
        if blocks[-1] and _needed([names, *blocks[-1], column], gap) > width:
            blocks.append([])
        blocks[-1].append(column)
    return blocks


def _table(columns: Sequence[TextColumn], gap: int) -> list[tuple[str, int | None]]:
    widths = [(column.width, column.left_aligned) for column in columns]  # measured once, not for each row
    lines: list[tuple[str, int | None]] = [
        (line, None) for line in _lines_of([column.head for column in columns], widths, gap)
    ]
    lines.append(((" " * gap).join("─" * width for width, _ in widths), None))
    for number, row in enumerate(zip(*(column.cells for column in columns), strict=True)):
        lines += [(line, number) for line in _lines_of(row, widths, gap)]
    return lines


def _width(cells: Sequence[str]) -> int:
    return widest(line for cell in cells for line in cell.split("\n"))


def _broken(head: str, cell_width: int) -> str:
    first, _, second = head.partition("\n")
    if second or width_of(first) <= cell_width:
        return head
    return "\n".join(first.rsplit(" ", 1))


def _lines_of(row: Sequence[str], widths: Sequence[tuple[int, bool]], gap: int) -> list[str]:
    lines = []
    for texts in zip_longest(*(cell.split("\n") for cell in row), fillvalue=""):
        padded = []
        for text, (width, left_aligned) in zip(texts, widths, strict=True):
            padding = " " * (width - width_of(text))
            padded.append(text + padding if left_aligned else padding + text)
        if any(texts):
            lines.append((" " * gap).join(padded).rstrip())
    return lines
