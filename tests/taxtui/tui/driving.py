"""Shared parts of the tests of screens: feeds, waiting, and screens by type."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from msgspec import structs
from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.widget import Widget

from costmodel.recording.events import Event
from taxtui.live.state import RunState
from taxtui.report.plan_cost import CheckedSubstrate
from taxtui.tui.app import TaxtuiApp
from taxtui.tui.live.feed import RunFeed
from taxtui.tui.live.replay import Feed
from taxtui.tui.live.screen import LiveScreen
from taxtui.tui.numbered_screen import NumberedScreen
from taxtui.tui.projection.screen import ProjectionScreen
from taxtui.tui.recordings.list import RecordingList
from taxtui.tui.recordings.screen import RecordingsScreen
from taxtui.tui.results.screen import ResultsScreen
from taxtui.tui.setup.screen import SetupScreen
from tests.support import waiting
from tests.taxtui.tui import story
from tests.taxtui.tui.story import MS

SIZE = (80, 24)
T = TypeVar("T")


def running() -> StoryRun:
    return StoryRun(story.run(20, until=10, finish=False))


def finished() -> StoryRun:
    return StoryRun(story.run(20), exit_code=0)


def on(pilot: Pilot[None], kind: type[T]) -> T:
    """The screen, which must be of this kind."""
    screen = pilot.app.screen
    assert isinstance(screen, kind)
    return screen


live = functools.partial(on, kind=LiveScreen)
setup = functools.partial(on, kind=SetupScreen)
results = functools.partial(on, kind=ResultsScreen)
projection = functools.partial(on, kind=ProjectionScreen)
here = functools.partial(on, kind=RecordingsScreen)


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


def checked(name: str, *, ok: bool = True, **more: Any) -> CheckedSubstrate:
    return CheckedSubstrate(name=name, ok=ok, **more)


ANSWERS = {
    "local": checked(
        "local", detail="ready, bubblewrap 0.8.0, limits: cgroup v2", variant="bwrap", latency_ns=6_000_000
    ),
    "docker": checked("docker", detail="ready, 27.1, runc", variant="runc", latency_ns=3 * MS),
    "ec2": checked("ec2", ok=False, detail="credentials expired", fix="aws sso login"),
    "daytona": checked("daytona", detail="key ok", capabilities={"paid": True}),
}


async def answers(refs: Sequence[str] = ()) -> Mapping[str, CheckedSubstrate]:
    """As the substrates of ``ANSWERS`` would say; options change nothing."""
    return {ref: structs.replace(ANSWERS[ref.partition(":")[0]], name=ref) for ref in refs} or ANSWERS


PRICED = {
    **ANSWERS,
    "ecs": checked(
        **{"name": "ecs", "variant": "fargate", "prices": "aws-fargate", "capabilities": {"paid": True}},
        detail="ready as me in us-east-1; 0.049 USD per sandbox-hour, 60 s at least: --prices aws-fargate",
    ),
}


async def priced(refs: Sequence[str]) -> Mapping[str, CheckedSubstrate]:
    return PRICED


class StoryRun(RunFeed):
    """A run whose child is a list of events: all of them are there at the first look, or after ``goes_on``."""

    size_bytes = 123_456  # type: ignore[assignment]
    exit_code: int | None = None  # type: ignore[assignment]
    complaint: list[str] = []  # type: ignore[assignment]

    def __init__(self, told: list[Event], *, exit_code: int | None = None) -> None:
        self.path = Path("no-such-folder/story.msgpack")
        self.state = RunState()
        self.paused = self.cancelled = False
        self.sent: list[str] = []
        self._told: list[Event] = []
        self.goes_on(told, exit_code=exit_code)

    def goes_on(self, told: list[Event], *, exit_code: int | None = None) -> None:
        self._told += told
        self.exit_code = exit_code

    def advance(self) -> bool:
        for event in self._told:
            self.state.apply(event)
        self._told.clear()
        return False

    @property
    def over(self) -> bool:
        return self.exit_code is not None and not self._told

    def _send(self, op: str) -> None:
        self.sent.append(op)

    def close(self) -> None:
        """There is no child to end."""


def app(feed: Feed | None = None) -> TaxtuiApp:
    return TaxtuiApp(feed, answers)


async def open_shelf(pilot: Pilot[None]) -> RecordingsScreen:
    await pilot.press("5")
    screen = here(pilot)
    await until(pilot, lambda: screen.listing is not None)
    return screen


def names(screen: RecordingsScreen) -> list[str]:
    return [entry.name for entry in screen.query_one(RecordingList).items]


def said(pilot: Pilot[None]) -> str:
    return "\n".join(note.message for note in pilot.app._notifications)


def taxtui(pilot: Pilot[None]) -> TaxtuiApp:
    assert isinstance(pilot.app, TaxtuiApp)
    return pilot.app


def text(pilot: Pilot[None]) -> str:
    strips = pilot.app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)
