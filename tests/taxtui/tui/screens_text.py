"""When a screen shows what it has to show."""

from __future__ import annotations

from textual.pilot import Pilot

from taxtui.tui.projection.screen import ProjectionScreen
from taxtui.tui.recordings.screen import RecordingsScreen
from taxtui.tui.results.screen import ResultsScreen
from tests.taxtui.tui.driving import until


async def shown(pilot: Pilot[None]) -> None:
    """Nothing is being read, computed or verified any more."""
    await pilot.pause()
    screen = pilot.app.screen
    if isinstance(screen, ResultsScreen | ProjectionScreen):
        await until(pilot, lambda: screen.settled)
    if isinstance(screen, RecordingsScreen):
        await until(pilot, lambda: screen.listing is not None)
    await pilot.pause()
