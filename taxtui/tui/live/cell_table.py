"""The cells of a run with the percentiles of one facet; the one under the cursor is the one the histogram shows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from taxtui.live.cell_state import CellState
from taxtui.terminal_text import fit
from taxtui.tui import units
from taxtui.tui.colours import glyph, substrate_style, themed
from taxtui.tui.lists.cursor_list import CursorList
from taxtui.tui.lists.line_list import MUTED

NUMBER_WIDTH = 6


class CellTable(CursorList[CellState]):
    """One row per cell; up, down and the mouse choose one."""

    def __init__(self, *, id: str | None = None) -> None:
        """Show cold starts, the cursor on the first cell."""
        super().__init__(id=id)
        self.facet = "cold_start"

    def present(self, cells: Sequence[CellState], facet: str) -> None:
        """Show these cells' percentiles of ``facet``."""
        self.facet = facet
        self._names = {cell.id: workload(cell, cells) for cell in cells}
        self._label_width = max(self.room_for(cell.label for cell in cells), len("substrate"))
        self._name_width = max(self.room_for(self._names.values()), len("cell"))
        self.show(cells, self._heading())

    @property
    def wide(self) -> bool:
        """There is room for the counts beside the percentiles."""
        return self.size.width >= self._label_width + self._name_width + 3 * (NUMBER_WIDTH + 1) + 4 + 14

    def _heading(self) -> Text:
        label = fit("substrate", self._label_width)
        counts = f"{'n':>7}{'fail':>6} " if self.wide else " "
        quantiles = " ".join(f"{'≈' + name:>{NUMBER_WIDTH}}" for name in units.QUANTILES)
        return Text(f"    {label} {'cell':<{self._name_width}}{counts}{quantiles}", MUTED)

    def draw(self, item: CellState, number: int, width: int) -> Text:
        """``● docker:runc T0×10   281   0  612ms  803ms  n≥368``."""
        histogram = item.facets[self.facet]
        dark = self.app.current_theme.dark
        label = fit(item.label, self._label_width)
        line = Text.assemble(
            (f"{glyph(item.label)} {label} ", substrate_style(item.label, dark=dark)),
            fit(self._names[item.id], self._name_width),
        )
        if self.wide:
            line.append(f"{histogram.n:>7}")
            line.append(f"{item.failed:>6}", themed(self.app.theme_variables, "text-error") if item.failed else MUTED)
        line.append(" ")
        for place, name in enumerate(units.QUANTILES):
            text = units.percentile(histogram, name)
            known = text.startswith("≈")  # which the heading says once for all
            line.append(" " * (place > 0) + f"{text.removeprefix('≈'):>{NUMBER_WIDTH}}", None if known else MUTED)
        return self.marked(line, number, width)


def workload(cell: CellState, among: Sequence[CellState]) -> str:
    """``T0×10``, with the mode and the concurrency only where the cells differ in them."""
    parts = [cell.workload]
    if len({other.mode for other in among}) > 1:
        parts.append({"session": "sess"}.get(cell.mode, cell.mode))
    if len({other.concurrency for other in among}) > 1:
        parts.append(f"c{cell.concurrency}")
    return " ".join(parts)
