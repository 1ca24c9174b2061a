"""A list of things that can be picked, any number of them: ``[x] docker``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import OptionList
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
        """Keys go here: said by a sign too, as a colour alone is nothing under NO_COLOR."""
        self.border_title = Text(f"▸ {self._title}")

    def on_blur(self) -> None:
        """They go elsewhere."""
        self.border_title = Text(self._title)

    def offer(self, key: str, *, picked: bool = False, label: Callable[[], Text] | None = None) -> None:
        """Add something to pick; ``label`` is asked again whenever it is drawn anew, the key is its default."""
        self._labels[key] = label or partial(Text, key)
        if picked and key not in self.picked:
            self.picked.append(key)
        self.add_option(Option(self._prompt(key), id=key))

    def drop(self, key: str) -> None:
        """Offer something no longer."""
        del self._labels[key]
        self.picked = [one for one in self.picked if one != key]
        self.remove_option(key)

    @property
    def offered(self) -> list[str]:
        """Everything that can be picked, in the order of the list."""
        return list(self._labels)

    def pick(self, keys: Iterable[str]) -> None:
        """Pick exactly these."""
        self.picked = [key for key in self._labels if key in set(keys)]
        self.redraw()

    def redraw(self) -> None:
        """Ask every label anew."""
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
