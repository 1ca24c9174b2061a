"""Every action of Recordings, by its key and by the mouse, on a running app."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from taxtui.tui.dialogs import Confirm
from taxtui.tui.live.screen import LiveScreen
from taxtui.tui.recordings.list import RecordingFacts, RecordingList
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import SIZE, covers, until
from tests.taxtui.tui.feeds import StoryRun, app
from tests.taxtui.tui.shelf import names, open_shelf, taxtui, text
from tests.taxtui.tui.story import record


@covers("go('recordings')")
async def test_5_lists_the_recordings_and_the_facts_of_the_one_under_the_cursor(shelf: Path) -> None:
    async with app().run_test(size=SIZE) as pilot:
        screen = await open_shelf(pilot)
        assert names(screen) == ["a", "b", "c"]
        assert "recordings/a.msgpack" in text(pilot)
        await pilot.press("down")
        await pilot.pause()
        assert "recordings/b.msgpack" in text(pilot)
        assert "the end of the run is missing" in text(pilot)
        await pilot.press("end")
        assert screen.chosen is not None
        assert screen.chosen.name == "c"


@covers("open")
async def test_enter_replays(shelf: Path) -> None:
    async with app().run_test(size=SIZE) as pilot:
        await open_shelf(pilot)
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, LiveScreen))
        feed = taxtui(pilot).feed
        assert feed is not None
        assert feed.path == shelf / "b.msgpack"
        feed.close()


async def test_the_mouse_chooses_marks_and_with_two_clicks_replays(shelf: Path) -> None:
    async with app().run_test(size=SIZE) as pilot:
        screen = await open_shelf(pilot)
        await pilot.click(RecordingList, offset=(20, 1))  # the heading
        assert names(screen)[screen.query_one(RecordingList).cursor] == "a"
        await pilot.click(RecordingList, offset=(20, 3))
        assert screen.chosen is not None
        assert screen.chosen.name == "b"
        assert not screen.marks
        await pilot.click(RecordingList, offset=(3, 4))
        await pilot.pause()
        assert screen.marks == {shelf / "c.msgpack"}
        await pilot.double_click(RecordingList, offset=(20, 2))
        await until(pilot, lambda: isinstance(pilot.app.screen, LiveScreen))
        feed = taxtui(pilot).feed
        assert feed is not None
        assert feed.path == shelf / "a.msgpack"
        feed.close()


@pytest.mark.parametrize(("key", "scope"), [("4", "projection"), ("3", "results")])
async def test_3_and_4_show_the_one_under_the_cursor(shelf: Path, key: str, scope: str) -> None:
    async with app().run_test(size=(120, 40)) as pilot:
        await open_shelf(pilot)
        await pilot.press("down", key)
        await until(pilot, lambda: getattr(pilot.app.screen, "scope", "") == scope)
        assert taxtui(pilot).chosen == (shelf / "b.msgpack",)


@covers("mark")
async def test_space_marks_and_the_marked_are_pooled(shelf: Path) -> None:
    async with app().run_test(size=(120, 40)) as pilot:
        screen = await open_shelf(pilot)
        await pilot.press("down", "space", "down", "space", "space", "home", "space")
        assert screen.marks == {shelf / "a.msgpack", shelf / "b.msgpack"}
        assert "2 marked" in text(pilot)
        await pilot.press("end", "3")
        await until(pilot, lambda: getattr(pilot.app.screen, "scope", "") == "results")
        assert taxtui(pilot).chosen == (shelf / "a.msgpack", shelf / "b.msgpack")
        await pilot.press("5")
        await pilot.press("escape")
        assert screen.marks == set()


@covers("delete")
async def test_x_deletes_after_asking(shelf: Path, discarded: list[Path]) -> None:
    async with app().run_test(size=SIZE) as pilot:
        screen = await open_shelf(pilot)
        taxtui(pilot).chosen = (shelf / "a.msgpack", shelf / "b.msgpack")
        await pilot.press("space", "x")
        assert isinstance(pilot.app.screen, Confirm)
        size = (shelf / "a.msgpack").stat().st_size
        assert "recordings/a.msgpack" in text(pilot)
        assert f"{size / 1000:.1f} kB" in text(pilot)
        await pilot.press("n")
        assert discarded == []
        await pilot.press("x", "y")
        await until(pilot, lambda: names(screen) == ["b", "c"])
        assert discarded == [shelf / "a.msgpack"]
        assert screen.marks == set()
        assert taxtui(pilot).chosen == (shelf / "b.msgpack",)


@covers("filter")
async def test_slash_filters_while_typing_and_escape_shows_everything(shelf: Path) -> None:
    async with app().run_test(size=SIZE) as pilot:
        screen = await open_shelf(pilot)
        await pilot.press("down", "slash", *"incompl")
        await pilot.pause()
        assert names(screen) == ["b"]
        await pilot.press("enter")
        assert pilot.app.focused is screen.query_one(RecordingList)
        assert screen.query_one("#wanted", Input).display
        await pilot.press("slash", "z")
        await pilot.pause()
        assert names(screen) == []
        assert "no recording contains z" in text(pilot)
        assert not screen.query_one(RecordingFacts).display
        await pilot.press("escape")
        await pilot.pause()
        assert names(screen) == ["a", "b", "c"]
        await pilot.press("slash", "enter")
        assert not screen.query_one("#wanted", Input).display


@covers("renew")
async def test_r_finds_what_is_new_and_the_cursor_stays_on_its_recording(shelf: Path) -> None:
    async with app().run_test(size=SIZE) as pilot:
        screen = await open_shelf(pilot)
        await pilot.press("down")
        run = story.run(2)
        run[1] = story.clock(unix_ns=story.UNIX_NS + 10**12)
        record(shelf / "new.msgpack", run)
        await pilot.press("r")
        await until(pilot, lambda: names(screen) == ["new", "a", "b", "c"])
        assert screen.chosen is not None
        assert screen.chosen.name == "b"


async def test_the_list_follows_a_run_by_itself(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = StoryRun(story.run(20, until=10, finish=False))
    feed.path = shelf / "b.msgpack"
    async with app(feed).run_test(size=SIZE) as pilot:
        screen = await open_shelf(pilot)
        feed.goes_on([], exit_code=0)
        screen._look_again()
        await until(pilot, lambda: {entry.state for entry in screen.entries} == {"complete", "incomplete"})


@covers("copy")
async def test_y_copies_the_command_line(shelf: Path) -> None:
    async with app().run_test(size=SIZE) as pilot:
        await open_shelf(pilot)
        await pilot.press("y")
        assert pilot.app.clipboard == "taxtui replay recordings/a.msgpack"
