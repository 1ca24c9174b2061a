"""The typed fields of Setup: actions, trials, arrival, cost limits."""

from __future__ import annotations

from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Label

from taxtui.tui.setup.form import Choices

COUNTS: Final = (("trials", "Trials"), ("warmup", "Warm-up"), ("concurrency", "Concurrency"))
TEXTS: Final = ("actions", "trials", "warmup", "concurrency", "repeat", "budget", "arrival")
"""Fields of ``Choices`` in this widget."""


class RunFields(Vertical):
    """Two lines of fields, and a line of cost limits for paid substrates."""

    class Changed(Message):
        """A field was changed."""

        def __init__(self, *, money: bool) -> None:
            """``money``: the field limits the cost, and does not change the measurement."""
            super().__init__()
            self.money = money

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._texts: dict[str | None, str] = {}  # by field: Textual reports the first text as a change too

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
            yield Input(id="arrival", compact=True, placeholder="default, or burst, open:20/s")
        with Horizontal(id="money"):
            yield Label("Prices")
            yield Input(id="prices", compact=True)
            yield Label("Max $")
            yield Input(id="most", compact=True, restrict="[0-9.]*", max_length=9, placeholder="auto")

    def _count(self, key: str, value: str) -> Input:
        return Input(value, id=key, compact=True, restrict="[0-9]*", max_length=7, select_on_focus=True)

    @on(Input.Changed)
    def typed_into(self, event: Input.Changed) -> None:
        event.stop()
        field = event.input.id
        if event.input.value != self._texts.get(field, getattr(Choices(), str(field), "")):
            self.post_message(self.Changed(money=field in ("prices", "most")))
        self._texts[field] = event.input.value

    def show_money(self, sheet: str, *, needed: bool) -> None:
        """Show or hide the cost limits; ``sheet`` is the price sheet unless a person types another."""
        self.set_class(needed, "-money")
        self.query_one("#prices", Input).placeholder = sheet or "none"

    def _text(self, key: str) -> str:
        return self.query_one(f"#{key}", Input).value.strip()

    def typed(self) -> dict[str, str]:
        return {key: self._text(key) for key in TEXTS}

    @property
    def sheet(self) -> str:
        return self._text("prices")

    @property
    def limit_usd(self) -> str:
        return self._text("most")
