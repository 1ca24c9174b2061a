"""The inputs of a projection: what everyone knows first, all else folded away in groups, with sliders for numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.message import Message

from taxtui.terminal_text import cut, fit
from taxtui.terminal_text import width as width_of
from taxtui.tui.lists import MUTED, CursorList
from taxtui.tui.projection import form
from taxtui.tui.projection.form import Field

LABEL_WIDTH: Final = 16
VALUE_WIDTH: Final = 10
NOT_ASKED: Final = "–"


class FormPanel(CursorList[Field | str]):
    """A line per option and per group; bold options differ from the usual.

    A group is opened and folded on its heading, which shows how many of its options are in use.
    """

    BINDINGS: ClassVar[list[BindingType]] = []

    class Changed(Message):
        """An option has another value."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.values: dict[str, str] = dict(form.USUAL)
        self.stops: dict[str, tuple[str, ...]] = {}  # of fields whose values depend on the recordings
        self._turned: set[str] = set()  # groups that a person has opened or folded

    def on_mount(self) -> None:
        self._list()

    def _list(self) -> None:
        """Show the open lines; the cursor stays on its line."""
        before = self.chosen
        self.show(form.listed(self.values, self._turned))
        if before is not None:
            names = [_name(item) for item in self.items]
            self.cursor = names.index(_name(before)) if _name(before) in names else self.cursor

    @property
    def field(self) -> Field | None:
        """The option under the cursor; None on the name of a group."""
        chosen = self.chosen
        return chosen if isinstance(chosen, Field) else None

    @property
    def help(self) -> str:
        chosen = self.chosen
        if isinstance(chosen, Field):
            origin = "" if chosen.name in self.values or not self._in_file(chosen.name) else "From the training file. "
            return " ".join(filter(None, [f"{origin}{chosen.help}", self.examples(chosen)]))
        labels = [field.label for field in form.groups()[chosen]] if chosen else []
        return f"enter opens or folds: {', '.join(labels)}"

    def _in_file(self, name: str) -> bool:
        return name in form.file_values(self.values)

    def value(self, name: str) -> str:
        return form.value_of(name, self.values)

    def find(self, name: str) -> None:
        names = [_name(item) for item in self.items]
        if name in names:
            self.put(names.index(name))

    def examples(self, field: Field) -> str:
        """Return ``Such as 1 to 1,000,000.``, or a few texts; "" for a switch and for a path."""
        stops = self._stops(field)
        if field.flag or not stops:
            return ""
        if all(stop.replace(".", "", 1).isdigit() for stop in stops):
            return f"Such as {_text_of(field, stops[0])} to {_text_of(field, stops[-1])}."
        return f"Such as {', '.join(stops[:3])}."

    def turn(self) -> bool:
        """Open or fold the group whose name is under the cursor; False where there is none."""
        chosen = self.chosen
        if not isinstance(chosen, str):
            return False
        self._turned ^= {chosen}
        self._list()
        self.post_message(self.Moved())
        return True

    def offer(self, stops: Mapping[str, tuple[str, ...]]) -> None:
        self.stops.update(stops)
        self.refresh()

    def adjust(self, step: int) -> None:
        """The next value of the option under the cursor."""
        field = self.field
        if field is None:
            heading = self.chosen
            if isinstance(heading, str) and form.is_open(heading, self.values, self._turned) != (step > 0):
                self.turn()
            return
        before = self.value(field.name)
        self.set(field.name, form.next_stop(before, self._stops(field), step, required=field.required))

    def set(self, name: str, text: str) -> None:
        """Give an option a value; "" is not asked for."""
        text = text.strip()
        if text == self.values.get(name, ""):
            return
        if text:
            self.values[name] = text
            if name == form.FILE:  # its values count, and not the usual ones
                for key in form.file_values(self.values):
                    if self.values.get(key) == form.USUAL.get(key):
                        self.values.pop(key, None)
        else:
            self.values.pop(name, None)
        heading = next(heading for heading, fields in form.groups().items() if form.fields()[name] in fields)
        if heading and form.in_use(heading, self.values):
            self._turned.discard(heading)  # in use, so open
        elif heading:
            self._turned.add(heading)  # it stays open while a person is at it
        self._list()
        self.post_message(self.Changed())

    def draw(self, item: Field | str, number: int, width: int) -> Text:
        """``▸ workers          ├────●────┤       500``."""
        if isinstance(item, str):
            return self.marked(self._heading(item), number, width)
        value = self.value(item.name)
        usual = value == form.USUAL.get(item.name, "")
        line = Text(fit(item.label, LABEL_WIDTH), "" if usual else "bold")
        room = width - 2 - LABEL_WIDTH - VALUE_WIDTH - 1
        line.append(self._track(item, value, room), MUTED if usual else "")
        text = cut(_text_of(item, value), VALUE_WIDTH)
        line.append(f" {' ' * (VALUE_WIDTH - width_of(text))}{text}", MUTED if text == NOT_ASKED else "")
        return self.marked(line, number, width)

    def _heading(self, group: str) -> Text:
        """``▾ Nodes · 3 in use``."""
        used = form.in_use(group, self.values)
        sign = "▾" if form.is_open(group, self.values, self._turned) else "▸"
        return Text.assemble((f"{sign} {group}", "bold" if used else ""), (f" · {used} in use" if used else "", MUTED))

    def on_click(self, event: events.Click) -> None:
        number, at = self.under(event), event.get_content_offset(self)
        if at is None or number is None:
            return
        if not isinstance(field := self.items[number], Field):
            self.cursor = number
            self.turn()
            return
        track_start = 2 + LABEL_WIDTH
        room = self.scrollable_content_region.width - track_start - VALUE_WIDTH - 1
        ladder = self._ladder(field)
        if track_start <= at.x < track_start + room and room > 2 and len(ladder) > 1:
            share = min(max((at.x - track_start - 1) / max(1, room - 3), 0.0), 1.0)
            self.set(field.name, ladder[round(share * (len(ladder) - 1))])

    def _stops(self, field: Field) -> tuple[str, ...]:
        return self.stops.get(field.name, field.stops)

    def _ladder(self, field: Field) -> list[str]:
        return list(self._stops(field)) if field.required else ["", *self._stops(field)]

    def _track(self, field: Field, value: str, room: int) -> str:
        ladder = self._ladder(field)
        if room < 5 or len(ladder) < 2:
            return " " * max(0, room)
        inner = room - 2
        place = form.position(value, ladder)
        track = ["─"] * inner
        if place is not None:
            track[min(max(0, round(place / (len(ladder) - 1) * (inner - 1))), inner - 1)] = "●"
        return f"├{''.join(track)}┤"


def _name(item: Field | str) -> str:
    return item if isinstance(item, str) else item.name


def _text_of(field: Field, value: str) -> str:
    """A value as a person reads it: ``1,000,000``, ``yes``, ``–`` where it is not asked for."""
    if not value:
        return "no" if field.flag else NOT_ASKED
    return f"{int(value):,}" if value.isascii() and value.isdigit() and len(value) < 13 else value
