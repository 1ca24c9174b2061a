"""Fields of forms: a list to pick from, a value among a few, and the text that lines must contain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option


class PickList(OptionList):
    """Marks that are letters, not colours: they read the same under NO_COLOR."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "select", "Pick", show=False)]

    class Changed(Message):
        """Something was picked or dropped by a person."""

    def __init__(self, *, id: str, title: str) -> None:
        """Begin empty, under ``title``."""
        super().__init__(id=id, compact=True, markup=False)
        self._title = title
        self.border_title = Text(title)
        self.picked: list[str] = []
        self._labels: dict[str, Callable[[], Text]] = {}

    def on_focus(self) -> None:
        self.border_title = Text(f"▸ {self._title}")

    def on_blur(self) -> None:
        self.border_title = Text(self._title)

    def offer(self, key: str, *, picked: bool = False, label: Callable[[], Text] | None = None) -> None:
        """Add an item; ``label`` returns its text, which defaults to the key."""
        self._labels[key] = label or partial(Text, key)
        if picked and key not in self.picked:
            self.picked.append(key)
        self.add_option(Option(self._prompt(key), id=key))

    def drop(self, key: str) -> None:
        del self._labels[key]
        self.picked = [name for name in self.picked if name != key]
        self.remove_option(key)

    @property
    def offered(self) -> list[str]:
        """Everything that can be picked, in the order of the list."""
        return list(self._labels)

    def pick(self, keys: Iterable[str]) -> None:
        self.picked = [key for key in self._labels if key in set(keys)]
        self.redraw()

    def redraw(self) -> None:
        for key in self._labels:
            self.replace_option_prompt(key, self._prompt(key))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter, space or a click picks, or drops again."""
        event.stop()
        key = str(event.option_id)
        chosen = set(self.picked) ^ {key}
        self.pick(chosen)
        self.post_message(self.Changed())

    def _prompt(self, key: str) -> Text:
        return Text.assemble(("[x] " if key in self.picked else "[ ] "), self._labels[key]())


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
        return self._value

    @value.setter
    def value(self, value: str) -> None:
        self._value = value
        self.refresh(layout=True)

    def render(self) -> Text:
        return Text(f"‹ {self._label(self._value)} ›")

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return self.render().cell_len

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 1

    def action_turn(self, steps: int) -> None:
        self.value = self._values[(self._values.index(self._value) + steps) % len(self._values)]
        self.post_message(self.Changed())

    def on_click(self, event: events.Click) -> None:
        self.action_turn(-1 if event.x < 2 else 1)


class FilterField(Input):
    """An input that appears while there is a filter; the screen listens to it."""

    def open(self) -> None:
        """Show it; what is typed next goes there."""
        self.display = True
        self.screen.set_focus(self)

    def on_input_submitted(self) -> None:
        self.display = bool(self.value)

    def drop(self) -> bool:
        """Take the filter away; whether there was a field."""
        was_there = bool(self.display)
        self.value = ""
        self.display = False
        return was_there

    def forget(self) -> None:
        """Drop the filter without a message: another list is shown."""
        with self.prevent(Input.Changed):
            self.drop()
