"""Shared parts of the tests of screens: feeds, waiting, and screens by type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.widget import Widget

from taxtui.tui.app import TaxtuiApp
from taxtui.tui.live.screen import LiveScreen
from taxtui.tui.numbered_screen import NumberedScreen
from taxtui.tui.projection.screen import ProjectionScreen
from taxtui.tui.recordings.screen import RecordingsScreen
from taxtui.tui.results.screen import ResultsScreen
from taxtui.tui.setup.screen import SetupScreen
from tests.support import waiting
from tests.taxtui.tui import story
from tests.taxtui.tui.feeds import StoryRun, answers

SIZE = (80, 24)


def running() -> StoryRun:
    return StoryRun(story.run(20, until=10, finish=False))


def finished() -> StoryRun:
    return StoryRun(story.run(20), exit_code=0)


def live(pilot: Pilot[None]) -> LiveScreen:
    screen = pilot.app.screen
    assert isinstance(screen, LiveScreen)
    return screen


def setup(pilot: Pilot[None]) -> SetupScreen:
    screen = pilot.app.screen
    assert isinstance(screen, SetupScreen)
    return screen


class Nothing(NumberedScreen):
    """Where an app begins that a test looks at elsewhere; Setup would first be filled in."""

    scope = "setup"
    CSS_PATH = None

    def contents(self) -> ComposeResult:
        yield from ()

    foot = contents


def looking_at(*paths: Path) -> TaxtuiApp:
    """An app whose Results and Projection are about these; it has no Setup."""
    app = TaxtuiApp(None, answers)
    app.get_default_screen = Nothing  # type: ignore[method-assign]
    app.chosen = paths
    return app


async def until(pilot: Pilot[None], holds: Callable[[], object]) -> None:
    """Let the app work until something holds: what is computed in a thread comes when it comes."""
    while not holds():
        waiting.still("what the app was to come to")
        await pilot.pause(0.02)
    await pilot.pause()


async def focus(pilot: Pilot[None], widget: Widget) -> None:
    """Focus a widget; a key that is pressed before Textual has got round to it goes to another."""
    widget.focus()
    await until(pilot, lambda: widget.has_focus)


async def shown(pilot: Pilot[None]) -> None:
    """Nothing is being read, computed or verified any more."""
    await pilot.pause()
    screen = pilot.app.screen
    if isinstance(screen, ResultsScreen | ProjectionScreen):
        await until(pilot, lambda: screen.settled)
    if isinstance(screen, RecordingsScreen):
        await until(pilot, lambda: screen.listing is not None)
    await pilot.pause()
