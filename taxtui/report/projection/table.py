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
    return "\n\n".join("\n".join(_section(section)) for section in sections)


def _section(section: Section) -> list[str]:
    lines = [*textwrap.wrap(section.title, WIDTH), ""] if section.title else []
    columns = list(zip(section.head, *section.rows, strict=True))
    widths = [max(display_width(line) for cell in column for line in cell.split("\n")) for column in columns]
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= WIDTH else 1
    excess = sum(widths) + gap * (len(widths) - 1) - WIDTH
    if excess > 0:
        widths[0] = max(MIN_FIRST, widths[0] - excess)
    left = {0} | {i for i, column in enumerate(columns) if column[0].startswith(("flags", "rule", "policy", "95"))}
    rule = ["─" * width for width in widths]
    for number, row in enumerate([section.head, *section.rows]):
        for line in zip(*(_two_lines(cell) for cell in row), strict=True):
            if any(line):
                lines.append(_aligned(line, widths, left, gap))
        if number == 0:
            lines.append((" " * gap).join(rule))
    if section.notes:
        lines.append("")
    for note in section.notes:
        indent = "   " if note[1:3] == "  " else "  "
        width = WIDTH - (display_width(note) - len(note))  # textwrap counts characters, not columns
        lines += textwrap.wrap(note, width, subsequent_indent=indent, break_on_hyphens=False)
    return lines


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
