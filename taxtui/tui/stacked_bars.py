"""Stacked bars on screens: letters as well as colours, for NO_COLOR."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rich.style import Style
from rich.text import Text

from costmodel import HELD_PER_SUCCESS, Answer, WorkLine
from taxtui.report.bars import Bar, bars_of
from taxtui.report.palette import LOOKS
from taxtui.report.words import CAUSES
from taxtui.terminal_text import clean, fit
from taxtui.terminal_text import width as width_of
from taxtui.tui.colours import cause_colour, glyph, substrate_style
from taxtui.tui.lists import LineList


def shares(parts: Mapping[str, float], scale: float, room: int) -> dict[str, int]:
    """Return the columns of each part: in proportion, at least 1; the longest part is shortened for small ones."""
    columns = {part: max(1, round(size * scale)) for part, size in parts.items()}
    while sum(columns.values()) > max(room, len(columns)):
        columns[max(columns, key=columns.__getitem__)] -= 1
    return columns


def legend(causes: Iterable[str], *, dark: bool) -> list[Text]:
    """Return ``S startup``, ``D dispatch``, ``# command time``: the causes that occur, in the order of drawing."""
    present = set(causes)
    return [
        Text.assemble((LOOKS[cause].letter, Style(color=cause_colour(cause, dark=dark), bold=True)), f" {name}")
        for cause, name in CAUSES.items()
        if cause in present
    ]


class StackedBars(LineList[Bar | Text]):
    """Bars on one scale, for comparison by eye; the legend stands below them."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._names: Sequence[Text] = ()

    def present(self, title: str, bars: Sequence[Bar], *, empty: str = "") -> None:
        """Show these; ``empty`` says why there are none."""
        self.empty = empty
        self._longest = max((sum(bar.parts.values()) for bar in bars), default=0.0)
        self._name_width = self.room_for(clean(bar.name) for bar in bars)
        self._text_width = max((width_of(_text(bar)) for bar in bars), default=0)
        names = self._names = legend((cause for bar in bars for cause in bar.parts), dark=self.app.current_theme.dark)
        self.entitle(Text(clean(title)))
        self.show([*bars, *self._flowing(names)])

    def _flowing(self, names: Sequence[Text]) -> list[Text]:
        """Return the legend in as many lines as it takes."""
        lines: list[Text] = []
        for name in names:
            if lines and lines[-1].cell_len + 2 + name.cell_len <= self.size.width:
                lines[-1] = Text.assemble(lines[-1], "  ", name)
            else:
                lines.append(name)
        return lines

    def on_resize(self) -> None:
        super().on_resize()
        self.show([*(item for item in self.items if not isinstance(item, Text)), *self._flowing(self._names)])

    def draw(self, item: Bar | Text, number: int, width: int) -> Text:
        """Return ``● docker:runc SSDDDDDDDDD###  855``, or a line of the legend."""
        if isinstance(item, Text):
            return item.copy()
        dark = self.app.current_theme.dark
        line = Text(f"{glyph(item.label)} {fit(clean(item.name), self._name_width)} ")
        line.stylize(substrate_style(item.label, dark=dark))
        room = max(1, width - line.cell_len - self._text_width - 1)
        parts = {cause: size for cause, size in item.parts.items() if size > 0}
        for cause, columns in shares(parts, room / (self._longest or 1.0), room).items():
            style = Style(color="#000000", bgcolor=cause_colour(cause, dark=dark))
            line.append(LOOKS[cause].letter * columns, style)
        return line.append(f" {_text(item)}")


def _text(bar: Bar) -> str:
    return " · ".join(part for part in (bar.text, bar.note) if part)


UNKNOWN: Final = "the causes are unknown"


def causes_title(answer: Answer, line: WorkLine | None) -> str:
    """Return the heading of bars by cause."""
    unit = "time of one trajectory" if answer.measure == HELD_PER_SUCCESS else "worker-hours"
    return f"{unit} by cause{f' · {clean(line.name)}' if line else ''}"


def cause_bars(answer: Answer, line: WorkLine | None) -> Sequence[Bar]:
    """Return a bar for each row of the workload whose causes are known."""
    return bars_of(answer, line) if line else ()
