"""The typed fields of Setup: actions, trials, arrival."""

from __future__ import annotations

from typing import Final

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Label

from taxtui.tui.setup.form import Choices

LINES: Final = (
    {"actions": "10, 50", "trials": "", "warmup": "", "concurrency": ""},
    {"repeat": "", "budget": "none", "arrival": "default, or burst, open:20/s"},
)
"""Fields of ``Choices``, with the text of an empty field."""
COUNTS: Final = ("trials", "warmup", "concurrency", "repeat")


class RunFields(Vertical):
    """Two lines of fields."""

    def compose(self) -> ComposeResult:
        plain = Choices()
        for line in LINES:
            with Horizontal():
                for name, placeholder in line.items():
                    yield Label(name.replace("warmup", "warm-up").capitalize(), markup=False)
                    yield Input(
                        getattr(plain, name),
                        id=name,
                        compact=True,
                        placeholder=placeholder,
                        restrict="[0-9]*" if name in COUNTS else None,
                        max_length=7 if name in COUNTS else 0,
                        select_on_focus=True,
                    )

    def typed(self) -> dict[str, str]:
        """Return the text of each field of ``Choices``."""
        return {str(field.id): field.value.strip() for field in self.query(Input)}
