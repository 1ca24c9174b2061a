"""The frame of every numbered screen: tabs, contents, keys; one line where the terminal is too small."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
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
"""The smallest terminal that a screen fits into."""
NAMES: Final = 1 + sum(len(f" {tab.key} {tab.title} ") for tab in actions.SCREENS)
"""Columns of all tabs with their names."""
NICENESS: Final = 15
"""Niceness of the process that writes a page: measurements and the interface come first."""


class TooSmall(Widget):
    """One line in a terminal that is too small; a measurement continues."""

    def render(self) -> RenderResult:
        width, height = self.app.size
        return Text(f"taxtui needs {MINIMUM[0]}x{MINIMUM[1]}; this terminal is {width}x{height}", justify="center")


class Tab(Static):
    """The name of a screen, or its digit alone in a narrow terminal; a click goes to the screen."""

    def __init__(self, tab: NumberedTab, current: Scope) -> None:
        """Make the tab for the bar of the screen ``current``."""
        super().__init__(markup=False)
        self._tab = tab
        self._status = next(screen.status for screen in actions.SCREENS if screen.scope == current)
        self.mode = tab.scope
        self.set_class(tab.scope == current, "current")
        self.tooltip = Text(f"{tab.help} ({tab.key})")

    def render(self) -> Text:
        """Return ``1 Setup``."""
        current = self.has_class("current")
        if not current and self.app.size.width < NAMES + self._status:
            return Text(f" {self._tab.key} ", "dim")
        return Text.assemble((f" {self._tab.key} ", "dim"), (f"{self._tab.title} ", "bold" if current else ""))

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return self.render().cell_len

    async def on_click(self) -> None:
        await self.app.run_action(f"app.go('{self.mode}')")


class TopBar(Horizontal):
    """Tabs on the left, a status on the right."""

    def __init__(self, current: Scope) -> None:
        """Make the bar of the screen ``current``."""
        super().__init__()
        self._current = current

    def compose(self) -> ComposeResult:
        for tab in actions.SCREENS:
            yield Tab(tab, self._current)
        yield Static("", id="status", markup=False)

    def say(self, status: Text) -> None:
        """Replace the status."""
        self.query_one("#status", Static).update(status, layout=False)  # a layout per frame would double its cost


class NumberedScreen(Screen[None]):
    """A screen with a digit; ``scope`` names its actions."""

    scope: ClassVar[Scope]
    CSS_PATH = "screen.tcss"  # beside each screen

    def __init__(self) -> None:
        super().__init__()
        self.paths: tuple[Path, ...] = ()
        """The recordings that are shown."""
        self._page: Path | None = None  # the page that is being written

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

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self.restyle())

    def arrive(self) -> None:
        """Show the app's current data: a person has come to this screen."""

    def leave(self, scope: Scope) -> None:
        """Hand over to the screen that a person goes to."""

    def restyle(self) -> None:
        """Draw again with the colours of the new theme."""

    @work
    async def write_page(self, command: Sequence[str]) -> None:
        """Write the page of a taxtui command under the first free name in the recording's folder.

        Another process draws the page: drawing takes seconds, and would delay the answer to a key.
        """
        from taxtui.live import catalogue

        if self._page is not None:
            self.notify(f"{self._page} is being written", severity="warning")
            return
        if not self.paths:
            self.notify("there is no recording yet; 1 measures, 5 lists recordings", severity="warning")
            return
        try:
            page = self._page = catalogue.beside(self.paths[0], ".html")
            self.notify(f"{page} …", title="Writing a page")
            refusal = await _refusal([*command, "--html", str(page)])
        except OSError as error:  # no more processes
            refusal = str(error)
        self._page = None
        if refusal:
            self.notify(refusal, title="No page", severity="error", timeout=10)
        else:
            self.notify(str(page), title="Page written", timeout=10)


def start_command(
    words: Sequence[str], *, stdout: int, stderr: int, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a command of taxtui in a session of its own. Raises ``OSError``: no more processes."""
    return subprocess.Popen(
        [sys.executable, "-m", "taxtui", *words],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        env=env,
    )


async def _refusal(command: Sequence[str]) -> str:
    """Run a command of taxtui; return its last line of stderr if it fails, else "". Cancelling ends the process."""
    process = start_command(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with contextlib.suppress(OSError):  # the process has ended already
        os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
    try:
        _, errors = await asyncio.to_thread(process.communicate)
    finally:
        process.terminate()
        code = process.wait()
    lines = [line for line in errors.decode(errors="replace").splitlines() if line.strip()]
    return "" if code == 0 else (lines or [f"its process ended with {code}"])[-1].removeprefix("taxtui: ")
