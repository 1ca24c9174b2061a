"""How far each substrate has come, and one line on the whole run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from taxtui.live.cell_state import CellState
from taxtui.live.state import RunState
from taxtui.terminal_text import fit
from taxtui.tui import units
from taxtui.tui.colours import colour, glyph, substrate_style, themed
from taxtui.tui.lists.line_list import MUTED, LineList

PARTIAL = " ▏▎▍▌▋▊▉"


class Group(NamedTuple):
    """The cells of one substrate and what is left to do of them."""

    label: str
    cells: Sequence[CellState]
    remaining_ns: float | None
    over: bool


class ProgressBars(LineList[Group]):
    """One line per substrate."""

    def present(self, state: RunState, *, over: bool) -> None:
        """Show how far ``state`` has come; ``over`` when nothing more will happen."""
        groups = state.by_substrate()
        self._label_width = self.room_for(groups)
        self.show([Group(label, cells, state.remaining_ns(cells), over) for label, cells in groups.items()])

    def draw(self, item: Group, number: int, width: int) -> Text:
        """``● docker ██████▌░░░░ 281/400  left 1m40s  ok 281 fail 0``."""
        done = sum(cell.finished for cell in item.cells)
        planned = None if any(c.planned is None for c in item.cells) else sum(c.planned or 0 for c in item.cells)
        ok, failed = sum(cell.ok for cell in item.cells), sum(cell.failed for cell in item.cells)
        left = "" if item.over else f"left {units.clock(item.remaining_ns, short=True)}" if item.remaining_ns else ""
        tail = Text.assemble(
            f" {done:>5}/{planned if planned is not None else '?':<5}",
            (f" {left:<12}", "" if left else MUTED),
            f"ok {ok:<5}",
            (f" fail {failed:<4}", themed(self.app.theme_variables, "text-error") if failed else MUTED),
        )
        dark = self.app.current_theme.dark
        line = Text()
        line.append(
            f"{glyph(item.label)} {fit(item.label, self._label_width)} ", substrate_style(item.label, dark=dark)
        )
        room = max(4, width - line.cell_len - tail.cell_len)
        eighths = round(min(1.0, done / planned) * room * 8) if planned else 0
        full, rest = divmod(eighths, 8)
        bar = "█" * full + PARTIAL[rest] * bool(rest)
        line.append(bar, colour(item.label, dark=dark))
        line.append("░" * (room - len(bar)), MUTED)
        return line.append_text(tail)
