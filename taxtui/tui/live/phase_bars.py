"""Where a trial's time goes: one bar per substrate, its letters the phases, its length the mean duration."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from rich.text import Text

from taxtui.live.cell_state import CellState
from taxtui.terminal_text import fit
from taxtui.tui import units
from taxtui.tui.colours import PARTS, glyph, shade, substrate_style
from taxtui.tui.lists.line_list import LineList
from taxtui.tui.stacked_bars import shares


class PhaseBars(LineList[CellState]):
    """Bars on one scale, so that substrates can be compared by eye."""

    def present(self, cells: Sequence[CellState]) -> None:
        """Show the cells that have a successful trial."""
        measured = [cell for cell in cells if cell.ok]
        self._longest_ns = max((sum(cell.mean_parts_ns().values()) for cell in measured), default=0.0)
        self._label_width = self.room_for(cell.label for cell in measured)
        self.show(measured)

    def draw(self, item: CellState, number: int, width: int) -> Text:
        """``● docker:runc CCCCRRAAADDDDDX 1.90s``; each phase that took any time has at least one letter."""
        parts = item.mean_parts_ns()
        total = sum(parts.values())
        dark = self.app.current_theme.dark
        line = Text()
        line.append(
            f"{glyph(item.label)} {fit(item.label, self._label_width)} ", substrate_style(item.label, dark=dark)
        )
        room = width - line.cell_len - 9
        scale = room / max(self._longest_ns, 1)
        for part, letters in shares(parts, scale, room).items():
            letter, _, colour = PARTS[part]
            line.append(letter * letters, Style(color="#000000", bgcolor=shade(colour, dark=dark)))
        line.append(f" {units.duration(total)}")
        return line


def legend(cells: Sequence[CellState], *, dark: bool) -> Text:
    """``C create R ready W work …`` of the parts that occur."""
    line = Text()
    for part, (letter, name, colour) in PARTS.items():
        if any(cell.mean_ns(part) for cell in cells):
            line.append(f" {letter}", Style(color=shade(colour, dark=dark), bold=True))
            line.append(f" {name}")
    return line
