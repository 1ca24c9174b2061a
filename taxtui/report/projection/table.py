"""The report for a terminal of 80 columns: aligned, two lines per row, what flags mean in words below."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from typing import Final

from taxtui.report.projection.sections import Section

WIDTH: Final = 80
MIN_FIRST: Final = 12


def to_text(sections: Sequence[Section]) -> str:
    """All sections, a blank line between them."""
    return "\n\n".join("\n".join(line for line, _ in laid_out(section)) for section in sections)


def laid_out(section: Section, width: int = WIDTH) -> list[tuple[str, int | None]]:
    """The lines of a section at most ``width`` columns wide, each with the number of the row that it belongs to.

    A title, its blank line, the head and its rule, and notes belong to none.
    """
    lines: list[tuple[str, int | None]] = []
    if section.title:
        lines += [(line, None) for line in [*textwrap.wrap(section.title, width), ""]]
    columns = list(zip(section.head, *section.rows, strict=True))
    widths = [max(display_width(line) for cell in column for line in cell.split("\n")) for column in columns]
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= width else 1
    excess = sum(widths) + gap * (len(widths) - 1) - width
    if excess > 0:
        widths[0] = max(MIN_FIRST, widths[0] - excess)
    left = {0} | {i for i, column in enumerate(columns) if column[0].startswith(("flags", "rule", "policy", "95"))}
    rule = (" " * gap).join("─" * width for width in widths)
    lines += [(line, None) for line in _lines_of(section.head, widths, left, gap)]
    lines.append((rule, None))
    for number, row in enumerate(section.rows):
        lines += [(line, number) for line in _lines_of(row, widths, left, gap)]
    if section.notes:
        lines.append(("", None))
    for note in section.notes:
        indent = "   " if note[1:3] == "  " else "  "
        room = width - (display_width(note) - len(note))  # textwrap counts characters, not columns
        wrapped = textwrap.wrap(note, room, subsequent_indent=indent, break_on_hyphens=False)
        lines += [(line, None) for line in wrapped]
    return lines


def _lines_of(row: Sequence[str], widths: Sequence[int], left: set[int], gap: int) -> list[str]:
    both = zip(*(_two_lines(cell) for cell in row), strict=True)
    return [_aligned(line, widths, left, gap) for line in both if any(line)]


def _two_lines(cell: str) -> tuple[str, str]:
    first, _, second = cell.partition("\n")
    return first, second


def _aligned(line: Sequence[str], widths: Sequence[int], left: set[int], gap: int) -> str:
    cells = []
    for number, (text, width) in enumerate(zip(line, widths, strict=True)):
        fitting = _cut(text, width)
        padding = " " * (width - display_width(fitting))
        cells.append(fitting + padding if number in left else padding + fitting)
    return (" " * gap).join(cells).rstrip()


def _cut(text: str, width: int) -> str:
    if display_width(text) <= width:
        return text
    while display_width(text) > width - 1:
        text = text[:-1]
    return f"{text}…"


def display_width(text: str) -> int:
    """Columns of a terminal: wide characters take two, combining ones none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
