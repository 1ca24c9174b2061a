"""What would run: its size, time and cost, the command line, and what is known of a substrate; cut to the room."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.text import Text
from textual.widget import Widget

MORE: Final = "… y copies all of it"


class PlanPanel(Widget):
    """The facts stay whole; where there is no room for everything, the command line is cut, then what helps."""

    def __init__(self, *, id: str) -> None:
        """Nothing is planned yet."""
        super().__init__(id=id)
        self.border_title = "Plan"
        self._facts: list[Text] = []
        self._command = self._advice = self._about = Text()

    def show(self, facts: Iterable[Text], command: Text, advice: Text, about: Text) -> None:
        """Say this: facts in a few words each, the command line, advice, and what explains the choices."""
        self._facts, self._command, self._advice, self._about = list(facts), command, advice, about
        self.refresh()

    def render(self) -> Text:
        """As many lines as there is room for."""
        width, height = self.content_size
        if not width:
            return Text()
        facts = [line for fact in self._facts for line in self._wrapped(fact, width)[:2]]
        least = 1 if self._command else 0
        advice = self._wrapped(self._advice, width)
        command = self._wrapped(self._command, width)
        room = height - len(facts)
        if len(command) + len(advice) > room:  # one line for each thing that the advice says
            advice = [_cut(line, width) for line in self._advice.split()] if self._advice else []
            advice = advice[: max(0, room - least)]
        shown = command[: max(least, room - len(advice))]
        if len(shown) < len(command):
            shown[-1:] = [_shortened(shown[-1], width)]
        lines = [*facts, *shown, *advice]
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
    """A line that says at its end how to get at the rest."""
    line.truncate(width - len(MORE) - 1)
    line.rstrip()
    return line.append(f" {MORE}", "dim")
