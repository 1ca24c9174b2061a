"""Stacked bars in a terminal: letters as well as colours, so that they read the same under NO_COLOR."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rich.style import Style
from rich.text import Text

from taxtui.terminal_text import clean, fit
from taxtui.terminal_text import width as width_of
from taxtui.tui.colours import CAUSES, glyph, shade, substrate_style
from taxtui.tui.lists.line_list import LineList


class Bar(NamedTuple):
    """One bar: a place, what it consists of, and what stands behind it."""

    label: str  # of a substrate
    name: str
    parts: Mapping[str, float]  # by cause, in any unit that all bars share
    told: str


def shares(parts: Mapping[str, float], scale: float, room: int) -> dict[str, int]:
    """Cells for each part: in proportion, but none vanishes; what that adds is taken from the longest."""
    cells = {part: max(1, round(size * scale)) for part, size in parts.items()}
    while sum(cells.values()) > max(room, len(cells)):
        cells[max(cells, key=cells.__getitem__)] -= 1
    return cells


def legend(causes: Iterable[str], *, dark: bool) -> Text:
    """``S start-up D dispatch W work``: of the causes that occur, in the order of the table of causes."""
    line = Text()
    told = set(causes)
    for cause, (letter, name, colour) in CAUSES.items():
        if cause in told:
            line.append(f"{' ' * bool(line)}{letter}", Style(color=shade(colour, dark=dark), bold=True))
            line.append(f" {name}")
    return line


class StackedBars(LineList[Bar]):
    """Bars on one scale, so that places can be compared by eye; the border's title holds the legend."""

    def present(self, title: str, bars: Sequence[Bar], *, empty: str = "") -> None:
        """Show these; ``empty`` says why there are none."""
        self.empty = empty
        self._longest = max((sum(bar.parts.values()) for bar in bars), default=0.0)
        self._name_width = self.room_for(clean(bar.name) for bar in bars)
        self._told_width = max((width_of(bar.told) for bar in bars), default=0)
        told = legend((cause for bar in bars for cause in bar.parts), dark=self.app.current_theme.dark)
        self.entitle(Text.assemble(clean(title), " · " if told else "", told))
        self.show(bars)

    def draw(self, item: Bar, number: int, width: int) -> Text:
        """``● docker:runc SSDDDDDDDDDWWW  855``."""
        dark = self.app.current_theme.dark
        line = Text(f"{glyph(item.label)} {fit(clean(item.name), self._name_width)} ")
        line.stylize(substrate_style(item.label, dark=dark))
        room = max(1, width - line.cell_len - self._told_width - 1)
        parts = {cause: size for cause, size in item.parts.items() if size > 0}
        for cause, cells in shares(parts, room / (self._longest or 1.0), room).items():
            letter, _, colour = CAUSES[cause]
            line.append(letter * cells, Style(color="#000000", bgcolor=shade(colour, dark=dark)))
        return line.append(f" {item.told}")
