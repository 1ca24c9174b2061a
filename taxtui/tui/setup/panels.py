"""The panels of the Setup screen: substrates with the result of the check, and the plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual.widget import Widget

from taxtui.tui.colours import glyph, substrate_style, themed
from taxtui.tui.fields import PickList

if TYPE_CHECKING:
    from taxtui.report.plan_cost import CheckedSubstrate


class SubstrateList(PickList):
    """``● docker   27.1, runc``, ``✗ ec2   credentials expired``."""

    def __init__(self) -> None:
        super().__init__(id="substrates", title="Substrates")
        self.answers: dict[str, CheckedSubstrate] = {}
        self.awaited: set[str] = set()  # those whose answer is awaited

    def add(self, key: str, *, picked: bool = False) -> None:
        """Offer a substrate, with options or without, unless it is offered already."""
        if key not in self.offered:
            self.offer(key, picked=picked, label=lambda: self._label(key))

    def only(self, names: Sequence[str]) -> None:
        """Offer these substrates, and drop other ones without options."""
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
        """Show the results of a check; add substrates that are new."""
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


MORE: Final = "… y copies all of it"


class PlanPanel(Widget):
    """The facts stay whole; where there is no room for everything, the command line is cut, then what helps."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.border_title = "Plan"
        self._facts: list[Text] = []
        self._command = self._advice = self._about = Text()

    def show(self, facts: Iterable[Text], command: Text, advice: Text, about: Text) -> None:
        """Say this: facts in a few words each, the command line, advice, and what explains the choices."""
        self._facts, self._command, self._advice, self._about = list(facts), command, advice, about
        self.refresh()

    def render(self) -> Text:
        width, height = self.content_size
        if not width:
            return Text()
        facts = [line for fact in self._facts for line in self._wrapped(fact, width)[:2]]
        minimum = 1 if self._command else 0
        advice = self._wrapped(self._advice, width)
        command = self._wrapped(self._command, width)
        room = height - len(facts)
        if len(command) + len(advice) > room:  # one line for each thing that the advice says
            advice = [_cut(line, width) for line in self._advice.split()] if self._advice else []
            advice = advice[: max(0, room - minimum)]
        visible = command[: max(minimum, room - len(advice))]
        if len(visible) < len(command):
            visible[-1:] = [_shortened(visible[-1], width)]
        lines = [*facts, *visible, *advice]
        about = self._wrapped(self._about, width)
        if about and len(lines) + 1 + len(about) <= height:
            lines += [Text(), *about]
        return Text("\n").join(lines[:height])

    def _wrapped(self, text: Text, width: int) -> list[Text]:
        return list(text.wrap(self.app.console, width)) if text else []


def _cut(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    return line


def _shortened(line: Text, width: int) -> Text:
    """Cut a line, and end it with a hint."""
    line.truncate(width - len(MORE) - 1)
    line.rstrip()
    return line.append(f" {MORE}", "dim")
