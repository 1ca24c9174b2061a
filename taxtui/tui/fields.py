"""Fields of forms: a list with check marks, and a filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option


class PickList(OptionList):
    """A list with letters as check marks, for NO_COLOR."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "select", "Pick", show=False)]

    class Changed(Message):
        """A person has picked or dropped an item."""

    def __init__(self, *, id: str, title: str) -> None:
        """Make an empty list with this title."""
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
        """Add an item; ``label`` returns the text of the item, by default the key."""
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
        """All items, in the order of the list."""
        return list(self._labels)

    def pick(self, keys: Iterable[str]) -> None:
        self.picked = [key for key in self._labels if key in set(keys)]
        self.redraw()

    def redraw(self) -> None:
        for key in self._labels:
            self.replace_option_prompt(key, self._prompt(key))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Pick an item, or drop a picked item."""
        event.stop()
        key = str(event.option_id)
        chosen = set(self.picked) ^ {key}
        self.pick(chosen)
        self.post_message(self.Changed())

    def _prompt(self, key: str) -> Text:
        return Text.assemble(("[x] " if key in self.picked else "[ ] "), self._labels[key]())


class FilterField(Input):
    """An input for the words of a filter; hidden without words."""

    def open(self) -> None:
        """Show and focus the field."""
        self.display = True
        self.screen.set_focus(self)

    def on_input_submitted(self) -> None:
        self.display = bool(self.value)

    def drop(self) -> None:
        """Empty and hide the field."""
        self.value = ""
        self.display = False


def contains_words(text: str, words: str) -> bool:
    """Whether a text contains every word, in any case."""
    folded = text.casefold()
    return all(word in folded for word in words.casefold().split())
