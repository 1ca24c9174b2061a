"""The typed fields of Setup: actions, trials, arrival, cost limits."""

from __future__ import annotations

from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Label

from taxtui.plan import arrivals
from taxtui.tui.fields import Cycle
from taxtui.tui.setup.form import Choices

ARRIVALS: Final = {kind.name(): kind for kind in arrivals.KINDS}
COUNTS: Final = (("trials", "Trials"), ("warmup", "Warm-up"), ("concurrency", "Concurrency"))
TEXTS: Final = ("actions", "trials", "warmup", "concurrency", "repeat", "budget")
"""The fields of ``Choices`` that are typed here."""


class RunFields(Vertical):
    """Two lines of fields; those for money are there once something paid is picked."""

    class Changed(Message):
        """A field was changed."""

        def __init__(self, *, money: bool) -> None:
            """``money``: the field limits the cost, and does not change the measurement."""
            super().__init__()
            self.money = money

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._last: dict[str | None, str] = {}  # each field's text: Textual reports the first text as a change too
        self._arguments: dict[str, str] = {}  # what was typed for each kind of arrival that takes something

    def compose(self) -> ComposeResult:
        plain = Choices()
        with Horizontal():
            yield Label("Actions")
            yield Input(plain.actions, id="actions", compact=True, placeholder="10, 50", select_on_focus=True)
            for key, label in COUNTS:
                yield Label(label, markup=False)
                yield self._count(key, getattr(plain, key))
        with Horizontal():
            yield Label("Repeat")
            yield self._count("repeat", plain.repeat)
            yield Label("Budget")
            yield Input(plain.budget, id="budget", compact=True, placeholder="none", max_length=7)
            yield Label("Arrival")
            yield Cycle(("", *ARRIVALS), self._arrival_label, id="arrival")
        with Horizontal(id="more"):
            yield Label(id="asks", classes="argument", markup=False)
            yield Input(id="argument", compact=True, max_length=200, classes="argument")
            yield Label("Prices", classes="money")
            yield Input(id="prices", compact=True, classes="money")
            yield Label("Max $", classes="money")
            yield Input(id="most", compact=True, restrict="[0-9.]*", max_length=9, classes="money")

    def _count(self, key: str, value: str) -> Input:
        return Input(value, id=key, compact=True, restrict="[0-9]*", max_length=7, select_on_focus=True)

    def on_mount(self) -> None:
        self.show_money("", needed=False)

    def _arrival_label(self, value: str) -> str:
        if value or not self.is_mounted:
            return value
        width = self._text("concurrency")
        return f"{arrivals.usual(int(width) if width.isdigit() and int(width) > 1 else 1)} (default)"

    @on(Input.Changed)
    def typed_into(self, event: Input.Changed) -> None:
        event.stop()
        if event.input.id == "argument":
            self._arguments[self.query_one(Cycle).value] = event.value
        self.keep_arrival_true()
        if event.input.value != self._last.get(event.input.id, getattr(Choices(), str(event.input.id), "")):
            self.post_message(self.Changed(money=event.input.has_class("money")))
        self._last[event.input.id] = event.input.value

    @on(Cycle.Changed)
    def turned(self, event: Cycle.Changed) -> None:
        event.stop()
        self.keep_arrival_true()
        self.post_message(self.Changed(money=False))

    def keep_arrival_true(self) -> None:
        """Update the default arrival with the concurrency, and show the argument of an arrival that has one."""
        arrival = self.query_one(Cycle)
        arrival.refresh(layout=True)
        kind = ARRIVALS.get(arrival.value)
        self.set_class(kind is not None and bool(kind.example), "-argument")
        if kind is not None and kind.example:
            self.query_one("#asks", Label).update(kind.asks)
            with self.prevent(Input.Changed):
                self.query_one("#argument", Input).value = self._arguments.get(arrival.value, kind.example)

    def show_money(self, sheet: str, *, needed: bool) -> None:
        """Show the fields for money, or hide them; ``sheet`` is the price sheet if none is typed."""
        self.set_class(needed, "-money")
        self.query_one("#prices", Input).placeholder = sheet or "none"
        self.query_one("#most", Input).placeholder = "auto"

    def _text(self, key: str) -> str:
        return self.query_one(f"#{key}", Input).value.strip()

    def typed(self) -> dict[str, str]:
        arrival = self.query_one(Cycle).value
        if self.has_class("-argument"):
            arrival += f":{self._text('argument')}"
        return {key: self._text(key) for key in TEXTS} | {"arrival": arrival}

    @property
    def sheet(self) -> str:
        return self._text("prices")

    @property
    def limit_usd(self) -> str:
        return self._text("most")

    def fill(self, choices: Choices) -> None:
        kind, _, argument = choices.arrival.partition(":")
        with self.prevent(Input.Changed):
            for key in TEXTS:
                self.query_one(f"#{key}", Input).value = getattr(choices, key)
        self._arguments = {kind: argument} if argument else {}
        self.query_one(Cycle).value = kind
        self.keep_arrival_true()
