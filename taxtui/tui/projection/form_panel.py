"""The list of the options of a projection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich.text import Text
from textual import events
from textual.message import Message

from taxtui.terminal_text import cut, fit
from taxtui.tui.lists import MUTED, CursorList
from taxtui.tui.projection import form
from taxtui.tui.projection.form import Field

LABEL_WIDTH: Final = 17
UNSET: Final = "–"


class FormPanel(CursorList[Field | str]):
    """A line per option and per group of options; bold options differ from the usual value.

    The heading of a group opens and folds the group, and counts the options in use.
    """

    class Changed(Message):
        """An option has another value."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.values: dict[str, str] = dict(form.USUAL)
        self.choices: dict[str, tuple[str, ...]] = {}  # of options with choices from the recordings
        self._toggled: set[str] = set()  # groups opened or folded by a person

    def on_mount(self) -> None:
        self._list()

    def _list(self) -> None:
        """Show the open lines; the cursor stays on the same line."""
        before = self.chosen
        self.show(form.listed(self.values, self._toggled))
        if before is not None:
            names = [_name(item) for item in self.items]
            self.cursor = names.index(_name(before)) if _name(before) in names else self.cursor

    @property
    def field(self) -> Field | None:
        """The option under the cursor; None on a heading."""
        chosen = self.chosen
        return chosen if isinstance(chosen, Field) else None

    @property
    def help(self) -> str:
        chosen = self.chosen
        if not isinstance(chosen, Field):
            labels = [field.label for field in form.groups()[chosen]] if chosen else []
            return f"enter opens or folds: {', '.join(labels)}"
        from_file = chosen.name not in self.values and chosen.name in form.file_values(self.values)
        choices = self._choices(chosen)
        parts = ["From the training file."] * from_file + [chosen.help]
        return " ".join([*parts, f"One of: {', '.join(choices)}." if choices else ""]).strip()

    def value(self, name: str) -> str:
        return form.value_of(name, self.values)

    def find(self, name: str) -> None:
        names = [_name(item) for item in self.items]
        if name in names:
            self.put(names.index(name))

    def toggle_group(self) -> bool:
        """Open or fold the group under the cursor; False on an option."""
        chosen = self.chosen
        if not isinstance(chosen, str):
            return False
        self._toggled ^= {chosen}
        self._list()
        self.post_message(self.Moved())
        return True

    def offer(self, choices: Mapping[str, tuple[str, ...]]) -> None:
        self.choices.update(choices)
        self.refresh()

    def adjust(self, step: int) -> None:
        """Change the option under the cursor; open or fold the group under the cursor."""
        field = self.field
        if field is None:
            heading = self.chosen
            if isinstance(heading, str) and form.is_open(heading, self.values, self._toggled) != (step > 0):
                self.toggle_group()
        elif field.flag:
            self.set(field.name, form.ON if step > 0 else "")
        else:
            self.set(field.name, form.next_value(self.value(field.name), field, self._choices(field), step))

    def set(self, name: str, text: str) -> None:
        """Give an option a value; "" unsets the option."""
        text = text.strip()
        if text == self.values.get(name, ""):
            return
        if text:
            self.values[name] = text
            if name == form.FILE:  # values of the file replace usual values
                for key in form.file_values(self.values):
                    if self.values.get(key) == form.USUAL.get(key):
                        self.values.pop(key, None)
        else:
            self.values.pop(name, None)
        heading = next(heading for heading, fields in form.groups().items() if form.fields()[name] in fields)
        if heading and form.in_use(heading, self.values):
            self._toggled.discard(heading)  # a group in use is open
        elif heading:
            self._toggled.add(heading)  # the group stays open while a person edits an option
        self._list()
        self.post_message(self.Changed())

    def draw(self, item: Field | str, number: int, width: int) -> Text:
        """Return ``▸ workers          500``, or the heading ``▾ Nodes · 3 in use``."""
        if isinstance(item, str):
            used = form.in_use(item, self.values)
            sign = "▾" if form.is_open(item, self.values, self._toggled) else "▸"
            heading = Text(f"{sign} {item}", "bold" if used else "")
            return self.marked(heading.append(f" · {used} in use" if used else "", MUTED), number, width)
        value = self.value(item.name)
        line = Text(fit(item.label, LABEL_WIDTH), "" if value == form.USUAL.get(item.name, "") else "bold")
        text = cut(_text_of(item, value), max(1, width - 3 - LABEL_WIDTH))
        return self.marked(line.append(f" {text}", MUTED if text == UNSET else ""), number, width)

    def on_click(self, event: events.Click) -> None:
        number = self.under(event)
        if number is not None and isinstance(self.items[number], str):
            self.cursor = number
            self.toggle_group()

    def _choices(self, field: Field) -> tuple[str, ...]:
        return self.choices.get(field.name, field.choices)


def _name(item: Field | str) -> str:
    return item if isinstance(item, str) else item.name


def _text_of(field: Field, value: str) -> str:
    """Return a value for a person: ``1,000,000``, ``yes``, or ``–`` for an unset option."""
    if not value:
        return "no" if field.flag else UNSET
    return f"{int(value):,}" if value.isascii() and value.isdigit() and len(value) < 13 else value
