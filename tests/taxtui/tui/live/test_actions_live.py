"""Every action of Live, by its key, on a running app."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from taxtui.live import catalogue
from taxtui.live.cell_state import FACETS
from taxtui.tui.dialogs import Choose, Tell
from taxtui.tui.live.chart import Chart
from taxtui.tui.live.panels import LogView
from taxtui.tui.live.replay import ReplayFeed
from taxtui.tui.live.screen import LiveScreen
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import SIZE, app, focus, live, running, text, until
from tests.taxtui.tui.story import record


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[ReplayFeed]:
    feed = ReplayFeed(record(tmp_path / "story.msgpack", story.run()))
    yield feed
    feed.close()


async def test_a_measurement_is_shown_by_durations_paused_and_cancelled_and_its_report_copied() -> None:
    feed = running()
    async with app(feed).run_test(size=SIZE) as pilot:
        chart = pilot.app.screen.query_one(Chart)
        await until(pilot, lambda: chart.curves)
        assert [curve.name for curve in chart.curves] == ["○ local:bwrap", "● docker:runc"]
        for facet in (*FACETS[1:], FACETS[0]):
            await pilot.press("right_square_bracket")
            await pilot.pause()
            assert str(chart.border_title).startswith(facet.replace("_", " "))
        await pilot.press("left_square_bracket")
        assert live(pilot).facet == len(FACETS) - 1
        await pilot.press("y")
        assert pilot.app.clipboard == f"taxtui report {catalogue.path_text(feed.path)}"
        await pilot.press("p")
        await pilot.pause()
        assert "PAUSED" in text(pilot)
        await pilot.press("p", "c", "escape")
        assert feed.sent == ["pause", "resume"]
        await pilot.press("c", "y")
        await pilot.pause()
        assert feed.sent == ["pause", "resume", "cancel"]
        assert "CLEANING UP" in text(pilot)


async def test_enter_shows_the_slowest_trials_of_a_cell_and_the_timeline_of_a_log_line(replay: ReplayFeed) -> None:
    async with app(replay).run_test(size=SIZE) as pilot:
        await until(pilot, lambda: replay.over)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Choose))
        assert "Slowest trials · local:bwrap T0 x 10 exec" in text(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Tell))
        assert "local:bwrap T0 x 10 exec · ok" in text(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, Choose))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, LiveScreen))
        log = pilot.app.screen.query_one(LogView)
        await focus(pilot, log)
        assert log.chosen is log.items[-1]  # the newest
        failed = next(n for n, line in enumerate(log.items) if line.level == "error")
        log.put(failed)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Tell))
        assert f"Trial #{log.items[failed].trial}" in text(pilot)
        assert "Throttled: 429, waited 4 s" in text(pilot)
        await pilot.press("escape", "h")
        await until(pilot, lambda: any(note.title == "Page written" for note in pilot.app._notifications))
    assert replay.path.with_suffix(".html").read_text().startswith("<!doctype html>")
