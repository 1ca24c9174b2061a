"""Every action of Recordings, by its key, on a running app; and names in recordings, which every screen shows as text:
no markup, no control character, no end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.pilot import Pilot

from taxtui.live import catalogue
from taxtui.terminal_text import UNPRINTABLE
from taxtui.tui.actions import SCREENS
from taxtui.tui.live.screen import LiveScreen
from taxtui.tui.results.model import TABLES
from tests.support.fuzz import hostile
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import SIZE, StoryRun, app, here, names, open_shelf, said, shown, taxtui, text, until
from tests.taxtui.tui.story import record

WIDE_SCREEN = (118, 30)


async def test_the_list_is_read_again_and_its_recordings_are_opened(shelf: Path) -> None:
    async with app().run_test(size=SIZE) as pilot:
        screen = await open_shelf(pilot)
        assert names(screen) == ["a", "b", "c"]
        await pilot.press("y")
        assert pilot.app.clipboard == "taxtui replay recordings/a.msgpack"
        assert "recordings/a.msgpack" in text(pilot)
        await pilot.press("down")
        await until(pilot, lambda: "the end of the run is missing" in text(pilot))
        run = story.run(2)
        run[1] = story.clock(unix_ns=story.UNIX_NS + 10**12)
        record(shelf / "new.msgpack", run)
        await pilot.press("r")
        await until(pilot, lambda: names(screen) == ["new", "a", "b", "c"])
        assert screen.chosen.name == "b"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, LiveScreen))
        feed = taxtui(pilot).feed
        assert feed.path == shelf / "b.msgpack"
        feed.close()


async def test_3_and_4_show_the_chosen_recording(shelf: Path) -> None:
    async with app().run_test(size=(120, 40)) as pilot:
        await open_shelf(pilot)
        for key, scope in (("4", "projection"), ("3", "results")):
            await pilot.press("home", "down", key)
            await until(pilot, lambda: getattr(pilot.app.screen, "scope", "") == scope)  # noqa: B023  # awaited at once
            assert taxtui(pilot).chosen == (shelf / "b.msgpack",)
            await pilot.press("5")


def test_in_a_clone_the_first_answer_is_about_the_reference(clone: Path) -> None:
    named = sorted(path.stem for path in (clone / "recordings").iterdir())
    assert named == sorted(Path(shipped).stem for shipped in catalogue.SHIPPED)
    assert catalogue.newest(succeeded=True).name == "run.msgpack"


async def test_during_a_measurement_no_other_recording_is_opened(shelf: Path) -> None:
    feed = StoryRun(story.run(20, until=10, finish=False))
    feed.path = shelf / "b.msgpack"
    async with app(feed).run_test(size=SIZE) as pilot:
        screen = await open_shelf(pilot)
        assert [entry.state for entry in screen.entries] == ["complete", "running", "complete"]
        await pilot.press("home", "enter")
        await until(pilot, lambda: "a measurement is running" in said(pilot))
        assert taxtui(pilot).feed is feed
        here(pilot)


async def test_a_vanished_file_is_reported_and_leaves_the_list(shelf: Path) -> None:
    async with app().run_test(size=(120, 40)) as pilot:
        screen = await open_shelf(pilot)
        for key in ("enter", "h", "d"):
            pilot.app.clear_notifications()
            path = shelf / f"{names(screen)[0]}.msgpack"
            content = path.read_bytes()
            path.unlink()
            await pilot.press("home", key)
            await until(pilot, lambda: f"{path} does not exist any more" in said(pilot))  # noqa: B023  # awaited at once
            await until(pilot, lambda: len(names(screen)) == 2)
            here(pilot)
            path.write_bytes(content)
            await pilot.press("r")
            await until(pilot, lambda: len(names(screen)) == 3)


async def test_a_file_that_is_not_a_recording_is_shown_on_no_other_screen(shelf: Path) -> None:
    (shelf / "a.msgpack").write_bytes(b"hello")
    async with app().run_test(size=SIZE) as pilot:
        await open_shelf(pilot)
        for key in ("enter", "h", "d", "3", "5", "4"):
            pilot.app.clear_notifications()
            await pilot.press("home", key)
            if key != "5":
                await until(pilot, lambda: said(pilot) == "recordings/a.msgpack is not a recording")
        assert taxtui(pilot).chosen == ()


async def test_an_empty_folder_says_how_to_make_a_recording(folder: Path) -> None:
    async with app().run_test(size=SIZE) as pilot:
        await open_shelf(pilot)
        assert "ctrl+r" in text(pilot)
        assert "taxtui run" in text(pilot)
        await pilot.press("enter", "h", "d", "y", "escape")
        await pilot.pause()
        here(pilot)
        assert not pilot.app._notifications
        record(folder / "first.msgpack")
        await pilot.press("r")
        await until(pilot, lambda: "first" in text(pilot))


async def test_a_folder_that_cannot_be_read_is_one_line(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    async with app().run_test(size=SIZE) as pilot:
        await open_shelf(pilot)
        assert "cannot list recordings: Permission denied" in text(pilot)


@pytest.mark.slow
@seed(18)
@settings(max_examples=1, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(one=hostile.names, other=st.text(max_size=40))
@example(one=hostile.WIDE, other="[red]\x1b[31m")
def test_no_name_ends_a_screen_or_reaches_the_terminal(folder: Path, one: str, other: str) -> None:
    for path in folder.iterdir():
        path.unlink()
    record(folder / "a.msgpack", [hostile.renamed(event, one, other) for event in story.run(8)], run_id=one)
    record(folder / "b.msgpack", [hostile.renamed(event, one, other) for event in story.run(8)], run_id=f"{one}b")
    asyncio.run(_visit())


async def _visit() -> None:
    async with app().run_test(size=WIDE_SCREEN) as pilot:
        screen = await open_shelf(pilot)
        assert sorted(names(screen)) == ["a", "b"]
        visit = "d escape 3 right_square_bracket enter enter escape escape 4 w escape"
        for key in f"{visit} 5 enter enter enter escape escape tab tab enter escape".split():
            await _pressed(pilot, key)
        taxtui(pilot).feed.close()


async def _pressed(pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    await shown(pilot)
    lines = text(pilot).split("\n")
    assert not any(map(UNPRINTABLE.search, lines))
    assert {cell_len(line) for line in lines} == {WIDE_SCREEN[0]}, (
        "what is wider than it counts moves what stands beside it"
    )


@pytest.mark.slow
async def test_markup_in_a_name_is_shown_as_it_stands_on_every_screen(folder: Path) -> None:
    name = "".join(hostile.MARKUP[:2])
    record(folder / "a.msgpack", [hostile.renamed(event, name, name) for event in story.run(8)], run_id=name)
    stands = set()
    async with app().run_test(size=WIDE_SCREEN) as pilot:
        await open_shelf(pilot)
        for key in ("5", "enter", *(tab.key for tab in SCREENS), "3", *["right_square_bracket"] * len(TABLES)):
            await _pressed(pilot, key)
            if name in text(pilot):
                stands.add(type(pilot.app.screen).__name__)
        taxtui(pilot).feed.close()
    assert stands >= {tab.screen for tab in SCREENS} - {"SetupScreen"}, "Setup shows nothing of a recording"
