"""The pictures of docs/index.md: the five screens on recordings/run.msgpack, in a terminal of 120 columns.

``make screenshots`` writes them to docs/screens. Every number in them comes from that file, and what Setup says
of the substrates from the machine where it is run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from textual.pilot import Pilot

from taxtui.tui.app import TaxtuiApp
from taxtui.tui.live.replay import ReplayFeed
from taxtui.tui.projection.screen import ProjectionScreen
from taxtui.tui.results.screen import ResultsScreen
from taxtui.tui.setup.screen import SetupScreen

RECORDING: Final = Path("recordings/run.msgpack")
FOLDER: Final = Path("docs/screens")
SIZE: Final = (120, 36)
PATIENCE_S: Final = 120


async def until(pilot: Pilot[None], holds: Callable[[], object]) -> None:
    """Let the app work until something holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        await pilot.pause(0.1)
    await pilot.pause(0.5)


async def visit() -> None:
    """Go through the screens and keep what each shows."""
    app = TaxtuiApp(ReplayFeed(RECORDING))
    async with app.run_test(size=SIZE) as pilot:

        def keep(name: str) -> None:
            (FOLDER / f"{name}.svg").write_text(app.export_screenshot(title="taxtui"), encoding="utf-8")

        await until(pilot, lambda: app.feed and app.feed.over)
        await pilot.press("down")
        await until(pilot, lambda: True)
        keep("live")
        await pilot.press("3")
        results = app.screen
        assert isinstance(results, ResultsScreen)
        await until(pilot, lambda: results.settled)
        keep("results")
        await pilot.press("4")
        projection = app.screen
        assert isinstance(projection, ProjectionScreen)
        await until(pilot, lambda: projection.settled)
        await pilot.press("right", "left", "down")
        await until(pilot, lambda: projection.settled)
        keep("projection")
        await pilot.press("5")
        await until(pilot, lambda: "run" in app.export_screenshot())
        keep("recordings")
        await pilot.press("1")
        setup = app.screen
        assert isinstance(setup, SetupScreen)
        await until(pilot, lambda: len(setup.substrates.answers) >= 6 and setup.history is not None)
        keep("setup")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    asyncio.run(visit())
