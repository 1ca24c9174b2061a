"""The first line: which screens there are, which one this is, and what the run is up to."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.geometry import Size
from textual.widgets import Static

from taxtui.tui import actions
from taxtui.tui.actions import Scope

NAMES: Final = 57  # columns of all tabs with their names
STATUS: Final[Mapping[Scope, int]] = MappingProxyType(
    {"setup": 0, "live": 90, "results": 46, "projection": 46, "recordings": 26}
)
"""Columns that a screen's status wants; what is left decides whether the other tabs have names or digits alone."""


class Tab(Static):
    """The name of a screen, or its digit alone where there is no room; a click goes there."""

    def __init__(self, key: str, mode: Scope, name: str, current: Scope) -> None:
        """A tab on the screen ``current``, marked where it is the tab of that screen."""
        super().__init__(markup=False)
        self._key, self._title, self._screen = key, name, current
        self.mode = mode
        self.set_class(mode == current, "current")
        self.tooltip = f"go to {name} ({key})"

    def render(self) -> Text:
        """``1 Setup``."""
        current = self.mode == self._screen
        if not current and self.app.size.width < NAMES + STATUS[self._screen]:
            return Text(f" {self._key} ", "dim")
        return Text.assemble((f" {self._key} ", "dim"), (f"{self._title} ", "bold" if current else ""))

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
        for key, mode, name in actions.SCREENS:
            yield Tab(key, mode, name, self._current)
        yield Static("", id="status", markup=False)

    def say(self, status: Text) -> None:
        """Replace the status."""
        self.query_one("#status", Static).update(status, layout=False)  # a layout per frame would double its cost
