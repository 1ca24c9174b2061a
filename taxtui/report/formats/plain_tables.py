"""The report for a terminal of 80 columns: aligned, two lines per row, what flags mean in words below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from taxtui.report.formats import Report, Section
from taxtui.terminal_text import clean, clean_lines, cut, widest, wrap
from taxtui.terminal_text import width as width_of

WIDTH: Final = 80
MIN_FIRST: Final = 12


def render(report: Report) -> str:
    """The sections, or the report's own lines where it has some."""
    return report.lines() if report.lines else to_text(report.sections())


def to_text(sections: Sequence[Section], width: int = WIDTH) -> str:
    """All sections, a blank line between them."""
    return "\n\n".join("\n".join(line for line, _ in laid_out(section, width)) for section in sections)


def laid_out(section: Section, width: int = WIDTH) -> list[tuple[str, int | None]]:
    """The lines of a section at most ``width`` columns wide, each with the number of the row that it belongs to.

    A title, its blank line, the head and its rule, and notes belong to none.
    """
    lines: list[tuple[str, int | None]] = []
    if section.title:
        lines += [(line, None) for line in [*wrap(clean(section.title), width), ""]]
    rows = [list(map(clean_lines, row)) for row in section.rows]
    columns = list(zip(section.head, *rows, strict=True))
    widths = list(map(_width, columns))
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= width else 1
    if sum(widths) + gap * (len(widths) - 1) > width:
        columns = [(_broken(head, _width(cells)), *cells) for head, *cells in columns]
        widths = list(map(_width, columns))
    excess = sum(widths) + gap * (len(widths) - 1) - width
    if excess > 0:
        widths[0] = max(MIN_FIRST, widths[0] - excess)
    left = {0} | {i for i, column in enumerate(columns) if column[0].startswith(("flags", "rule", "policy", "95"))}
    rule = (" " * gap).join("─" * width for width in widths)
    lines += [(line, None) for line in _lines_of([column[0] for column in columns], widths, left, gap)]
    lines.append((rule, None))
    for number, row in enumerate(rows):
        lines += [(line, number) for line in _lines_of(row, widths, left, gap)]
    if section.notes:
        lines.append(("", None))
    for note in section.notes:
        indent = "   " if note[1:3] == "  " else "  "
        lines += [(line, None) for line in wrap(clean(note), width, indent)]
    return lines


def _width(cells: Sequence[str]) -> int:
    return widest(line for cell in cells for line in cell.split("\n"))


def _broken(head: str, below: int) -> str:
    """A heading of several words that is all that makes its column wide goes on in its second line, if that is free."""
    first, second = _two_lines(head)
    if second or width_of(first) <= below:
        return head
    return "\n".join(first.rsplit(" ", 1))


def _lines_of(row: Sequence[str], widths: Sequence[int], left: set[int], gap: int) -> list[str]:
    both = zip(*(_two_lines(cell) for cell in row), strict=True)
    return [_aligned(line, widths, left, gap) for line in both if any(line)]


def _two_lines(cell: str) -> tuple[str, str]:
    first, _, second = cell.partition("\n")
    return first, second


def _aligned(line: Sequence[str], widths: Sequence[int], left: set[int], gap: int) -> str:
    cells = []
    for number, (text, width) in enumerate(zip(line, widths, strict=True)):
        fitting = cut(text, width)
        padding = " " * (width - width_of(fitting))
        cells.append(fitting + padding if number in left else padding + fitting)
    return (" " * gap).join(cells).rstrip()
