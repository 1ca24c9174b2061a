"""The cells of a run with the percentiles of one facet; the one under the cursor is the one the histogram shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from taxtui.cell_state import CellState
from taxtui.tui import units
from taxtui.tui.colours import glyph, substrate_style, themed
from taxtui.tui.widgets.line_list import MUTED, LineList

NUMBER_WIDTH = 6


class CellTable(LineList[CellState]):
    """One row per cell; up, down and the mouse choose one."""

    can_focus = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Cell above", show=False),
        Binding("down", "move(1)", "Cell below", show=False),
    ]

    class Chosen(Message):
        """Another cell is under the cursor."""

    def __init__(self, *, id: str | None = None) -> None:
        """Begin on the first cell."""
        super().__init__(id=id)
        self.cursor = 0
        self.facet = "cold_start"

    @property
    def chosen(self) -> CellState | None:
        """The cell under the cursor."""
        return self.items[min(self.cursor, len(self.items) - 1)] if self.items else None

    def present(self, cells: Sequence[CellState], facet: str) -> None:
        """Show these cells' percentiles of ``facet``."""
        self.facet = facet
        self._names = {cell.id: workload(cell, cells) for cell in cells}
        self._label_width = min(max((len(cell.label) for cell in cells), default=0), self.size.width // 3)
        self._label_width = max(self._label_width, len("substrate"))
        self._name_width = max(map(len, self._names.values()), default=4)
        self.show(cells, self._heading())

    @property
    def wide(self) -> bool:
        """There is room for the counts beside the percentiles."""
        return self.size.width >= self._label_width + self._name_width + 3 * (NUMBER_WIDTH + 1) + 4 + 14

    def _heading(self) -> Text:
        label = "substrate"[: self._label_width].ljust(self._label_width)
        counts = f"{'n':>7}{'fail':>6} " if self.wide else " "
        quantiles = " ".join(f"{'≈' + name:>{NUMBER_WIDTH}}" for name in units.QUANTILES)
        return Text(f"    {label} {'cell':<{self._name_width}}{counts}{quantiles}", MUTED)

    def draw(self, item: CellState, number: int, width: int) -> Text:
        """``● docker:runc T0×10   281   0  612ms  803ms  n≥368``."""
        histogram = item.facets[self.facet]
        dark = self.app.current_theme.dark
        label = item.label[: self._label_width].ljust(self._label_width)
        chosen = number == min(self.cursor, len(self.items) - 1)
        line = Text.assemble(
            "▸ " if chosen else "  ",
            (f"{glyph(item.label)} {label} ", substrate_style(item.label, dark=dark)),
            f"{self._names[item.id]:<{self._name_width}}",
        )
        if self.wide:
            line.append(f"{histogram.n:>7}")
            line.append(f"{item.failed:>6}", themed(self.app.theme_variables, "text-error") if item.failed else MUTED)
        line.append(" ")
        for place, name in enumerate(units.QUANTILES):
            text = units.percentile(histogram, name)
            known = text.startswith("≈")  # which the heading says once for all
            line.append(" " * (place > 0) + f"{text.removeprefix('≈'):>{NUMBER_WIDTH}}", None if known else MUTED)
        if chosen:
            line.pad_right(max(0, width - line.cell_len))
            line.stylize(Style(bgcolor=themed(self.app.theme_variables, "panel").color, bold=self.has_focus))
        return line

    def action_move(self, step: int) -> None:
        """Move the cursor and keep it in sight."""
        self._choose(self.cursor + step)

    def on_click(self, event: events.Click) -> None:
        """Choose the row under the mouse."""
        number = self.under(event)
        if number is not None:
            self._choose(number)

    def _choose(self, number: int) -> None:
        if not self.items:
            return
        self.cursor = min(max(number, 0), len(self.items) - 1)
        visible = self.size.height - (self.heading is not None)
        top = min(self.scroll_offset.y, self.cursor)
        self.scroll_to(y=max(top, self.cursor - visible + 1), animate=False, immediate=True)
        self.refresh()
        self.post_message(self.Chosen())


def workload(cell: CellState, among: Sequence[CellState]) -> str:
    """``T0×10``, with the mode and the concurrency only where the cells differ in them."""
    parts = [f"{cell.tier}×{cell.actions}"]
    if len({other.mode for other in among}) > 1:
        parts.append({"session": "sess"}.get(cell.mode, cell.mode))
    if len({other.concurrency for other in among}) > 1:
        parts.append(f"c{cell.concurrency}")
    return " ".join(parts)
