"""The lists of the Setup screen: items with check marks, and substrates with the result of the check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from taxtui.tui.colours import glyph, substrate_style, themed

if TYPE_CHECKING:
    from taxtui.report.plan_cost import CheckedSubstrate


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
        self.offered: list[str] = []

    def on_focus(self) -> None:
        self.border_title = Text(f"▸ {self._title}")

    def on_blur(self) -> None:
        self.border_title = Text(self._title)

    def offer(self, key: str, *, picked: bool = False) -> None:
        """Add an item, unless the list has the item."""
        if key not in self.offered:
            self.offered.append(key)
            self.picked += [key] * picked
            self.add_option(Option(self._prompt(key), id=key))

    def drop(self, key: str) -> None:
        self.offered.remove(key)
        self.picked = [name for name in self.picked if name != key]
        self.remove_option(key)

    def pick(self, keys: Iterable[str]) -> None:
        self.picked = [key for key in self.offered if key in set(keys)]
        self.redraw()

    def redraw(self) -> None:
        for key in self.offered:
            self.replace_option_prompt(key, self._prompt(key))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Pick an item, or drop a picked item."""
        event.stop()
        self.pick(set(self.picked) ^ {str(event.option_id)})
        self.post_message(self.Changed())

    def label(self, key: str) -> Text:
        """Return the text of an item."""
        return Text(key)

    def _prompt(self, key: str) -> Text:
        return Text.assemble(("[x] " if key in self.picked else "[ ] "), self.label(key))


class SubstrateList(PickList):
    """``● docker   27.1, runc``, ``✗ ec2   credentials expired``."""

    def __init__(self) -> None:
        super().__init__(id="substrates", title="Substrates")
        self.answers: dict[str, CheckedSubstrate] = {}
        self.awaited: set[str] = set()  # substrates in a check

    def only(self, names: Sequence[str]) -> None:
        """Offer these substrates; drop all others without options."""
        for key in tuple(self.offered):
            if key not in names and ":" not in key:
                self.drop(key)
        for name in names:
            self.offer(name)

    def ask(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.answers.pop(key, None)
        self.awaited.update(keys)
        self.redraw()

    def hear(self, keys: Sequence[str], answers: Mapping[str, CheckedSubstrate]) -> None:
        """Show the results of a check; add new substrates."""
        self.awaited.difference_update(keys)
        self.answers.update(answers)
        for key in answers:
            self.offer(key)
        self.redraw()

    def label(self, key: str) -> Text:
        answer = self.answers.get(key)
        name = (f"{glyph(key)} {key:<10} ", substrate_style(key))
        if answer is None or answer.ok is None:
            return Text.assemble(name, ("checking…" if key in self.awaited else "not checked", "dim"))
        if not answer.ok:
            error = themed(self.app.theme_variables, "text-error")
            return Text.assemble(("✗ ", error), (f"{key:<10} ", "dim"), (answer.detail, error))
        return Text.assemble(name, ("PAID · " if answer.paid else "", "bold"), _short(answer.detail))

    def advice(self) -> Text:
        """Return the check's result for the substrate under the cursor, and the fix."""
        if self.highlighted is None:
            return Text()
        key = self.offered[self.highlighted]
        answer = self.answers.get(key)
        if answer is None or answer.ok is None:
            return Text()
        mark, style = ("✓", "text-success") if answer.ok else ("✗", "text-error")
        latency = f" · {answer.latency_ns / 1e6:.0f} ms away" if answer.latency_ns else ""
        text = Text(f"{mark} {key}: {answer.detail}{latency}", themed(self.app.theme_variables, style))
        return text.append(f"\n  {answer.fix}" if answer.fix else "")


def _short(detail: str) -> str:
    return detail.removeprefix("ready, ") or "ready"
