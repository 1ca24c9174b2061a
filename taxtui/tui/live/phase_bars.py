"""Where a trial's time goes: one bar per substrate, its letters the phases, its length the mean duration."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from rich.text import Text

from taxtui.live.cell_state import PARTS, CellState
from taxtui.report.palette import LOOKS
from taxtui.terminal_text import fit
from taxtui.tui import units
from taxtui.tui.colours import cause_colour, glyph, substrate_style
from taxtui.tui.lists.line_list import LineList
from taxtui.tui.stacked_bars import legend as legend_of
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
            line.append(LOOKS[part].letter * letters, Style(color="#000000", bgcolor=cause_colour(part, dark=dark)))
        line.append(f" {units.duration(total)}")
        return line


def legend(cells: Sequence[CellState], *, dark: bool) -> Text:
    """``C create R ready # command time …`` of the parts that occur."""
    return legend_of((part for part in PARTS if any(cell.mean_ns(part) for cell in cells)), dark=dark)
