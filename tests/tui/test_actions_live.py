"""Every action of Live, by its key, on a running app."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.widgets import Input

from taxtui.cell_state import FACETS
from taxtui.recording import Recorder
from taxtui.tui.feed import ReplayFeed
from taxtui.tui.screens.numbered import NumberedScreen
from taxtui.tui.widgets.log_view import LogView
from tests.tui import story
from tests.tui.driving import SIZE, covers, finished, live, running
from tests.tui.feeds import StoryRun, app


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[ReplayFeed]:
    path = tmp_path / "story.msgpack"
    with Recorder(path) as recorder:
        for event in story.run():
            recorder.add(event)
    feed = ReplayFeed(path)
    yield feed
    feed.close()


@covers("live", "freeze")
async def test_space_freezes_the_view_while_the_run_goes_on() -> None:
    feed = running()
    async with app(feed).run_test(size=SIZE) as pilot:
        await pilot.press("space")
        before = pilot.app.export_screenshot()
        assert "FROZEN" in before
        feed.goes_on(story.run(20)[-200:])
        live(pilot).tick()
        await pilot.pause()
        assert pilot.app.export_screenshot() == before
        await pilot.press("space")
        await pilot.pause()
        assert "FROZEN" not in pilot.app.export_screenshot()


@covers("live", "pause")
async def test_capital_p_pauses_launching_and_resumes() -> None:
    feed = running()
    async with app(feed).run_test(size=SIZE) as pilot:
        await pilot.press("P")
        await pilot.pause()
        assert "PAUSED" in pilot.app.export_screenshot()
        await pilot.press("P")
        assert feed.sent == ["pause", "resume"]


@covers("live", "cancel")
async def test_c_cancels_after_asking() -> None:
    feed = running()
    async with app(feed).run_test(size=SIZE) as pilot:
        await pilot.press("c", "escape")
        assert feed.sent == []
        await pilot.press("c", "y")
        await pilot.pause()
        assert feed.sent == ["cancel"]
        assert "CLEANING UP" in pilot.app.export_screenshot().replace("&#160;", " ")


@covers("live", "facet(1)", "facet(-1)")
async def test_brackets_page_through_the_facets() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        for facet in (*FACETS[1:], FACETS[0]):
            await pilot.press("right_square_bracket")
            await pilot.pause()
            title = str(pilot.app.screen.query_one("#chart").border_title)
            assert title.startswith(facet.replace("_", " "))
        await pilot.press("left_square_bracket")
        assert live(pilot).facet == len(FACETS) - 1


@covers("live", "zoom(1)", "zoom(-1)", "zoom(0)")
async def test_plus_minus_and_a_zoom() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        await pilot.press("plus", "equals_sign")
        assert live(pilot).zoom == 2
        await pilot.press("minus")
        assert live(pilot).zoom == 1
        await pilot.press("a")
        assert live(pilot).zoom == 0


@covers("live", "filter")
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


@covers("live", "errors_only")
async def test_exclamation_mark_shows_errors_only() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        log = pilot.app.screen.query_one(LogView)
        everything = len(log.items)
        await pilot.press("exclamation_mark")
        await pilot.pause()
        assert {line.level for line in log.items} == {"error"}
        await pilot.press("exclamation_mark")
        await pilot.pause()
        assert len(log.items) == everything


@covers("live", "project")
@pytest.mark.parametrize("feed", [running, finished], ids=["running", "finished"])
async def test_p_leads_to_the_projection_of_the_recording(feed: Callable[[], StoryRun]) -> None:
    followed = feed()
    async with app(followed).run_test(size=(120, 40)) as pilot:
        await pilot.press("p")
        await pilot.pause()
        assert isinstance(pilot.app.screen, NumberedScreen)
        assert pilot.app.screen.scope == "projection"
        assert pilot.app.screen.taxtui.subject == (followed.path,)


async def test_p_is_not_offered_where_nothing_was_recorded() -> None:
    refused = StoryRun([], exit_code=3, complaint=("taxtui: no such scenario",))
    async with app(refused).run_test(size=SIZE) as pilot:
        await pilot.press("p")
        await pilot.pause()
        live(pilot)


@covers("live", "faster(1)", "faster(-1)")
async def test_comma_and_full_stop_change_the_replay_speed(replay: ReplayFeed) -> None:
    async with app(replay).run_test(size=SIZE) as pilot:
        await pilot.press("full_stop")
        assert replay.speed == 2.0
        await pilot.press("comma", "comma")
        assert replay.speed == 0.5


@covers("live", "step")
async def test_s_goes_on_to_the_next_trial_of_a_replay_and_stops_there(replay: ReplayFeed) -> None:
    async with app(replay).run_test(size=SIZE) as pilot:
        await pilot.press("s")
        assert replay.paused
        ended = sum(cell.finished + cell.warm_ups for cell in replay.state.cells.values())
        await pilot.press("s")
        assert sum(cell.finished + cell.warm_ups for cell in replay.state.cells.values()) == ended + 1
        await pilot.press("P")
        assert not replay.paused


@covers("live", "copy")
async def test_y_copies_the_percentiles_as_markdown() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        await pilot.press("y")
        lines = pilot.app.clipboard.splitlines()
        assert lines[0] == "| cold start | cell | n | failed | p50 | p95 | p99 |"
        assert lines[2].startswith("| local:bwrap | T0×10 exec c1 | 10 | 0 | ≈")


@covers("live", "export")
async def test_e_writes_an_svg_beside_the_recording_and_never_over_another(replay: ReplayFeed) -> None:
    async with app(replay).run_test(size=SIZE) as pilot:
        await pilot.press("e", "e")
        await pilot.pause()
    first, second = replay.path.with_suffix(".svg"), replay.path.with_suffix(".2.svg")
    assert first.read_text().startswith("<svg")
    assert second.exists()


async def test_export_into_a_folder_that_is_not_there_is_said() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        await pilot.press("e")
        await pilot.pause()
        assert [note.severity for note in pilot.app._notifications] == ["error"]
