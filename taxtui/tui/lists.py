"""Scrollable lists that draw only the lines in sight; one kind has a cursor."""

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
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from taxtui.terminal_text import clean, widest
from taxtui.tui.colours import themed

Item = TypeVar("Item")
MUTED: Final = Style(dim=True)


class LineList(ScrollView, Generic[Item]):
    """One line per item under an optional heading; a subclass says how an item is drawn."""

    # By default Textual lays out the whole screen when a list grows; show() does the necessary part.
    virtual_size: Reactive[Size] = Reactive(Size(0, 0), layout=False)
    follows: ClassVar[bool] = False  # scroll new lines at the end into view, unless a person has scrolled up

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.items: Sequence[Item] = ()
        self.heading: Text | None = None  # stays when the list scrolls
        self.empty = ""  # shown where there is no item
        self._at_end = True
        self._title = Text()

    def draw(self, item: Item, number: int, width: int) -> Text:
        """The line of an item; it is cut at ``width``."""
        raise NotImplementedError

    def show(self, items: Sequence[Item], heading: Text | None = None) -> None:
        before = self.lines
        self.items, self.heading = items, heading
        self.virtual_size = Size(self.scrollable_content_region.width, self.lines)
        self._stay_at_end()
        overflows = self.lines > self.container_size.height
        if overflows != self.show_vertical_scrollbar or (self.styles.auto_dimensions and before != self.lines):
            self.refresh(layout=True)
        else:
            if overflows:
                self.vertical_scrollbar.window_virtual_size = self.lines
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
        """Notice when a person leaves the end or comes back to it."""
        super().watch_scroll_y(old_value, new_value)
        self._at_end = new_value >= self.max_scroll_y

    def watch_show_vertical_scrollbar(self, visible: bool) -> None:
        """A scrollbar that appears does not know where the list was scrolled to before."""
        if visible:
            self.vertical_scrollbar.position = self.scroll_y

    @property
    def lines(self) -> int:
        return len(self.items) + (self.heading is not None)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return max(1, self.lines)

    def number_at(self, y: int) -> int | None:
        if self.heading is not None and y == 0:
            return None
        number = y + self.scroll_offset.y - (self.heading is not None)
        return number if 0 <= number < len(self.items) else None

    def under(self, event: events.Click) -> int | None:
        """The item under the mouse; a border is none."""
        at = event.get_content_offset(self)
        return None if at is None else self.number_at(at.y)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        number = self.number_at(y)
        if number is not None:
            line = self.draw(self.items[number], number, width)
        elif y == 0 and self.heading is not None:
            line = self.heading.copy()
        elif y == 0 and not self.items:
            line = Text(self.empty, MUTED)
        else:
            line = Text()
        line.plain = clean(line.plain)  # character for character, so what is styled stays so
        line.truncate(width, overflow="ellipsis", pad=True)
        return Strip(Segment.apply_style(line.render(self.app.console), self.rich_style), width)


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
        """The cursor's number: the selectable item nearest to the wanted place."""
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
        self.cursor = number
        visible = max(1, self.size.height - (self.heading is not None))
        top = min(self.scroll_offset.y, 0 if number <= 1 else number)
        self.scroll_to(y=max(top, number - visible + 1), animate=False, immediate=True)
        self.refresh()
        self.post_message(self.Moved())
