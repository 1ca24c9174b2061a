"""The first line: which screens there are, which one this is, and what the run is up to."""

from __future__ import annotations

from typing import Final

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.geometry import Size
from textual.widgets import Static

from taxtui.tui import actions
from taxtui.tui.actions import NumberedTab, Scope

NAMES: Final = 1 + sum(len(f" {tab.key} {tab.title} ") for tab in actions.SCREENS)
"""Columns of all tabs with their names."""


class Tab(Static):
    """The name of a screen, or its digit alone where there is no room; a click goes there."""

    def __init__(self, tab: NumberedTab, current: Scope) -> None:
        """A tab on the screen ``current``, marked where it is the tab of that screen."""
        super().__init__(markup=False)
        self._tab = tab
        self._status = next(one.status for one in actions.SCREENS if one.scope == current)
        self.mode = tab.scope
        self.set_class(tab.scope == current, "current")
        self.tooltip = Text(f"go to {tab.title} ({tab.key})")

    def render(self) -> Text:
        """``1 Setup``."""
        current = self.has_class("current")
        if not current and self.app.size.width < NAMES + self._status:
            return Text(f" {self._tab.key} ", "dim")
        return Text.assemble((f" {self._tab.key} ", "dim"), (f"{self._tab.title} ", "bold" if current else ""))

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """As wide as what it says."""
        return self.render().cell_len

    async def on_click(self) -> None:
        """Go there."""
        await self.app.run_action(f"app.go('{self.mode}')")


class TopBar(Horizontal):
    """Tabs on the left, a status on the right."""

    def __init__(self, current: Scope) -> None:
        """The bar of the screen ``current``."""
        super().__init__()
        self._current = current

    def compose(self) -> ComposeResult:
        """The tabs and the status."""
        for tab in actions.SCREENS:
            yield Tab(tab, self._current)
        yield Static("", id="status", markup=False)

    def say(self, status: Text) -> None:
        """Replace the status."""
        self.query_one("#status", Static).update(status, layout=False)  # a layout per frame would double its cost
