"""Every action of Live, by its key, on a running app."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from taxtui.live import catalogue
from taxtui.live.cell_state import FACETS
from taxtui.tui.chart import Chart
from taxtui.tui.dialogs import Choose, Tell
from taxtui.tui.live.panels import LogView
from taxtui.tui.live.replay import ReplayFeed
from taxtui.tui.live.screen import LiveScreen
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import SIZE, covers, focus, live, running, until
from tests.taxtui.tui.feeds import StoryRun, app
from tests.taxtui.tui.story import record


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[ReplayFeed]:
    feed = ReplayFeed(record(tmp_path / "story.msgpack", story.run()))
    yield feed
    feed.close()


def shown(pilot: Pilot[None]) -> str:
    return pilot.app.export_screenshot().replace("&#160;", " ")


@covers("pause", "cancel", "copy")
async def test_a_measurement_is_paused_and_cancelled_and_its_report_copied() -> None:
    feed = running()
    async with app(feed).run_test(size=SIZE) as pilot:
        await pilot.press("y")
        assert pilot.app.clipboard == f"taxtui report {catalogue.shown(feed.path)}"
        await pilot.press("p")
        await pilot.pause()
        assert "PAUSED" in shown(pilot)
        await pilot.press("p", "c", "escape")
        assert feed.sent == ["pause", "resume"]
        await pilot.press("c", "y")
        await pilot.pause()
        assert feed.sent == ["pause", "resume", "cancel"]
        assert "CLEANING UP" in shown(pilot)


@covers("switch(1)", "switch(-1)")
async def test_brackets_show_each_duration() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        for facet in (*FACETS[1:], FACETS[0]):
            await pilot.press("right_square_bracket")
            await pilot.pause()
            title = str(pilot.app.screen.query_one("#chart").border_title)
            assert title.startswith(facet.replace("_", " "))
        await pilot.press("left_square_bracket")
        assert live(pilot).facet == len(FACETS) - 1


@covers("view")
async def test_v_shows_all_substrates_with_the_workload_and_a_large_terminal_shows_both_charts() -> None:
    names = ("local", "docker", "ec2")
    told = [story.header([story.planned(name, trials=4) for name in names]), story.clock()]
    for number in range(12):
        told += story.trial(number, number % 3, number * 10**9, create_ns=(1 + number % 3) * 40 * story.MS)
    async with app(StoryRun(told)).run_test(size=(160, 50)) as pilot:
        await pilot.pause()
        chart, overlay = (pilot.app.screen.query_one(name, Chart) for name in ("#chart", "#overlay"))
        assert chart.display
        assert overlay.display
        assert [curve.name for curve in overlay.curves] == ["○ local n=4", "● docker n=4", "■ ec2 n=4"]
        assert [curve.points[-1][1] for curve in overlay.curves] == [1, 1, 1]
        await pilot.resize_terminal(*SIZE)
        await until(pilot, lambda: not overlay.display)
        assert "v: all 3" in str(chart.border_title)
        await pilot.press("v")
        await until(pilot, lambda: overlay.display and not chart.display)


@covers("filter")
async def test_slash_filters_the_log_of_one_recording(replay: ReplayFeed) -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        log, field = pilot.app.screen.query_one(LogView), pilot.app.screen.query_one("FilterField", Input)
        everything = len(log.items)
        await pilot.press("slash", *"throttled")
        await pilot.pause()
        assert 0 < len(log.items) < everything
        assert all("Throttled" in line.text for line in log.items)
        await pilot.press("enter")
        assert pilot.app.focused is log
        assert field.display
        await pilot.press("escape")
        await pilot.pause()
        assert len(log.items) == everything
        await pilot.press("slash", "enter")
        assert not field.display
        await pilot.press("slash", *"docker", "enter")
        live(pilot).follow(replay)
        await pilot.pause()
        assert live(pilot).filter_text == ""
        assert not field.display


@covers("open", "page")
async def test_enter_shows_the_slowest_trials_of_a_cell_and_the_timeline_of_a_log_line(replay: ReplayFeed) -> None:
    async with app(replay).run_test(size=SIZE) as pilot:
        await until(pilot, lambda: replay.over)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Choose))
        assert "Slowest trials · local:bwrap T0 x 10 exec" in shown(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Tell))
        assert "local:bwrap T0 x 10 exec · ok" in shown(pilot)
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
        assert f"Trial #{log.items[failed].trial}" in shown(pilot)
        assert "Throttled: 429, waited 4 s" in shown(pilot)
        await pilot.press("escape", "h")
        await until(pilot, lambda: any(note.title == "Page written" for note in pilot.app._notifications))
    assert replay.path.with_suffix(".html").read_text().startswith("<!doctype html>")


async def test_the_log_stays_at_its_end_until_a_person_scrolls() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        log = pilot.app.screen.query_one(LogView)
        await focus(pilot, log)
        await until(pilot, lambda: log.scroll_offset.y)
        await pilot.press("home")
        await pilot.pause()
        assert log.scroll_offset.y == 0
        await pilot.press("end")
        await pilot.pause()
        assert log.scroll_offset.y == log.max_scroll_y > 0
        log.show_vertical_scrollbar = False
        log.scroll_to(y=1, animate=False, immediate=True, force=True)
        log.show_vertical_scrollbar = True
        assert log.vertical_scrollbar.position == log.scroll_y == 1


async def test_frames_of_a_measurement_wait_for_their_share_of_a_core_but_events_and_keys_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    feed = running()
    monkeypatch.setattr("taxtui.tui.live.screen.MAX_FRAME_GAP_S", 1000)
    monkeypatch.setattr("taxtui.tui.live.screen.CPU_SHARE", 1e-9)
    async with app(feed).run_test(size=SIZE) as pilot:
        screen = live(pilot)
        await pilot.pause()
        painted = []
        monkeypatch.setattr(screen, "paint", lambda: painted.append(feed.state.now_unix_ns))
        before = feed.state.now_unix_ns
        feed.goes_on(story.run(20)[-200:])
        screen.look()
        assert feed.state.now_unix_ns > before
        assert painted == []
        await pilot.press("right_square_bracket")
        assert painted


async def test_a_replay_can_be_paused_and_another_recording_can_take_its_place(tmp_path: Path) -> None:
    feed = ReplayFeed(record(tmp_path / "story.msgpack", story.run()), speed=1.0)
    other = tmp_path / "other.msgpack"
    other.write_bytes(feed.path.read_bytes())
    async with app(feed).run_test(size=SIZE) as pilot:
        await pilot.press("p")
        await pilot.pause()
        assert feed.paused
        assert "REPLAY ‖ 1×" in shown(pilot)
        await live(pilot).taxtui.replay(other)
        await until(pilot, lambda: "REPLAY END" in shown(pilot))
        followed = live(pilot).feed
        assert followed is not None
        assert followed.path == other
        followed.close()
