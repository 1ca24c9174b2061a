"""Every action of Live, by its key, on a running app."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from costmodel.recording.events import Event
from costmodel.recording.follower import read_events
from taxtui.live import catalogue
from taxtui.live.cell_state import FACETS
from taxtui.recording.writer import Recorder
from taxtui.tui.dialogs import Choose, Tell
from taxtui.tui.ladder_plot import LadderPlot
from taxtui.tui.live.panels import LogView
from taxtui.tui.live.playback import ReplayBar
from taxtui.tui.live.replay import ReplayFeed
from taxtui.tui.live.screen import LiveScreen
from tests.support.cost_model.climbing import LEVELS, climbed, law
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import SIZE, covers, focus, live, running, until
from tests.taxtui.tui.feeds import StoryRun, app


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[ReplayFeed]:
    path = tmp_path / "story.msgpack"
    with Recorder(path) as recorder:
        for event in story.run():
            recorder.add(event)
    feed = ReplayFeed(path)
    yield feed
    feed.close()


def shown(pilot: Pilot[None]) -> str:
    return pilot.app.export_screenshot().replace("&#160;", " ")


@covers("pause")
async def test_p_pauses_launching_and_resumes() -> None:
    feed = running()
    async with app(feed).run_test(size=SIZE) as pilot:
        await pilot.press("p")
        await pilot.pause()
        assert "PAUSED" in pilot.app.export_screenshot()
        await pilot.press("p")
        assert feed.sent == ["pause", "resume"]


@covers("cancel")
async def test_c_cancels_after_asking() -> None:
    feed = running()
    async with app(feed).run_test(size=SIZE) as pilot:
        await pilot.press("c", "escape")
        assert feed.sent == []
        await pilot.press("c", "y")
        await pilot.pause()
        assert feed.sent == ["cancel"]
        assert "CLEANING UP" in shown(pilot)


@covers("switch(1)", "switch(-1)")
async def test_brackets_page_through_the_facets() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        for facet in (*FACETS[1:], FACETS[0]):
            await pilot.press("right_square_bracket")
            await pilot.pause()
            title = str(pilot.app.screen.query_one("#chart").border_title)
            assert title.startswith(facet.replace("_", " "))
        await pilot.press("left_square_bracket")
        assert live(pilot).facet == len(FACETS) - 1


@covers("view")
async def test_a_ladders_curve_or_one_level(tmp_path: Path) -> None:
    told: list[Event] = []
    read_events(climbed(tmp_path, law(0.05, 0.005, 0.0)), told.append)
    async with app(StoryRun(told)).run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        plot, chart = pilot.app.screen.query_one("#ladder", LadderPlot), pilot.app.screen.query_one("#chart")
        await until(pilot, lambda: plot.display and not chart.display)
        assert [point.at_a_time for point in plot.points] == list(LEVELS)
        assert plot.points[0].actions_per_s == pytest.approx(2 / 0.05)
        await pilot.press("v")
        await until(pilot, lambda: chart.display and not plot.display)
        await pilot.press("v")
        await until(pilot, lambda: plot.display and not chart.display)


@covers("filter")
async def test_slash_filters_while_typing_and_escape_shows_everything() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        log = pilot.app.screen.query_one(LogView)
        everything = len(log.items)
        await pilot.press("slash", *"throttled")
        await pilot.pause()
        assert 0 < len(log.items) < everything
        assert all("Throttled" in line.text for line in log.items)
        await pilot.press("enter")
        assert pilot.app.focused is log
        assert pilot.app.screen.query_one("#filter", Input).display
        await pilot.press("escape")
        await pilot.pause()
        assert len(log.items) == everything
        await pilot.press("slash", "enter")
        assert not pilot.app.screen.query_one("#filter", Input).display


@covers("open")
async def test_enter_on_a_cell_lists_its_slowest_trials_and_on_a_log_line_its_timeline(
    replay: ReplayFeed,
) -> None:
    async with app(replay).run_test(size=SIZE) as pilot:
        replay.seek(1)
        await until(pilot, lambda: replay.over)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Choose))
        assert "Slowest trials · local:bwrap T0×10 exec" in shown(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Tell))
        assert "local:bwrap T0×10 exec · ok" in shown(pilot)
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


async def test_what_was_filtered_in_one_recording_is_not_in_another(replay: ReplayFeed, tmp_path: Path) -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        await pilot.press("slash", *"docker", "enter")
        log = pilot.app.screen.query_one(LogView)
        assert log.wanted == "docker"
        live(pilot).follow(replay)
        await pilot.pause()
        assert log.wanted == ""
        assert not pilot.app.screen.query_one("#filter").display


@covers("faster(1)", "faster(-1)")
async def test_comma_and_full_stop_change_the_replay_speed(replay: ReplayFeed) -> None:
    async with app(replay).run_test(size=SIZE) as pilot:
        await pilot.press("full_stop")
        assert replay.speed == 2.0
        await pilot.press("comma", "comma")
        assert replay.speed == 0.5
        await pilot.press(*["full_stop"] * 9)
        assert replay.speed == 0.0  # as fast as possible
        await until(pilot, lambda: replay.over)
        assert "REPLAY END" in shown(pilot)


@covers("adjust(1)", "adjust(-1)")
@pytest.mark.parametrize("widget", ["#cells", "#log"])
async def test_arrows_seek_whatever_has_the_focus(replay: ReplayFeed, widget: str) -> None:
    replay.pause()
    async with app(replay).run_test(size=SIZE) as pilot:
        replay.seek(1)  # so that the log scrolls
        await focus(pilot, pilot.app.screen.query_one(widget))
        await until(pilot, lambda: replay.over)
        for key, share in [("left", 0.95), ("left", 0.9), ("right", 0.95), ("right", 1.0), ("right", 1.0)]:
            await pilot.press(key)
            await pilot.pause()
            assert replay.standing.share == pytest.approx(share, abs=1e-6)
            assert replay.standing.over == (share == 1.0)


@covers("go_to")
async def test_g_goes_to_a_place_that_is_typed(replay: ReplayFeed) -> None:
    replay.pause()
    async with app(replay).run_test(size=SIZE) as pilot:
        for text, at_s in [("0:02", 2.0), ("50%", replay.standing.length_ns / 2e9)]:
            await pilot.press("g", *text, "enter")
            there = pytest.approx(at_s, abs=1e-6)  # folded in slices, between which keys are answered
            await until(pilot, lambda there=there: replay.standing.at_ns / 1e9 == there)
            live(pilot)
        await pilot.press("g", *"#6", "enter")
        await until(pilot, lambda: replay.state.log[-1].trial == 6)
        await pilot.press("g", *"tomorrow", "enter")
        await pilot.press("g", *"#999", "enter")
        await pilot.press("g", "escape")
        await pilot.pause()
        assert [note.message for note in pilot.app._notifications] == [
            '"tomorrow" is no place in a recording; write 2:10, 1:02:10, 50% or #158',
            "no such trial has ended in this recording",
        ]
        assert replay.state.log[-1].trial == 6


async def test_the_bar_can_be_clicked(replay: ReplayFeed) -> None:
    async with app(replay).run_test(size=SIZE) as pilot:
        bar = pilot.app.screen.query_one(ReplayBar)
        await pilot.click(bar, offset=(1, 0))
        assert replay.paused
        for column, low, high in ((60, 0.8, 1), (40, 0.4, 0.8)):
            await pilot.click(bar, offset=(column, 0))
            await pilot.pause()
            assert low < replay.standing.share < high
        before = replay.standing.share
        await pilot.click(bar, offset=(79, 0))
        await pilot.pause()
        assert replay.standing.share == before


async def test_replay_keys_are_text_in_the_filter(replay: ReplayFeed) -> None:
    replay.pause()
    async with app(replay).run_test(size=SIZE) as pilot:
        replay.seek(1)
        await until(pilot, lambda: replay.over)
        await pilot.press("slash", *"Sg0", "left", "s", "home", "x", "end", "backspace", "y")
        await pilot.pause()
        assert pilot.app.screen.query_one("#filter", Input).value == "xSgsy"
        assert replay.over


async def test_a_scrollbar_that_appears_stands_where_the_list_does() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        log = pilot.app.screen.query_one(LogView)
        await until(pilot, lambda: log.scroll_y)
        log.show_vertical_scrollbar = False
        log.scroll_to(y=1, animate=False, immediate=True, force=True)
        log.show_vertical_scrollbar = True
        assert log.vertical_scrollbar.position == log.scroll_y == 1


async def test_a_run_has_no_bar_and_its_lists_keep_their_keys() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        log = pilot.app.screen.query_one(LogView)
        assert not pilot.app.screen.query_one(ReplayBar).display
        await focus(pilot, log)
        await until(pilot, lambda: log.scroll_offset.y)  # it has been laid out and shows its end
        await pilot.press("home")
        await pilot.pause()
        assert log.scroll_offset.y == 0
        await pilot.press("end", "g", "s", "S", "left", "right")
        await pilot.pause()
        assert log.scroll_offset.y == log.max_scroll_y > 0
        live(pilot)


async def test_a_replay_that_stands_still_is_not_painted_again(
    replay: ReplayFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay.pause()
    async with app(replay).run_test(size=SIZE) as pilot:
        screen = live(pilot)
        for _ in range(3):
            screen.tick()
            await pilot.pause()
        painted = []
        monkeypatch.setattr(screen, "paint", lambda: painted.append(replay.standing.share))
        screen.tick()
        assert painted == []
        await pilot.press("right")
        await pilot.pause()
        assert painted[-1] > 0
        await pilot.press("t")
        await pilot.pause()
        assert len(painted) > 1


async def test_frames_of_a_run_wait_until_their_share_has_paid_for_the_last_and_folding_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    feed = running()
    monkeypatch.setattr("taxtui.tui.live.screen.RARELY_S", 1000)
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
        await pilot.press("right_square_bracket")  # a key does not wait
        assert painted
        monkeypatch.undo()
        monkeypatch.setattr("taxtui.tui.live.screen.RARELY_S", 0)
        screen.paint()
        await pilot.pause()
        monkeypatch.setattr(screen, "paint", painted.clear)
        screen.look()
        assert painted == []


async def test_another_replay_takes_the_place_of_one_that_goes_on(replay: ReplayFeed, tmp_path: Path) -> None:
    other = tmp_path / "other.msgpack"
    other.write_bytes(replay.path.read_bytes())
    async with app(replay).run_test(size=SIZE) as pilot:
        await live(pilot).taxtui.replay(other)
        live(pilot).tick()
        await pilot.pause()
        followed = live(pilot).feed
        assert followed is not None
        assert followed.path == other
        followed.close()


@covers("copy")
async def test_y_copies_the_command_that_prints_the_report() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        await pilot.press("y")
        assert pilot.app.clipboard == f"taxtui report {catalogue.shown(live(pilot).feed.path)}"  # type: ignore[union-attr]


@covers("page")
async def test_h_writes_the_page_of_the_recording(replay: ReplayFeed) -> None:
    async with app(replay).run_test(size=SIZE) as pilot:
        await pilot.press("h")
        await until(pilot, lambda: any(note.title == "Page written" for note in pilot.app._notifications))
    assert replay.path.with_suffix(".html").read_text().startswith("<!doctype html>")
