"""What the screens share: one run or replay, and the recordings that are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import work
from textual.app import App

from taxtui.terminal_text import clean_lines
from taxtui.tui.actions import Scope

if TYPE_CHECKING:
    from textual.notifications import SeverityLevel

    from taxtui.tui.live.feed import Feed, RunStarter
    from taxtui.tui.setup.availability import Checker

# What no first screen needs is imported by the method that does: the start is that much sooner.


class RunApp(App[None]):
    """An app that launches, replays and leaves; which screens there are is the subclass's business."""

    def __init__(self, feed: Feed | None, checker: Checker | None) -> None:
        """Begin with a run or replay, or without; ``checker`` says whether substrates can be used."""
        super().__init__()
        self.feed, self.checker = feed, checker
        self.chosen: tuple[Path, ...] = ()
        self.against: Path | None = None  # what Results compares with
        self._leaving = False

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """As ``App.notify``; but whatever a message quotes is never markup, wherever it is said."""
        message, title = clean_lines(message), clean_lines(title)
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=False)

    async def action_go(self, scope: Scope) -> None:
        """Go to a screen."""
        raise NotImplementedError

    def subject(self, *, succeeded: bool = False) -> tuple[Path, ...]:
        """The recordings that Results and Projection are about: those chosen, else Live's, else the newest.

        With ``succeeded``, the newest with a trial that did, as every projection needs.
        """
        if self.chosen:
            return self.chosen
        if self.feed and self.feed.path.exists():
            return (self.feed.path,)
        from taxtui.live import catalogue

        newest = catalogue.newest(succeeded=succeeded)
        return (newest,) if newest else ()

    async def look_at(self, paths: Sequence[Path], scope: Scope) -> None:
        """Choose recordings and go to a screen that shows them."""
        self.chosen, self.against = tuple(paths), None
        await self.action_go(scope)

    async def compare(self, path: Path, against: Path) -> None:
        """Show on Results how a recording differs from another."""
        self.chosen, self.against = (path,), against
        await self.action_go("results")

    async def replay(self, path: Path) -> None:
        """Play a recording back on Live. Raises ``RecordingError`` for what is none."""
        from taxtui.tui.live.replay import ReplayFeed

        feed = ReplayFeed(path)
        if self.take(feed):
            await self.action_go("live")

    def take(self, feed: Feed) -> bool:
        """Let Live show this instead; not while a run goes on, which only Live can cancel."""
        if self.running:
            feed.close()
            self.notify("one at a time: a run goes on; cancel it first (2, then c)", severity="warning")
            return False
        if self.feed:
            self.feed.close()
        self.feed, self.chosen, self.against = feed, (), None
        return True

    @property
    def running(self) -> bool:
        """A run goes on."""
        return self.feed is not None and self.feed.live and not self.feed.over

    @cached_property
    def launcher(self) -> RunStarter:
        """Made for the first run, while this thread still has its ordinary priority."""
        from taxtui.tui.live.feed import RunStarter

        return RunStarter()

    async def launch_run(self, scenario: dict[str, Any] | str, options: Sequence[str] = ()) -> None:
        """Start a run in a child process and watch it."""
        if self.running:
            self.notify("one run at a time: cancel the other first (2, then c)", severity="warning")
            return
        from taxtui import folders
        from taxtui.errors import TaxtuiError
        from taxtui.tui.live.feed import RunFeed

        try:
            path = folders.new_recording(folders.new_run_id())
            self.take(RunFeed(scenario, path, self.launcher, options))
        except (TaxtuiError, OSError) as error:  # no folder to write to, no room, no more processes
            self.notify(str(error), title="The run did not start", severity="error", timeout=10)
            return
        self.launcher.yield_cpu()
        await self.action_go("live")

    def run_ended(self) -> None:
        """Leave, if that was only waiting for the run."""
        if self._leaving:
            self.exit()

    @work
    async def action_quit(self) -> None:  # type: ignore[override]  # a worker, because it asks
        """Leave; a run that goes on is cancelled and cleaned up first."""
        if not self.running:
            self.exit()
            return
        from taxtui.tui.dialogs import Confirm
        from taxtui.tui.live.feed import RunFeed

        body = "The run goes on. Leaving cancels it and removes every sandbox first."
        if await self.push_screen_wait(Confirm("Quit?", body, "Cancel the run and quit", "Stay")):
            if not self.running:  # it has ended while the question stood there
                self.exit()
                return
            self._leaving = True
            if isinstance(self.feed, RunFeed):
                self.feed.cancel()
            await self.action_go("live")
