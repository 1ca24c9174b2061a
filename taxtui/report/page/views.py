"""Tables of a page: cells as escaped HTML, with exact numbers for sorting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from taxtui.report.cells import CellGroup, Content, lines_of, number_of
from taxtui.report.formats import Section
from taxtui.report.numbers import NOTHING
from taxtui.terminal_text import clean, cut

MOST_COLUMNS: Final = 160
"""Maximum columns of a line in a cell; the CSV has whole names."""


class PageCell(NamedTuple):
    """One or two lines as HTML, and the number for sorting; "" sorts by the text."""

    html: Markup
    sort: str


class PageTable(NamedTuple):
    """A section for a template."""

    title: str
    head: list[list[str]]
    rows: list[list[PageCell]]  # the first cell is the name of the row
    notes: Sequence[str]  # texts, or HTML as Markup


def table_of(section: Section) -> PageTable:
    """Return a section as a table with one amount per column."""
    columns = list(zip(*section.rows, strict=True)) or [()] * len(section.head)
    head: list[list[str]] = []
    cells: list[list[PageCell]] = []
    for number, (title, column) in enumerate(zip(section.head, columns, strict=True)):
        lines = [clean(line) for line in title.split("\n") if line]
        if number and section.amounts and any(isinstance(cell, CellGroup) for cell in column):
            for place, name in enumerate(section.amounts):
                amounts = [_amount(cell, place) for cell in column]
                if any(amount != NOTHING for amount in amounts):
                    head.append([*lines, name])
                    cells.append(list(map(cell_of, amounts)))
        else:
            head.append(lines)
            cells.append(list(map(cell_of, column)))
    rows = [list(row) for row in zip(*cells, strict=True)]
    return PageTable(clean(section.title), head, rows, [clean(note) for note in section.notes])


def _amount(content: Content, place: int) -> Content:
    if not isinstance(content, CellGroup):
        return NOTHING
    return content.cells[place] if place < len(content.cells) and any(content.cells[place]) else NOTHING


def tables_of(sections: Sequence[Section]) -> list[PageTable]:
    """Return all sections with rows as tables."""
    return [table_of(section) for section in sections if section.rows]


def cell_of(content: Content) -> PageCell:
    """Return a cell with the texts of the command line."""
    number = number_of(content)
    lines = (printable(line) for line in lines_of(content) if line.strip())
    html = Markup("").join(Markup('<span class="line">{}</span>').format(line) for line in lines)
    return PageCell(html, "" if number is None else f"{number:.12g}")


def printable(text: str) -> str:
    """Return a text from a recording, clean and short enough for a table."""
    return cut(clean(text).strip(), MOST_COLUMNS)
