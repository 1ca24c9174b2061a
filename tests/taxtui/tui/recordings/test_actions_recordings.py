"""Every action of Recordings, by its key, on a running app."""

from __future__ import annotations

from pathlib import Path

from taxtui.live import catalogue
from taxtui.tui.live.screen import LiveScreen
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import SIZE, until
from tests.taxtui.tui.feeds import app
from tests.taxtui.tui.shelf import names, open_shelf, taxtui, text
from tests.taxtui.tui.story import record


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
        assert screen.chosen is not None
        assert screen.chosen.name == "b"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, LiveScreen))
        feed = taxtui(pilot).feed
        assert feed is not None
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
    newest = catalogue.newest(succeeded=True)
    assert newest is not None
    assert newest.name == "run.msgpack"
