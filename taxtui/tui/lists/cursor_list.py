"""A list with a cursor: keys and the mouse move it over the items that can be chosen."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from taxtui.tui.colours import themed
from taxtui.tui.lists.line_list import Item, LineList


class CursorList(LineList[Item]):
    """A line under the cursor is marked with ``▸`` by ``marked``; headings and the like are stepped over."""

    can_focus = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Above", show=False),
        Binding("down", "move(1)", "Below", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "edge(-1)", "First", show=False),
        Binding("end", "edge(1)", "Last", show=False),
    ]

    class Moved(Message):
        """The cursor stands on another item."""

    def __init__(self, *, id: str | None = None) -> None:
        """Begin on the first item that can be chosen."""
        super().__init__(id=id)
        self.cursor = 0

    def can_choose(self, number: int) -> bool:
        """Whether the cursor may stand there."""
        return True

    @property
    def chosen(self) -> Item | None:
        """The item under the cursor."""
        number = self.place
        return None if number is None else self.items[number]

    @property
    def place(self) -> int | None:
        """Where the cursor stands: as near to where it was put as the items allow."""
        choosable = [number for number in range(len(self.items)) if self.can_choose(number)]
        return min(choosable, key=lambda number: abs(number - self.cursor), default=None)

    def marked(self, line: Text, number: int, width: int) -> Text:
        """The line with the cursor's mark and background where it stands there."""
        if number != self.place:
            return Text.assemble("  ", line)
        line = Text.assemble("▸ ", line)
        line.pad_right(max(0, width - line.cell_len))
        line.stylize(Style(bgcolor=themed(self.app.theme_variables, "panel").color, bold=self.has_focus))
        return line

    def action_move(self, step: int) -> None:
        """To the next item in that direction."""
        self._go(self.cursor if self.place is None else self.place, step, 1)

    def action_page(self, step: int) -> None:
        """As far as what is in sight."""
        self._go(self.cursor if self.place is None else self.place, step, max(1, self.size.height - 2))

    def action_edge(self, step: int) -> None:
        """To the first or the last item."""
        self._go(self.cursor, step, len(self.items))

    def on_click(self, event: events.Click) -> None:
        """Choose the item under the mouse."""
        number = self.under(event)
        if number is not None and self.can_choose(number):
            self.put(number)

    def _go(self, start: int, step: int, distance: int) -> None:
        """As far as ``distance`` lines, but at least to the next item that can be chosen, where there is one."""
        ahead = [n for n in range(len(self.items)) if self.can_choose(n) and (n - start) * step > 0]
        if ahead:
            within = [n for n in ahead if abs(n - start) <= distance]
            far = max if step > 0 else min
            near = min if step > 0 else max
            self.put(far(within) if within else near(ahead))

    def put(self, number: int) -> None:
        """Set the cursor and keep it in sight."""
        self.cursor = number
        visible = max(1, self.size.height - (self.heading is not None))
        top = min(self.scroll_offset.y, 0 if number <= 1 else number)
        self.scroll_to(y=max(top, number - visible + 1), animate=False, immediate=True)
        self.refresh()
        self.post_message(self.Moved())
