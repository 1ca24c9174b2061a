"""What the tests of actions share: runs to look at, the screen as its own type, and which actions have a test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from textual.pilot import Pilot

from taxtui.tui.live.screen import LiveScreen
from taxtui.tui.setup.screen import SetupScreen
from tests.tui import story
from tests.tui.feeds import StoryRun

SIZE = (80, 24)
TESTED: set[tuple[str, str]] = set()


def covers(scope: str, *names: str) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., Awaitable[None]]]:
    TESTED.update((scope, name) for name in names)
    return lambda function: function


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
