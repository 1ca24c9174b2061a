"""The list of the options of a projection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich.text import Text
from textual.message import Message

from taxtui.terminal_text import cut, fit
from taxtui.tui.lists import MUTED, CursorList
from taxtui.tui.projection import form
from taxtui.tui.projection.form import Field

LABEL_WIDTH: Final = 17
UNSET: Final = "–"


class FormPanel(CursorList[Field | str]):
    """A line per option; bold options differ from the default. Headings separate groups of options."""

    class Changed(Message):
        """An option has another value."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.values: dict[str, str] = {}
        self.choices: dict[str, tuple[str, ...]] = {}  # of options with choices from the recordings

    def on_mount(self) -> None:
        self.show(form.lines())

    def can_choose(self, number: int) -> bool:
        return isinstance(self.items[number], Field)

    @property
    def field(self) -> Field | None:
        """The option under the cursor; None before the list is shown."""
        return self.chosen if isinstance(self.chosen, Field) else None

    @property
    def help(self) -> str:
        field = self.field
        if field is None:
            return ""
        from_file = field.name not in self.values and field.name in form.file_values(self.values)
        choices = self._choices(field)
        parts = [*["From the training file."] * from_file, field.help]
        return " ".join([*parts, f"One of: {', '.join(choices)}." if choices else ""]).strip()

    def value(self, name: str) -> str:
        return form.value_of(name, self.values)

    def find(self, name: str) -> None:
        """Put the cursor on an option."""
        self.put(self.items.index(form.fields()[name]))

    def offer(self, choices: Mapping[str, tuple[str, ...]]) -> None:
        self.choices.update(choices)
        self.refresh()

    def adjust(self, step: int) -> None:
        """Change the option under the cursor."""
        field = self.field
        if field is None:
            return
        if field.flag:
            self.set(field.name, form.ON if step > 0 else "")
        else:
            self.set(field.name, form.next_value(self.value(field.name), field, self._choices(field), step))

    def set(self, name: str, text: str) -> None:
        """Give an option a value; "" unsets the option."""
        text = text.strip()
        if text != self.values.get(name, ""):
            self.values[name] = text
            if not text:
                del self.values[name]
            self.refresh()
            self.post_message(self.Changed())

    def draw(self, item: Field | str, number: int, width: int) -> Text:
        """Return ``▸ workers          500``, or a heading."""
        if isinstance(item, str):
            return Text(item, MUTED)
        value = self.value(item.name)
        line = Text(fit(item.label, LABEL_WIDTH), "" if value == form.DEFAULTS.get(item.name, "") else "bold")
        text = cut(_text_of(item, value), max(1, width - 3 - LABEL_WIDTH))
        return self.marked(line.append(f" {text}", MUTED if text == UNSET else ""), number, width)

    def _choices(self, field: Field) -> tuple[str, ...]:
        return self.choices.get(field.name, field.choices)


def _text_of(field: Field, value: str) -> str:
    """Return a value for a person: ``1,000,000``, ``yes``, or ``–`` for an unset option."""
    if not value:
        return "no" if field.flag else UNSET
    return f"{int(value):,}" if value.isascii() and value.isdigit() and len(value) < 13 else value
