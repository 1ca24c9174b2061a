"""The Recordings screen with a few recordings on it: what its tests share."""

from __future__ import annotations

import os
from pathlib import Path

from textual.pilot import Pilot

from taxtui.tui.app import TaxtuiApp
from taxtui.tui.recordings.list import RecordingList
from taxtui.tui.recordings.screen import RecordingsScreen
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import until
from tests.taxtui.tui.story import record


def filled(folder: Path) -> Path:
    """The folder with three recordings, a and b and c from the newest to the oldest."""
    for number, name in enumerate("cba"):
        run = story.run(4, finish=name != "b")
        run[1] = story.clock(unix_ns=story.UNIX_NS + number * 10**9)
        path = record(folder / f"{name}.msgpack", run)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return folder


def here(pilot: Pilot[None]) -> RecordingsScreen:
    screen = pilot.app.screen
    assert isinstance(screen, RecordingsScreen)
    return screen


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
