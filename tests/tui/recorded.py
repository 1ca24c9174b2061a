"""Recordings of made-up runs in a test's own folder, as the screens that read files want them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
from textual.pilot import Pilot
from textual.widget import Widget

from taxtui.recording.events import Event, Header
from taxtui.recording.writer import Recorder
from taxtui.tui.app import TaxtuiApp
from tests.support import waiting
from tests.tui import story
from tests.tui.feeds import answers


def record(path: Path, told: list[Event] | None = None, run_id: str = "7f3a0c11") -> Path:
    """Write a story; the usual one has two substrates with 40 trials each."""
    with Recorder(path) as recorder:
        for event in story.run(40) if told is None else told:
            recorder.add(msgspec.structs.replace(event, run_id=run_id) if isinstance(event, Header) else event)
    return path


def looking_at(*paths: Path, against: Path | None = None) -> TaxtuiApp:
    """An app whose Results and Projection are about these."""
    app = TaxtuiApp(None, answers)
    app.chosen, app.against = paths, against
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
