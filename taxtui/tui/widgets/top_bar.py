"""The first line: which screens there are, which one this is, and what the run is up to."""

from __future__ import annotations

from typing import Final

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.geometry import Size
from textual.widgets import Static

from taxtui.tui import actions
from taxtui.tui.actions import Scope

WIDE: Final = 110


class Tab(Static):
    """The name of a screen, or its digit alone where there is no room; a click goes there."""

    def __init__(self, key: str, mode: Scope, name: str, *, current: bool) -> None:
        """A tab, marked where it is the current one."""
        super().__init__(markup=False)
        self._key, self._title, self._current = key, name, current
        self.mode = mode
        self.set_class(current, "current")
        self.tooltip = f"go to {name} ({key})"

    def render(self) -> Text:
        """``1 Setup``."""
        if not self._current and self.app.size.width < WIDE:
            return Text(f" {self._key} ", "dim")
        return Text.assemble((f" {self._key} ", "dim"), (f"{self._title} ", "bold" if self._current else ""))

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
            yield Tab(key, mode, name, current=mode == self._current)
        yield Static("", id="status", markup=False)

    def say(self, status: Text) -> None:
        """Replace the status."""
        self.query_one("#status", Static).update(status, layout=False)  # a layout per frame would double its cost
