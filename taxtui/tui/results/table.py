"""Tables of measured rows; wide screens also draw intervals of latencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.text import Text
from textual.message import Message

from taxtui.report.cells import text_of
from taxtui.report.formats.plain_tables import WIDTH, laid_out
from taxtui.report.measured.rows import PROVENANCES, MeasuredRow
from taxtui.terminal_text import clean
from taxtui.terminal_text import width as width_of
from taxtui.tui import units
from taxtui.tui.colours import substrate_style
from taxtui.tui.lists import MUTED, CursorList
from taxtui.tui.results.model import Part

BARS_FROM: Final = 24  # columns
TICK_SPACING: Final = 9
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
        self.parts: Sequence[Part] = ()
        self._heads: list[list[str]] = []
        self._limits: list[tuple[float, float] | None] = []

    def present(self, parts: Sequence[Part]) -> None:
        """Show these, from their beginning."""
        self.parts = parts
        self._lay_out()
        self.cursor = 0
        self.scroll_to(y=0, animate=False, immediate=True)
        self.post_message(self.Scrolled())

    def on_resize(self) -> None:
        if self.parts:
            self._lay_out()
            self.post_message(self.Scrolled())

    def _lay_out(self) -> None:
        lines: list[ResultLine] = []
        self._heads = []
        self._limits = [_limits(part) for part in self.parts]
        for number, part in enumerate(self.parts):
            laid = laid_out(part.section, WIDTH - 3)  # beside the cursor and the scrollbar
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
        """Return the title and the column heads of the visible section, with the axis of its intervals."""
        if not self.items:
            return []
        part = self.part
        head = [Text(text) for text in self._heads[part]]
        limits, room = self._limits[part], self.bars
        if limits and room and len(head) > 1:
            last = head[-1]
            last.pad_right(max(0, WIDTH - 1 - last.cell_len))
            last.append(_axis(limits, room), MUTED)
        return [head[0].copy(), *head[1:]] if head else []

    @property
    def bars(self) -> int:
        """Columns for bars; 0 where there is no room."""
        room = self.scrollable_content_region.width - WIDTH - 2
        return room if room >= BARS_FROM else 0

    @property
    def row(self) -> tuple[Part, int] | None:
        """The part and the number of the row under the cursor."""
        line = self.chosen
        return None if line is None or line.row is None else (self.parts[line.part], line.row)

    def can_choose(self, number: int) -> bool:
        return self.items[number].first

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The head may be another one."""
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Scrolled())

    def draw(self, item: ResultLine, number: int, width: int) -> Text:
        """Draw a line of text; a row's first line has its substrate's colour and its interval."""
        line = Text(item.text)
        part = self.parts[item.part]
        if item.row is None:
            line.stylize(MUTED)
            return Text.assemble("  ", line)
        if item.first:
            label = text_of(part.section.rows[item.row][0]).partition("\n")[0]
            name = next((word for word in label.split() if word not in PROVENANCES.values()), label)
            style = substrate_style(name, dark=self.app.current_theme.dark)
            line.stylize(style, 0, len(label))
            limits, room = self._limits[item.part], self.bars
            if limits and room and item.row < len(part.rows):
                line.pad_right(max(0, WIDTH - 2 - width_of(item.text)))
                line.append(f" {_bar(part.rows[item.row], part.name, limits, room)}", style)
        return self.marked(line, number, width)


def _limits(part: Part) -> tuple[float, float] | None:
    """The least and the greatest duration in ns that the bars of a section show."""
    ends = [
        value
        for row in part.rows
        if (summary := row.summary(part.name))
        for bound in (summary.p50, summary.p95)
        for value in bound[:3]
        if value
    ]
    return (min(ends) * 0.9, max(ends) * 1.1) if ends else None


def _bar(row: MeasuredRow, name: str, limits: tuple[float, float], room: int) -> str:
    """Return ``├─●─┤   ╷``: median, interval, and the 95th percentile if known."""
    summary = row.summary(name)
    if summary is None or not summary.p50.value:
        return ""
    line = [" "] * room

    def place(value: int) -> int:
        return min(max(units.column(value, *limits, room), 0), room - 1)

    middle = place(summary.p50.value)
    low, high = (place(summary.p50.value if end is None else end) for end in (summary.p50.low, summary.p50.high))
    line[low : high + 1] = "─" * (high + 1 - low)
    line[low], line[high] = "├", "┤"
    if summary.p95.value and (tail := place(summary.p95.value)) > high:
        line[tail] = "╷"
    line[middle] = "●"
    return "".join(line)


def _axis(limits: tuple[float, float], room: int) -> str:
    """``╵400ms    ╵600ms    ╵1s``."""
    line = [" "] * room
    for value in units.ticks(*limits, room, TICK_SPACING):
        label = f"╵{units.tick(value)}"
        place = units.column(value, *limits, room)
        line[place : place + len(label)] = label
    return clean("".join(line))
