"""The app: its screens, and the one run or replay that it holds."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import click
from textual import work
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.screen import Screen

from taxtui.commands.run import default_folder
from taxtui.tui import actions, availability
from taxtui.tui.feed import Feed, Launcher, ReplayFeed, RunFeed
from taxtui.tui.screens.dialogs import Confirm, help_dialog
from taxtui.tui.screens.live import LiveScreen
from taxtui.tui.screens.setup import SetupScreen
from taxtui.tui.summary import farewell
from taxtui.tui.widgets.too_small import MINIMUM

THEMES: Final = ("textual-dark", "textual-light", "nord", "gruvbox", "solarized-light", "ansi-dark", "ansi-light")


class TaxtuiApp(App[None]):
    """Setup and Live, and what both can do."""

    CSS_PATH = "app.tcss"
    TITLE = "taxtui"
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("app")]
    MODES: ClassVar = {"setup": SetupScreen, "live": LiveScreen}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (MINIMUM[0], "-normal"), (120, "-wide")]  # noqa: RUF012  # Textual declares them per instance
    VERTICAL_BREAKPOINTS = [(0, "-low"), (MINIMUM[1], "-medium"), (30, "-high")]  # noqa: RUF012  # Textual declares them per instance

    def __init__(self, feed: Feed | None = None, checker: availability.Checker = availability.check) -> None:
        """Open on Live where there is a feed, else on Setup."""
        super().__init__()
        self.feed = feed
        self.checker = checker
        self.launcher = Launcher()
        self._leaving = False

    async def on_mount(self) -> None:
        """Go to the first screen."""
        await self.action_go("live" if self.feed else "setup")

    async def action_go(self, mode: str) -> None:
        """Go to a screen."""
        await self.switch_mode(mode)
        if isinstance(self.screen, LiveScreen) and self.feed and self.screen.feed is not self.feed:
            self.screen.follow(self.feed)

    async def launch_run(self, scenario: dict[str, Any] | str, options: Sequence[str] = ()) -> None:
        """Start a run in a child process and watch it."""
        if isinstance(self.feed, RunFeed) and not self.feed.over:
            self.notify("one run at a time: cancel the other first (2, then c)", severity="warning")
            return
        if self.feed:
            self.feed.close()
        name = f"{time.strftime('%Y%m%dt%H%M%Sz', time.gmtime())}-{secrets.token_hex(4)}.msgpack"
        self.feed = RunFeed(scenario, default_folder() / name, self.launcher, options)
        self.launcher.yield_cpu()
        await self.action_go("live")

    def run_ended(self) -> None:
        """Leave, if that was only waiting for the run."""
        if self._leaving:
            self.exit()

    def export(self, beside: Path) -> None:
        """Write the screen as an SVG next to a file, under the first free name."""
        names = (beside.with_suffix(f"{number}.svg") for number in ("", *(f".{n}" for n in range(2, 1000))))
        path = next(path for path in names if not path.exists())
        try:
            path.write_text(self.export_screenshot(title="taxtui"), encoding="utf-8")
        except OSError as error:
            self.notify(f"cannot write {path}: {error.strerror}", severity="error", markup=False)
        else:
            self.notify(str(path), title="Exported", markup=False)

    def action_help(self) -> None:
        """All keys of this screen."""
        self.push_screen(help_dialog("live" if isinstance(self.screen, LiveScreen) else "setup"))

    def action_next_theme(self) -> None:
        """The next theme of a short list."""
        place = THEMES.index(self.theme) if self.theme in THEMES else -1
        self.theme = THEMES[(place + 1) % len(THEMES)]
        self.notify(self.theme, timeout=1.5)
        if isinstance(self.screen, SetupScreen):
            self.screen.refresh_plan()

    @work
    async def action_quit(self) -> None:  # type: ignore[override]  # a worker, because it asks
        """Leave; a run that goes on is cancelled and cleaned up first."""
        if not isinstance(self.feed, RunFeed) or self.feed.over:
            self.exit()
            return
        body = "The run goes on. Leaving cancels it and removes every sandbox first."
        if await self.push_screen_wait(Confirm("Quit?", body, "Cancel the run and quit", "Stay")):
            self._leaving = True
            await self.action_go("live")
            if isinstance(self.screen, LiveScreen):
                self.screen.cancel()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette: the actions of this screen and of the app."""
        scope: actions.Scope = "live" if isinstance(screen, LiveScreen) else "setup"
        for action in actions.of(scope, "app"):
            where = "app" if action.scope == "app" else "screen"
            if action.name != "command_palette":
                title = f"{action.label} ({action.shown})"
                yield SystemCommand(title, action.help, partial(self.run_action, f"{where}.{action.name}"))


def launch(path: Path | None = None, speed: float = 1.0) -> int:
    """Run the interface, on a recording where ``path`` is given; the process's exit code.

    Raises:
        RecordingError: the recording cannot be read.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        click.echo("taxtui: there is no terminal to draw on; `taxtui run` measures without one", err=True)
        return 2
    for exported in ("COLUMNS", "LINES"):  # Textual takes them for the terminal's size for ever: no resize would show
        os.environ.pop(exported, None)
    app = TaxtuiApp(ReplayFeed(path, speed) if path else None)
    try:
        app.run()
    finally:
        feed = app.feed
        if feed:
            if isinstance(feed, RunFeed) and not feed.over:
                click.echo("taxtui: cancelling the run and removing its sandboxes …", err=True)
            feed.close()
    if feed and feed.state.run_id:
        click.echo(farewell(feed.state, feed.path))
    return app.return_code or 0
