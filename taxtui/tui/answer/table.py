"""The answer as a list with a cursor: a line per work, a column per place, each place in its own colour."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from rich.style import Style
from rich.text import Text

from costmodel.analysis.ranking import Answer, Place, WorkLine
from costmodel.recording.reader import CellIdentity
from taxtui.terminal_text import clean, fit
from taxtui.terminal_text import width as width_of
from taxtui.tui.answer.arranging import Arrangement
from taxtui.tui.answer.cells import BEST, GAP, REFERENCE, AnswerCell, AnswerLayout, AnswerLine, cell_of, laid_out
from taxtui.tui.colours import glyph, substrate_style
from taxtui.tui.lists.cursor_list import CursorList
from taxtui.tui.lists.line_list import MUTED

EMPTY: Final = AnswerLayout((), False, 0, 0, ())


class AnswerTable(CursorList[AnswerLine]):
    """Values with intervals, ratios, ties; what is being computed anew is dim."""

    def __init__(self, *, id: str | None = None) -> None:
        """Begin without an answer."""
        super().__init__(id=id)
        self.found: Answer | None = None
        self.arrangement = Arrangement()
        self._stale: Collection[CellIdentity] = ()
        self._layout = EMPTY

    def present(self, found: Answer | None, arrangement: Arrangement, *, stale: Collection[CellIdentity] = ()) -> None:
        """Show this, the cursor on the work where it was; the rows of ``stale`` are of an earlier question."""
        before = self.line
        self.found, self.arrangement, self._stale = found, arrangement, stale
        self._lay_out()
        if before is not None:
            self.stand_on(before)

    def stand_on(self, line: WorkLine) -> None:
        """Put the cursor on a work, wherever it is now."""
        like = [n for n, one in enumerate(self.items) if one.line and one.line.work == line.work]
        self.cursor = like[0] if like else 0

    def on_resize(self) -> None:
        """Use the new width."""
        self._lay_out()

    @property
    def line(self) -> WorkLine | None:
        """The work under the cursor."""
        return self.chosen.line if self.chosen else None

    def can_choose(self, number: int) -> bool:
        """Not the headings of places."""
        return self.items[number].line is not None

    def _lay_out(self) -> None:
        room = self.scrollable_content_region.width - 2
        if self.found is None or room <= 0:
            self._layout = EMPTY
            self.show(())
            return
        self._layout = laid_out(self.found, self.arrangement, room)
        heading = None if self._layout.by_place else self._heading(self.found)
        self.show(self._layout.lines, heading)

    def _heading(self, found: Answer) -> Text:
        line = Text(f"  {fit('work', self._layout.name_width)}", MUTED)
        for place, width in zip(found.places, self._columns(found), strict=True):
            name = f"{glyph(place.label)} {clean(place.name)}"
            line.append(" " * (GAP + max(0, width - width_of(name))))
            line.append(name, substrate_style(place.label, dark=self.app.current_theme.dark))
        return line

    def _columns(self, found: Answer) -> list[int]:
        """How wide each place's column is: its cells, or its name."""
        names = [2 + width_of(clean(place.name)) for place in found.places]
        cells = [sum(width + 1 for width in widths if width) - 1 for widths in self._layout.widths]
        return [max(name, cell) for name, cell in zip(names, cells, strict=True)]

    def draw(self, item: AnswerLine, number: int, width: int) -> Text:
        """``T1 50 exec   159 ±26  best    855 ±121 5.38x ±0.2``."""
        assert self.found is not None
        if item.line is None:
            assert item.place is not None
            name = f"{glyph(item.place.label)} {clean(item.place.name)}"
            how = "" if item.place.provenance == "measured" else f" {clean(item.place.provenance)}"
            style = substrate_style(item.place.label, dark=self.app.current_theme.dark)
            return Text.assemble((name, style), (how.replace("_", "-"), MUTED))
        line = Text(fit(clean(item.line.name), self._layout.name_width))
        if item.place is not None:
            line.append(" " * GAP)
            line.append_text(self._cell(item.line, item.place, self._layout.widths[0]))
            return self.marked(line, number, width)
        for place, widths, room in zip(self.found.places, self._layout.widths, self._columns(self.found), strict=True):
            cell = self._cell(item.line, place, widths)
            line.append(" " * (GAP + max(0, room - cell.cell_len)))
            line.append_text(cell)
        return self.marked(line, number, width)

    def _cell(self, line: WorkLine, place: Place, widths: Sequence[int]) -> Text:
        assert self.found is not None
        entry = line.at(place)
        cell = cell_of(entry, self.found, line)
        stale = entry is not None and entry.row.identity in self._stale
        told = Text()
        for part, width in zip(cell.parts(self._layout.form), widths, strict=True):
            if width:
                told.append(" " * (bool(told) + width - width_of(part)))
                told.append(part, self._style(cell, part, stale=stale))
        return told

    def _style(self, cell: AnswerCell, part: str, *, stale: bool) -> Style | str:
        if stale or part in (cell.sure, cell.ratio_sure):
            return MUTED
        if part == cell.ratio and part in (BEST, REFERENCE):
            return MUTED
        return "bold" if part == cell.ratio and cell.verdict == "" else ""
