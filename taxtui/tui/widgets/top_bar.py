"""The first line: which screens there are, which one this is, and what the run is up to."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Static

SCREENS = (("1", "setup", "Setup"), ("2", "live", "Live"))


class Tab(Static):
    """The name of a screen; a click goes there."""

    def __init__(self, key: str, mode: str, name: str, *, current: bool) -> None:
        """A tab, marked where it is the current one."""
        super().__init__(Text.assemble((f" {key} ", "dim"), (f"{name} ", "bold" if current else "")), markup=False)
        self.mode = mode
        self.set_class(current, "current")
        self.tooltip = f"go to {name} ({key})"

    async def on_click(self) -> None:
        """Go there."""
        await self.app.run_action(f"app.go('{self.mode}')")


class TopBar(Horizontal):
    """Tabs on the left, a status on the right."""

    def __init__(self, current: str) -> None:
        """The bar of the screen ``current``."""
        super().__init__()
        self._current = current

    def compose(self) -> ComposeResult:
        """The tabs and the status."""
        for key, mode, name in SCREENS:
            yield Tab(key, mode, name, current=mode == self._current)
        yield Static("", id="status", markup=False)

    def say(self, status: Text) -> None:
        """Replace the status."""
        self.query_one("#status", Static).update(status, layout=False)  # a layout per frame would double its cost
