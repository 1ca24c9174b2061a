"""The app: screens, one measurement or recording on Live, and the chosen recordings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from textual import work
from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from taxtui.terminal_text import clean_lines
from taxtui.tui import actions
from taxtui.tui.numbered_screen import MINIMUM, NumberedScreen

if TYPE_CHECKING:
    from textual.notifications import SeverityLevel

    from taxtui.tui.live.feed import RunStarter
    from taxtui.tui.live.replay import Feed
    from taxtui.tui.setup.lookups import Checker

# Methods import modules that the first screen does not need, for a fast first frame.

FIRST: Final = actions.SCREENS[0]


def make_screen(tab: actions.NumberedTab) -> NumberedScreen:
    """Import and make a screen, on the first visit."""
    module = import_module(f"taxtui.tui.{tab.scope}.screen")
    return cast("NumberedScreen", getattr(module, tab.screen)())


class TaxtuiApp(App[None]):
    """The screens and their keys."""

    CSS_PATH = ["app.tcss", f"{FIRST.scope}/screen.tcss"]  # noqa: RUF012  # one parse for both before the first frame
    TITLE = "taxtui"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        *actions.bindings("app"),
        # With priority the focus moves before the app delivers the next key.
        Binding("tab", "focus_next", "Focus next", show=False, priority=True),
        Binding("shift+tab", "focus_previous", "Focus previous", show=False, priority=True),
    ]
    MODES: ClassVar = {tab.scope: partial(make_screen, tab) for tab in actions.SCREENS if tab != FIRST}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (MINIMUM[0], "-normal"), (120, "-wide")]  # noqa: RUF012  # Textual declares them per instance
    VERTICAL_BREAKPOINTS = [(0, "-low"), (MINIMUM[1], "-medium"), (30, "-high")]  # noqa: RUF012  # Textual declares them per instance

    def __init__(self, feed: Feed | None = None, checker: Checker | None = None) -> None:
        """Open on Live where there is a feed, else on the first screen; ``checker`` checks substrates."""
        self.DEFAULT_MODE = "live" if feed else FIRST.scope  # type: ignore[misc]  # Textual reads it per instance
        super().__init__()
        self.feed, self.checker = feed, checker
        self.chosen: tuple[Path, ...] = ()
        self._leaving = False

    def get_default_screen(self) -> Screen[Any]:
        return make_screen(FIRST)

    def on_mount(self) -> None:
        self.add_mode(FIRST.scope, partial(make_screen, FIRST))
        if isinstance(self.screen, NumberedScreen):
            self.screen.arrive()

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Notify as ``App.notify`` does, without markup: a message may quote any text."""
        message, title = clean_lines(message), clean_lines(title)
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=False)

    async def action_go(self, scope: actions.Scope) -> None:
        if isinstance(self.screen, NumberedScreen):
            self.screen.leave(scope)
        await self.switch_mode(scope)
        if isinstance(self.screen, NumberedScreen):
            self.screen.arrive()

    def action_help(self) -> None:
        if isinstance(self.screen, NumberedScreen):
            from taxtui.tui.dialogs import help_dialog

            self.push_screen(help_dialog(self.screen.scope))

    def action_help_quit(self) -> None:
        """Say which key quits, on ctrl+c."""
        self.notify("ctrl+q quits; ctrl+c copies")

    def subject(self, *, succeeded: bool = False) -> tuple[Path, ...]:
        """Return the recordings of Results and Projection: the chosen, else Live's, else the newest.

        With ``succeeded``, the newest with a successful trial, for a projection.
        """
        if self.chosen:
            return self.chosen
        if self.feed and self.feed.path.exists():
            return (self.feed.path,)
        from taxtui.live import catalogue

        newest = catalogue.newest(succeeded=succeeded)
        return (newest,) if newest else ()

    async def replay(self, path: Path) -> None:
        """Open a recording on Live. Raises ``RecordingError``: the file is not a recording."""
        from taxtui.tui.live.replay import ReplayFeed

        feed = ReplayFeed(path)
        if self.take(feed):
            await self.switch_mode("live")
            cast("NumberedScreen", self.screen).arrive()

    def take(self, feed: Feed) -> bool:
        """Show this feed on Live; refuse during a measurement."""
        if self.running:
            feed.close()
            self.notify("a measurement is running; cancel it first (2, then c)", severity="warning")
            return False
        if self.feed:
            self.feed.close()
        self.feed, self.chosen = feed, ()
        return True

    @property
    def running(self) -> bool:
        return self.feed is not None and self.feed.live and not self.feed.over

    @cached_property
    def launcher(self) -> RunStarter:
        """The thread for new processes; the first use must precede a change of priority."""
        from taxtui.tui.live.feed import RunStarter

        return RunStarter()

    async def launch_run(self, scenario: dict[str, Any] | str, options: Sequence[str] = ()) -> None:
        """Start a measurement in a child process, and show Live."""
        if self.running:
            self.notify("a measurement is running; cancel it first (2, then c)", severity="warning")
            return
        from taxtui import folders
        from taxtui.errors import TaxtuiError
        from taxtui.tui.live.feed import RunFeed

        try:
            path = folders.new_recording(folders.new_run_id())
            self.take(RunFeed(scenario, path, self.launcher, options))
        except (TaxtuiError, OSError) as error:  # no folder to write to, no room, no more processes
            self.notify(str(error), title="The measurement did not start", severity="error", timeout=10)
            return
        self.launcher.yield_cpu()
        await self.action_go("live")

    def run_ended(self) -> None:
        if self._leaving:
            self.exit()

    @work
    async def action_quit(self) -> None:  # type: ignore[override]  # a worker, because it asks
        """Leave; a running measurement is cancelled and cleaned up first."""
        if not self.running:
            self.exit()
            return
        from taxtui.tui.dialogs import Confirm
        from taxtui.tui.live.feed import RunFeed

        body = "A measurement is running. Leaving cancels it and removes every sandbox first."
        if await self.push_screen_wait(Confirm("Quit?", body, "Cancel it and quit", "Stay")):
            if not self.running:  # the measurement ended before the answer
                self.exit()
                return
            self._leaving = True
            if isinstance(self.feed, RunFeed):
                self.feed.cancel()
            await self.action_go("live")
