"""Typed tables as a page shows them: each line of a cell with the exact amount for sorting and for other units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from taxtui.report.cells import NS, CellGroup, Content, PrintedLine, lines_of, number_of, text_of
from taxtui.report.formats import Section
from taxtui.report.numbers import NOTHING
from taxtui.terminal_text import clean, cut

MOST_COLUMNS: Final = 160
"""Columns of a line in a cell; the CSV has longer names whole."""


class CellLine(NamedTuple):
    """One line of a cell. A duration or its interval can be converted to another unit."""

    text: str
    ns: str = ""
    low_ns: str = ""
    high_ns: str = ""


class PageCell(NamedTuple):
    """One or two lines, and the number by which a column is sorted; "" sorts by the text."""

    lines: tuple[CellLine, ...]
    sort: str

    @property
    def html(self) -> Markup:
        """Its lines, escaped: in Python, for a page may have very many and a template is slow at them."""
        return Markup("".join(map(_html, self.lines)))


class PageTable(NamedTuple):
    """A section for a template: a head, rows whose first cell names them, notes."""

    title: str
    head: list[list[str]]
    rows: list[list[PageCell]]
    notes: list[str]


def table_of(section: Section) -> PageTable:
    """A section with its texts clean."""
    columns = list(zip(*section.rows, strict=True)) or [()] * len(section.head)
    head: list[list[str]] = []
    cells: list[list[PageCell]] = []
    for place, (title, column) in enumerate(zip(section.head, columns, strict=True)):
        lines = [clean(line) for line in title.split("\n") if line]
        if place and section.amounts and any(isinstance(cell, CellGroup) for cell in column):
            for number, name in enumerate(section.amounts):
                amounts = [_amount(cell, number) for cell in column]
                if any(amount != NOTHING for amount in amounts):
                    head.append([*lines, name])
                    cells.append(list(map(cell_of, amounts)))
        else:
            head.append(lines)
            cells.append([cell_of(cell) if place else named(text_of(cell)) for cell in column])
    rows = [list(row) for row in zip(*cells, strict=True)]
    return PageTable(clean(section.title), head, rows, [clean(note) for note in section.notes])


def _amount(content: Content, number: int) -> Content:
    """Return one amount of a group; a dash where the group has fewer."""
    if not isinstance(content, CellGroup):
        return NOTHING
    return content.cells[number] if number < len(content.cells) and any(content.cells[number]) else NOTHING


def tables_of(sections: Sequence[Section]) -> list[PageTable]:
    """All that have rows."""
    return [table_of(section) for section in sections if section.rows]


def named(text: str) -> PageCell:
    """The cell that says what a row is: sorted by its text."""
    return PageCell(tuple(CellLine(shown(line)) for line in text.split("\n") if line), "")


def cell_of(content: Content) -> PageCell:
    """A cell as the command line prints it, with its exact amounts: ``253 ms`` above ``219…291``."""
    number = number_of(content)
    lines = tuple(_line(line) for line in lines_of(content) if line.text.strip())
    return PageCell(lines, "" if number is None else f"{number:.12g}")


def _line(line: PrintedLine) -> CellLine:
    amount = line.amount
    if amount is None or amount.unit != NS or amount.value is None:
        return CellLine(shown(line.text))
    if amount.low is None or amount.high is None:
        return CellLine(line.text, ns=f"{amount.value:.9g}")
    return CellLine(line.text, low_ns=f"{amount.low:.9g}", high_ns=f"{amount.high:.9g}")


def shown(text: str) -> str:
    """A text from a recording, clean, and no longer than a table can hold."""
    return cut(clean(text).strip(), MOST_COLUMNS)


def _html(line: CellLine) -> str:
    own = f' data-ns="{line.ns}"' if line.ns else ""
    own += f' data-low="{line.low_ns}" data-high="{line.high_ns}"' if line.low_ns else ""
    return f'<span class="line"{own}>{escape(line.text)}</span>'
