"""A field for one of a few values, on one line: ``‹ closed ›``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget


class Cycle(Widget, can_focus=True):
    """Left and right, space or a click go from value to value, and from the last to the first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,space", "turn(1)", "Next", show=False),
        Binding("left", "turn(-1)", "Previous", show=False),
    ]

    class Changed(Message):
        """A person has chosen another value."""

    def __init__(self, values: Sequence[str], label: Callable[[str], str], *, id: str) -> None:
        """Begin with the first value; ``label`` says how each is shown."""
        super().__init__(id=id)
        self._values, self._label = values, label
        self._value = values[0]

    @property
    def value(self) -> str:
        """The one that is chosen."""
        return self._value

    @value.setter
    def value(self, value: str) -> None:
        self._value = value
        self.refresh(layout=True)

    def render(self) -> Text:
        """The value between two arrows."""
        return Text(f"‹ {self._label(self._value)} ›")

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """As wide as what it says."""
        return self.render().cell_len

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """One line."""
        return 1

    def action_turn(self, steps: int) -> None:
        """Go on to another value."""
        self.value = self._values[(self._values.index(self._value) + steps) % len(self._values)]
        self.post_message(self.Changed())

    def on_click(self, event: events.Click) -> None:
        """The left arrow goes back, the rest goes on."""
        self.action_turn(-1 if event.x < 2 else 1)
