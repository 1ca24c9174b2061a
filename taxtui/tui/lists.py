"""Scrollable lists, with and without a cursor; only the visible lines are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final, Generic, TypeVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from taxtui.terminal_text import clean, widest
from taxtui.tui.colours import themed

Item = TypeVar("Item")
MUTED: Final = Style(dim=True)


class LineList(ScrollView, Generic[Item]):
    """One line per item below optional heading lines; a subclass draws the items."""

    follows: ClassVar[bool] = False  # scroll new lines at the end into view, unless a person has scrolled up

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.items: Sequence[Item] = ()
        self.heading: Sequence[Text] = ()  # lines above the scrolled items
        self.empty = ""  # text of a list without items
        self._at_end = True
        self._title = Text()

    def draw(self, item: Item, number: int, width: int) -> Text:
        """Return the line of an item; the list cuts the line at ``width``."""
        raise NotImplementedError

    def show(self, items: Sequence[Item], heading: Sequence[Text] = ()) -> None:
        self.items, self.heading = items, heading
        self.virtual_size = Size(self.scrollable_content_region.width, self.lines)
        self._stay_at_end()
        self.refresh()

    def entitle(self, title: Text) -> None:
        if title != self._title:
            self._title = self.border_title = title

    def room_for(self, labels: Iterable[str]) -> int:
        """Return the columns of the widest label, at most a third of the list."""
        return min(widest(labels), self.size.width // 3)

    def on_resize(self) -> None:
        self._stay_at_end()

    def _stay_at_end(self) -> None:
        if self.follows and self._at_end:
            self.scroll_to(y=self.max_scroll_y, animate=False, immediate=True, force=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Notice when a person leaves the end or comes back."""
        super().watch_scroll_y(old_value, new_value)
        self._at_end = new_value >= self.max_scroll_y

    @property
    def lines(self) -> int:
        return len(self.items) + len(self.heading)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return max(1, self.lines)

    def number_at(self, y: int) -> int | None:
        """Return the number of the item on a line of the list; None for the heading and below the last item."""
        number = y - len(self.heading) + self.scroll_offset.y
        return number if y >= len(self.heading) and 0 <= number < len(self.items) else None

    def under(self, event: events.Click) -> int | None:
        """Return the number of the item under the mouse; None on a border."""
        at = event.get_content_offset(self)
        return None if at is None else self.number_at(at.y)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        number = self.number_at(y)
        if number is not None:
            line = self.draw(self.items[number], number, width)
        elif y < len(self.heading):
            line = self.heading[y].copy()
        elif y == len(self.heading) and not self.items:
            line = Text(self.empty, MUTED)
        else:
            line = Text()
        line.plain = clean(line.plain)  # same number of characters: the styles stay in place
        line.truncate(width, overflow="ellipsis", pad=True)
        return Strip(Segment.apply_style(line.render(self.app.console), self.rich_style), width)


class CursorList(LineList[Item]):
    """A list with a cursor; the cursor skips items without ``can_choose``."""

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
        """The cursor is on another item."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cursor = 0

    def can_choose(self, number: int) -> bool:
        return True

    @property
    def chosen(self) -> Item | None:
        number = self.place
        return None if number is None else self.items[number]

    @property
    def place(self) -> int | None:
        """The number of the selectable item nearest to the cursor."""
        choosable = [number for number in range(len(self.items)) if self.can_choose(number)]
        return min(choosable, key=lambda number: abs(number - self.cursor), default=None)

    def marked(self, line: Text, number: int, width: int) -> Text:
        """Return the line, with ``▸`` and a background if the cursor is on this line."""
        if number != self.place:
            return Text.assemble("  ", line)
        line = Text.assemble("▸ ", line)
        line.pad_right(max(0, width - line.cell_len))
        line.stylize(Style(bgcolor=themed(self.app.theme_variables, "panel").color, bold=self.has_focus))
        return line

    def action_move(self, step: int) -> None:
        self._go(self.cursor if self.place is None else self.place, step, 1)

    def action_page(self, step: int) -> None:
        self._go(self.cursor if self.place is None else self.place, step, max(1, self.size.height - 2))

    def action_edge(self, step: int) -> None:
        self._go(self.cursor, step, len(self.items))

    def on_click(self, event: events.Click) -> None:
        number = self.under(event)
        if number is not None and self.can_choose(number):
            self.put(number)

    def _go(self, start: int, step: int, distance: int) -> None:
        """Move by ``distance`` lines, at least to the next selectable item."""
        ahead = [n for n in range(len(self.items)) if self.can_choose(n) and (n - start) * step > 0]
        if ahead:
            within = [n for n in ahead if abs(n - start) <= distance]
            far = max if step > 0 else min
            near = min if step > 0 else max
            self.put(far(within) if within else near(ahead))

    def put(self, number: int) -> None:
        """Move the cursor to an item, and scroll the item into view."""
        self.cursor = number
        self.reveal()
        self.refresh()
        self.post_message(self.Moved())

    def reveal(self) -> None:
        """Scroll to the cursor, and to the notes below the last selectable item."""
        number, visible = self.cursor, max(1, self.size.height - len(self.heading))
        is_last = not any(map(self.can_choose, range(number + 1, len(self.items))))
        bottom = min(number + visible, len(self.items)) if is_last else number + 1
        top = min(self.scroll_offset.y, 0 if number <= 1 else number)
        self.scroll_to(y=max(top, bottom - visible), animate=False, immediate=True)
