"""Stacked bars by cause on screens: letters as well as colours, for NO_COLOR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.style import Style
from rich.text import Text

from costmodel import Answer, WorkLine
from taxtui.report.bars import Bar, BarChart, bars_of, cells, measure_of
from taxtui.report.palette import LOOKS
from taxtui.report.words import CAUSES
from taxtui.terminal_text import clean, fit
from taxtui.terminal_text import width as width_of
from taxtui.tui.colours import cause_colour, glyph, substrate_style
from taxtui.tui.lists import LineList

UNKNOWN: Final = "the causes are unknown"


class StackedBars(LineList[Bar | Text]):
    """Bars on a common scale, and a legend."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._chart = BarChart("", ())

    def present(self, title: str, bars: Sequence[Bar], *, empty: str = "") -> None:
        """Show bars; ``empty`` is the text without any bar."""
        self.empty = empty
        self._chart = BarChart(title, bars)
        self._longest = max((sum(bar.parts.values()) for bar in bars), default=0.0)
        self._name_width = self.room_for(clean(bar.name) for bar in bars)
        self._text_width = max((width_of(_text(bar)) for bar in bars), default=0)
        self.entitle(Text(clean(title)))
        self.show([*bars, *self._legend()])

    def show_causes(self, answer: Answer | None, line: WorkLine | None) -> None:
        """Show a workload: the cost of the sandbox for a run in steps, else the time of one trajectory, by cause."""
        if answer is None or line is None:
            self.present("by cause", [])
        else:
            self.present(f"{measure_of(answer, line)} by cause · {line.name}", bars_of(answer, line), empty=UNKNOWN)

    def _legend(self) -> list[Text]:
        """Return ``S startup  D dispatch  # command time`` on as many lines as necessary."""
        lines: list[Text] = []
        for cause in self._chart.causes:
            colour = cause_colour(cause)
            name = Text.assemble((LOOKS[cause].letter, Style(color=colour, bold=True)), f" {CAUSES[cause]}")
            if lines and lines[-1].cell_len + 2 + name.cell_len <= self.size.width:
                lines[-1] = Text.assemble(lines[-1], "  ", name)
            else:
                lines.append(name)
        return lines

    def on_resize(self) -> None:
        self.show([*self._chart.bars, *self._legend()])

    def draw(self, item: Bar | Text, number: int, width: int) -> Text:
        """Return ``● docker:runc SSDDDDDDDDD###  855``, or a line of the legend."""
        if isinstance(item, Text):
            return item.copy()
        line = Text(f"{glyph(item.label)} {fit(clean(item.name), self._name_width)} ")
        line.stylize(substrate_style(item.label))
        room = max(1, width - line.cell_len - self._text_width - 1)
        for cause, columns in cells(item.parts, room / (self._longest or 1.0)).items():
            style = Style(color="#000000", bgcolor=cause_colour(cause))
            line.append(LOOKS[cause].letter * columns, style)
        return line.append(f" {_text(item)}")


def _text(bar: Bar) -> str:
    return " · ".join(part for part in (bar.text, bar.note) if part)
