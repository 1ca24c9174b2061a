"""The frame of every numbered screen: tabs, contents, keys; one line in a terminal that is too small."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, cast

from rich.text import Text
from textual import work
from textual.app import ComposeResult, RenderResult
from textual.containers import Container, Horizontal
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from taxtui.tui import actions
from taxtui.tui.actions import NumberedTab, Scope

if TYPE_CHECKING:
    from taxtui.tui.app import TaxtuiApp

MINIMUM: Final = (80, 24)
"""Columns and lines of the smallest terminal."""
NAMES: Final = 150
"""Columns of the narrowest terminal with the names of all screens."""


class TooSmall(Widget):
    """The needed size, in a terminal that is too small."""

    def render(self) -> RenderResult:
        width, height = self.app.size
        return Text(f"taxtui needs {MINIMUM[0]}x{MINIMUM[1]}; this terminal is {width}x{height}", justify="center")


class Tab(Static):
    """The name of a screen, or the digit alone in a narrow terminal; a click goes to the screen."""

    def __init__(self, tab: NumberedTab, current: Scope) -> None:
        """Make the tab for the bar of the screen ``current``."""
        super().__init__(markup=False)
        self._tab = tab
        self.mode = tab.scope
        self.set_class(tab.scope == current, "current")
        self.tooltip = Text(f"{tab.help} ({tab.key})")

    def render(self) -> Text:
        """Return ``1 Setup``."""
        current = self.has_class("current")
        if not current and self.app.size.width < NAMES:
            return Text(f" {self._tab.key} ", "dim")
        return Text.assemble((f" {self._tab.key} ", "dim"), (f"{self._tab.title} ", "bold" if current else ""))

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return self.render().cell_len

    async def on_click(self) -> None:
        await self.app.run_action(f"app.go('{self.mode}')")


class TopBar(Horizontal):
    """Tabs on the left, and a status on the right."""

    def __init__(self, current: Scope) -> None:
        """Make the bar of the screen ``current``."""
        super().__init__()
        self._current = current

    def compose(self) -> ComposeResult:
        for tab in actions.SCREENS:
            yield Tab(tab, self._current)
        yield Static("", id="status", markup=False)

    def say(self, status: Text) -> None:
        self.query_one("#status", Static).update(status, layout=False)  # a layout doubles the cost of a frame


class NumberedScreen(Screen[None]):
    """A screen with a digit; ``scope`` selects the actions."""

    scope: ClassVar[Scope]
    CSS_PATH = "screen.tcss"  # in the folder of each screen

    def __init__(self) -> None:
        super().__init__()
        self.paths: tuple[Path, ...] = ()  # the recordings on the screen

    @property
    def taxtui(self) -> TaxtuiApp:
        return cast("TaxtuiApp", self.app)

    def compose(self) -> ComposeResult:
        yield TooSmall()
        with Container(id="whole"):
            yield TopBar(self.scope)
            yield from self.contents()
            yield from self.foot()

    def contents(self) -> ComposeResult:
        raise NotImplementedError

    def foot(self) -> ComposeResult:
        from textual.widgets import Footer  # Setup's first frame has none

        yield Footer(compact=True, show_command_palette=False)

    def arrive(self) -> None:
        """Show the current data of the app, on every visit of the screen."""

    def leave(self, scope: Scope) -> None:
        """Prepare a change to the screen ``scope``."""

    @work
    async def write_page(self, command: Sequence[str]) -> None:
        """Write the page of a taxtui command to a new file in the folder of the recording."""
        from taxtui.live import catalogue
        from taxtui.tui.command_dialog import CommandProgress

        if not self.paths:
            self.notify("there is no recording yet; 1 measures, 5 lists recordings", severity="warning")
            return
        try:
            page = str(catalogue.free_name(self.paths[0], ".html"))
        except OSError as error:
            self.notify(str(error), title="No page", severity="error", timeout=10)
            return
        words = ["taxtui", *command, "--html", page]
        if await self.app.push_screen_wait(CommandProgress("HTML page", words, (0,))) is not None:
            self.notify(page, title="Page written", timeout=10)
