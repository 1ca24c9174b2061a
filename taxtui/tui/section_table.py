"""Sections of a report as a list with a cursor on the rows; the ranking is a section too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.style import Style
from rich.text import Text

from costmodel import Answer, WorkLine
from taxtui.report.answer.sections import main, modes
from taxtui.report.cells import RowName
from taxtui.report.formats import Section
from taxtui.report.formats.plain_tables import WIDTH, laid_out
from taxtui.report.measured.rows import PROVENANCES
from taxtui.terminal_text import clean
from taxtui.tui.colours import substrate_style
from taxtui.tui.lists import MUTED, CursorList

CURSOR: Final = 2
"""Columns of the cursor."""


class SectionLine(NamedTuple):
    """A line of a section."""

    text: str
    section: int  # number of the section
    row: int | None = None  # number of the row; None: a head, a rule or a note
    first: bool = False  # the first line of the row


class AnswerTable(CursorList[SectionLine]):
    """A ranking, or any sections; the head of the visible section stays at the top.

    The cursor stays on the same workload when the ranking changes.
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.answer: Answer | None = None
        self.sections: Sequence[Section] = ()
        self._heads: list[list[Text]] = []

    def present(self, sections: Sequence[Section], answer: Answer | None = None) -> None:
        """Show these sections from the beginning; ``answer``: the ranking in the first section."""
        self.sections, self.answer = sections, answer
        self.cursor = 0
        self._lay_out()
        self.scroll_to(y=0, animate=False, immediate=True)
        self.post_message(self.Moved())

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        width = (self.scrollable_content_region.width or WIDTH) - CURSOR
        lines: list[SectionLine] = []
        self._heads = []
        for number, section in enumerate(self.sections):
            laid = laid_out(section, width)
            rule = next((place for place, (text, _) in enumerate(laid) if text.startswith("─")), -1)
            head = [text for text, _ in laid[: max(0, rule)] if text]
            self._heads.append([Text(" " * CURSOR + text, Style(bold=True)) for text in head])
            if number:
                lines += [SectionLine("", number), *(SectionLine(text, number) for text, _ in laid[: rule + 1])]
            previous = None
            for text, row in laid[rule + 1 :]:
                lines.append(SectionLine(text, number, row, row is not None and row != previous))
                previous = row
        self.show(lines, self._head(lines))

    def _head(self, lines: Sequence[SectionLine]) -> Sequence[Text]:
        """Return the head of the visible section, with as many lines as the tallest head."""
        if not lines:
            return ()
        head = self._heads[lines[min(self.scroll_offset.y, len(lines) - 1)].section]
        return [*head, *[Text()] * (max(map(len, self._heads)) - len(head))]

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.heading = self._head(self.items)
        self.refresh()

    @property
    def row(self) -> tuple[Section, int] | None:
        """The section and the number of the row under the cursor."""
        line = self.chosen
        return None if line is None or line.row is None else (self.sections[line.section], line.row)

    def can_choose(self, number: int) -> bool:
        item = self.items[number]
        return item.first and (self.answer is None or item.section == 0)

    def draw(self, item: SectionLine, number: int, width: int) -> Text:
        """Return a line; the name of a row has the colour of the substrate."""
        line = Text(item.text)
        if item.row is None:
            line.stylize(MUTED)
            return Text.assemble(" " * CURSOR, line)
        name = self.sections[item.section].rows[item.row][0]
        if item.first and isinstance(name, RowName):
            words = name.label.split()
            substrate = next((word for word in words if word not in PROVENANCES.values()), name.label)
            line.stylize(substrate_style(substrate), 0, len(name.label))
        return self.marked(line, number, width)

    def rank(self, answer: Answer, *, notes: bool) -> None:
        """Show the workloads; ``notes``: with the notes of ``taxtui report``."""
        before = self.workload
        self.present(answer_sections(answer, notes=notes), answer)
        for number, item in enumerate(self.items):
            if before and self.can_choose(number) and answer.lines[item.row or 0].work == before.work:
                self.cursor = number
                self.reveal()

    @property
    def workload(self) -> WorkLine | None:
        """The workload under the cursor."""
        line = self.chosen
        if self.answer is None or line is None or line.row is None:
            return None
        return self.answer.lines[line.row]


def answer_sections(answer: Answer, *, notes: bool) -> list[Section]:
    """Return the ranking as ``taxtui report`` prints it; without ``notes`` the table alone."""
    table = main(answer, "")._replace(title="")
    if notes:
        return [table, *modes(answer)]
    names = [clean(line.name) for line in answer.lines]
    rows = [[name, *row[1:]] for name, row in zip(names, table.rows, strict=True)]
    return [table._replace(rows=rows, notes=[])]
