"""The list of the Setup screen: substrates with the result of the check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from taxtui.tui.colours import glyph, substrate_style, themed
from taxtui.tui.fields import PickList

if TYPE_CHECKING:
    from taxtui.report.plan_cost import CheckedSubstrate


class SubstrateList(PickList):
    """``● docker   27.1, runc``, ``✗ ec2   credentials expired``."""

    def __init__(self) -> None:
        super().__init__(id="substrates", title="Substrates")
        self.answers: dict[str, CheckedSubstrate] = {}
        self.awaited: set[str] = set()  # substrates in a check

    def add(self, key: str, *, picked: bool = False) -> None:
        """Add a substrate with or without options, unless the list has the substrate."""
        if key not in self.offered:
            self.offer(key, picked=picked, label=lambda: self._label(key))

    def only(self, names: Sequence[str]) -> None:
        """Offer these substrates; drop all others without options."""
        for key in self.offered:
            if key not in names and ":" not in key:
                self.drop(key)
        for name in names:
            self.add(name)

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
            self.add(key)
        self.redraw()

    def _label(self, key: str) -> Text:
        answer = self.answers.get(key)
        dark = self.app.current_theme.dark
        name = (f"{glyph(key)} {key:<10} ", substrate_style(key, dark=dark))
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
