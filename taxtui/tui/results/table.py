"""Tables of measured rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.text import Text
from textual.message import Message

from taxtui.report.cells import text_of
from taxtui.report.formats import Section
from taxtui.report.formats.plain_tables import WIDTH, laid_out
from taxtui.report.measured.rows import PROVENANCES
from taxtui.tui.colours import substrate_style
from taxtui.tui.lists import MUTED, CursorList

HEAD_LINES: Final = 3


class ResultLine(NamedTuple):
    """A line of a section and its row."""

    text: str
    part: int
    row: int | None
    first: bool  # of its row


class ResultTable(CursorList[ResultLine]):
    """A list of table lines; ``head`` is the heading of the visible section, which stays when lines scroll."""

    class Scrolled(Message):
        """Another section may be in sight."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.sections: Sequence[Section] = ()
        self._heads: list[list[str]] = []

    def present(self, sections: Sequence[Section]) -> None:
        self.sections = sections
        self._lay_out()
        self.cursor = 0
        self.scroll_to(y=0, animate=False, immediate=True)
        self.post_message(self.Scrolled())

    def on_resize(self) -> None:
        if self.sections:
            self._lay_out()
            self.post_message(self.Scrolled())

    def _lay_out(self) -> None:
        lines: list[ResultLine] = []
        self._heads = []
        for number, section in enumerate(self.sections):
            laid = laid_out(section, WIDTH - 3)  # beside the cursor and the scrollbar
            begins = next((place for place, (_, row) in enumerate(laid) if row is not None), len(laid))
            self._heads.append([text for text, _ in laid[:begins] if text][:-1])  # without the rule
            if number:
                lines += [
                    ResultLine("", number, None, False),
                    *(ResultLine(text, number, None, False) for text, _ in laid[:begins]),
                ]
            previous = None
            for text, row in laid[begins:]:
                lines.append(ResultLine(text, number, row, row is not None and row != previous))
                previous = row
        self.show(lines)

    @property
    def part(self) -> int:
        """The number of the section at the top of what is in sight."""
        return self.items[min(self.scroll_offset.y, len(self.items) - 1)].part if self.items else 0

    @property
    def head(self) -> list[Text]:
        """Return the title and the column heads of the visible section."""
        return [Text(text) for text in self._heads[self.part]] if self.items else []

    @property
    def row(self) -> tuple[Section, int] | None:
        """The section and the number of the row under the cursor."""
        line = self.chosen
        return None if line is None or line.row is None else (self.sections[line.part], line.row)

    def can_choose(self, number: int) -> bool:
        return self.items[number].first

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Scrolled())

    def draw(self, item: ResultLine, number: int, width: int) -> Text:
        """Draw a line of text; a row's first line has its substrate's colour."""
        line = Text(item.text)
        if item.row is None:
            line.stylize(MUTED)
            return Text.assemble("  ", line)
        if item.first:
            label = text_of(self.sections[item.part].rows[item.row][0]).partition("\n")[0]
            name = next((word for word in label.split() if word not in PROVENANCES.values()), label)
            line.stylize(substrate_style(name, dark=self.app.current_theme.dark), 0, len(label))
        return self.marked(line, number, width)
