"""Every action of Recordings, by its key and by the mouse, on a running app."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from taxtui.errors import TaxtuiError
from taxtui.tui import library, verification
from taxtui.tui.app import TaxtuiApp
from taxtui.tui.screens import recordings
from taxtui.tui.screens.dialogs import Choose, Confirm
from taxtui.tui.screens.live import LiveScreen
from taxtui.tui.screens.recordings import RecordingsScreen
from taxtui.tui.widgets.recording_facts import RecordingFacts
from taxtui.tui.widgets.recording_list import RecordingList
from tests.tui import story
from tests.tui.driving import SIZE, covers, running
from tests.tui.feeds import StoryRun, app
from tests.tui.recorded import record, until

Discarded = list[Path]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``./recordings`` with three recordings, a and b and c from the newest to the oldest; nothing is shipped."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(library, "bundled", lambda name: None)
    folder = Path("recordings")
    folder.mkdir()
    for number, name in enumerate("cba"):
        run = story.run(4, finish=name != "b")
        run[1] = story.clock(unix_ns=story.UNIX_NS + number * 10**9)
        path = record(folder / f"{name}.msgpack", run)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return folder


@pytest.fixture
def discarded(monkeypatch: pytest.MonkeyPatch) -> Discarded:
    """What went to the trash, instead of the trash of this machine."""
    gone: Discarded = []

    def discard(path: Path) -> None:
        gone.append(path)
        path.unlink()

    monkeypatch.setattr(recordings, "discard", discard)
    return gone


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


@covers("app", "go('recordings')")
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


@covers("recordings", "replay")
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


async def test_a_replay_while_a_run_goes_on_is_refused(shelf: Path) -> None:
    feed = running()
    async with app(feed).run_test(size=SIZE) as pilot:
        await open_shelf(pilot)
        await pilot.press("enter")
        await pilot.pause()
        here(pilot)
        assert "a run goes on" in said(pilot)
        assert taxtui(pilot).feed is feed


@covers("recordings", "project", "results")
@pytest.mark.parametrize(("key", "scope"), [("p", "projection"), ("s", "results")])
async def test_p_and_s_take_the_one_under_the_cursor(shelf: Path, key: str, scope: str) -> None:
    async with app().run_test(size=(120, 40)) as pilot:
        await open_shelf(pilot)
        await pilot.press("down", key)
        await until(pilot, lambda: getattr(pilot.app.screen, "scope", "") == scope)
        assert taxtui(pilot).chosen == (shelf / "b.msgpack",)


@covers("recordings", "mark")
async def test_space_marks_and_the_marked_are_pooled(shelf: Path) -> None:
    async with app().run_test(size=(120, 40)) as pilot:
        screen = await open_shelf(pilot)
        await pilot.press("down", "space", "down", "space", "space", "home", "space")
        assert screen.marks == {shelf / "a.msgpack", shelf / "b.msgpack"}
        assert "2 marked" in text(pilot)
        await pilot.press("end", "s")
        await until(pilot, lambda: getattr(pilot.app.screen, "scope", "") == "results")
        assert taxtui(pilot).chosen == (shelf / "a.msgpack", shelf / "b.msgpack")
        await pilot.press("5")
        await pilot.press("escape")
        assert screen.marks == set()


@covers("recordings", "diff")
async def test_d_compares_with_one_of_the_others_the_marked_one_first(shelf: Path) -> None:
    async with app().run_test(size=(120, 40)) as pilot:
        await open_shelf(pilot)
        await pilot.press("end", "space", "home", "d")
        await until(pilot, lambda: isinstance(pilot.app.screen, Choose))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, RecordingsScreen))
        await pilot.press("d")
        await until(pilot, lambda: isinstance(pilot.app.screen, Choose))
        await pilot.press("enter")
        await until(pilot, lambda: getattr(pilot.app.screen, "scope", "") == "results")
        assert taxtui(pilot).chosen == (shelf / "a.msgpack",)
        assert taxtui(pilot).against == shelf / "c.msgpack"


async def test_d_needs_another_recording(shelf: Path) -> None:
    for name in "bc":
        (shelf / f"{name}.msgpack").write_bytes(b"no recording")
        os.utime(shelf / f"{name}.msgpack", (0, 0))
    async with app().run_test(size=SIZE) as pilot:
        await open_shelf(pilot)
        await pilot.press("d")
        await until(pilot, lambda: said(pilot))
        assert said(pilot) == "there is no other recording to compare with"
        here(pilot)


@covers("recordings", "verify")
async def test_v_verifies_and_remembers_until_the_file_changes(shelf: Path) -> None:
    async with app().run_test(size=SIZE) as pilot:
        screen = await open_shelf(pilot)
        await pilot.press("v")
        await until(pilot, lambda: "complete and intact: " in text(pilot))
        assert "✓ verified" in text(pilot)
        assert not pilot.app._notifications
        os.utime(shelf / "a.msgpack", (1_700_000_100, 1_700_000_100))
        await pilot.press("r")
        await until(pilot, lambda: screen.chosen is not None and screen.verifier.verdict(screen.chosen) is None)
        assert "✓ verified" not in text(pilot)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Verifying stands still after its first slice until this is called."""
    goes_on = threading.Event()
    poll = verification.Follower.poll
    monkeypatch.setattr(verification, "SLICE_BYTES", 1024)

    def slow(self: verification.Follower, max_bytes: int) -> object:
        if self.offset:
            goes_on.wait(20)
        return poll(self, max_bytes)

    monkeypatch.setattr(verification.Follower, "poll", slow)
    return goes_on.set


async def test_damage_that_verifying_finds_is_shown_in_the_list_and_said_elsewhere(
    shelf: Path, held: Callable[[], None]
) -> None:
    path = record(shelf / "d.msgpack", story.run(400))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    async with app().run_test(size=(118, 30)) as pilot:
        screen = await open_shelf(pilot)
        while screen.chosen is None or screen.chosen.name != "d":
            await pilot.press("down")
        assert "✗ damaged" not in text(pilot)
        await pilot.press("v", "1")
        held()
        await until(pilot, lambda: "damaged at byte" in said(pilot))
        await pilot.press("5")
        await pilot.pause()
        assert text(pilot).count("✗ damaged") == 3  # list, state, verified
        assert "$ taxtui recordings verify recordings/d.msgpack --salvage OUT.msgpack" in text(pilot)


@pytest.mark.parametrize("key", ["v", "escape"])
async def test_verifying_shows_how_far_it_is_and_can_be_stopped(
    shelf: Path, held: Callable[[], None], key: str
) -> None:
    async with app().run_test(size=SIZE) as pilot:
        screen = await open_shelf(pilot)
        await pilot.press("v")
        await until(pilot, lambda: screen.verifier.job and screen.verifier.job.share > 0)
        screen._show_progress()
        await pilot.pause()
        assert "esc stops" in text(pilot)
        assert "… read " in text(pilot)
        await pilot.press(key)
        held()
        await pilot.pause()
        assert screen.verifier.job is None
        assert "not yet: v reads every byte" in text(pilot)


async def test_quitting_does_not_wait_for_a_verification(shelf: Path, held: Callable[[], None]) -> None:
    async with app().run_test(size=SIZE) as pilot:
        screen = await open_shelf(pilot)
        await pilot.press("v")
        await until(pilot, lambda: screen.verifier.job and screen.verifier.job.share > 0)
        job = screen.verifier.job
        assert job is not None
        await pilot.press("q")
    assert job._stopped
    assert job.share < 1
    held()


async def test_another_verification_takes_the_place_of_the_first(shelf: Path, held: Callable[[], None]) -> None:
    async with app().run_test(size=SIZE) as pilot:
        screen = await open_shelf(pilot)
        await pilot.press("v")
        await until(pilot, lambda: screen.verifier.job and screen.verifier.job.share > 0)
        await pilot.press("down", "v")
        held()
        await until(pilot, lambda: screen.verifier.job is None)
        entries = {entry.name: screen.verifier.verdict(entry) for entry in screen.entries}
        assert entries["a"] is None
        assert entries["b"] is not None
        assert entries["b"].state == "incomplete"


@covers("recordings", "delete")
async def test_x_deletes_after_asking(shelf: Path, discarded: Discarded) -> None:
    async with app().run_test(size=SIZE) as pilot:
        screen = await open_shelf(pilot)
        taxtui(pilot).chosen, taxtui(pilot).against = (shelf / "a.msgpack", shelf / "b.msgpack"), shelf / "a.msgpack"
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
        assert (taxtui(pilot).chosen, taxtui(pilot).against) == ((shelf / "b.msgpack",), None)


async def test_a_trash_that_fails_is_one_line_and_the_file_stays(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise TaxtuiError(f"{path.name} was not deleted: the trash refused it: Permission denied")

    monkeypatch.setattr(recordings, "discard", refuse)
    async with app().run_test(size=SIZE) as pilot:
        screen = await open_shelf(pilot)
        await pilot.press("x", "y")
        await until(pilot, lambda: "Permission denied" in said(pilot))
        assert names(screen) == ["a", "b", "c"]


async def test_x_refuses_what_is_shipped(shelf: Path, discarded: Discarded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "bundled", lambda name: (shelf / "a.msgpack").absolute())
    async with app().run_test(size=SIZE) as pilot:
        await open_shelf(pilot)
        await pilot.press("x")
        await until(pilot, lambda: said(pilot))
        assert said(pilot) == "recordings/a.msgpack came with taxtui; it is not deleted"
        here(pilot)
    assert discarded == []


async def test_x_refuses_the_recording_of_a_run_that_goes_on(shelf: Path, discarded: Discarded) -> None:
    feed = StoryRun(story.run(20, until=10, finish=False))
    feed.path = shelf / "b.msgpack"
    async with app(feed).run_test(size=SIZE) as pilot:
        screen = await open_shelf(pilot)
        assert [entry.state for entry in screen.entries] == ["complete", "running", "complete"]
        await pilot.press("down", "x")
        await until(pilot, lambda: said(pilot))
        assert "recordings/b.msgpack is being written" in said(pilot)
        here(pilot)
        feed.goes_on([], exit_code=0)
        await pilot.press("x")
        await until(pilot, lambda: "Live shows recordings/b.msgpack" in said(pilot))
    assert discarded == []


async def test_x_refuses_what_another_process_is_writing(
    shelf: Path, discarded: Discarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with app().run_test(size=SIZE) as pilot:
        await open_shelf(pilot)
        monkeypatch.setattr(library, "FRESH_S", 3600.0)  # however long the test takes
        os.utime(shelf / "b.msgpack")
        await pilot.press("down", "x")
        await until(pilot, lambda: "is being written" in said(pilot))
    assert discarded == []


async def test_what_has_vanished_is_said_and_the_list_is_made_anew(shelf: Path, discarded: Discarded) -> None:
    async with app().run_test(size=(120, 40)) as pilot:
        screen = await open_shelf(pilot)
        for key in ("enter", "p", "s", "d", "x"):
            pilot.app.clear_notifications()
            path = shelf / f"{names(screen)[0]}.msgpack"
            content = path.read_bytes()
            path.unlink()
            await pilot.press("home", key)
            await until(pilot, lambda: len(names(screen)) == 2)
            assert said(pilot) == f"{path} is not there any more"
            here(pilot)
            path.write_bytes(content)
            await pilot.press("r")
            await until(pilot, lambda: len(names(screen)) == 3)
    assert discarded == []


@pytest.mark.parametrize("key", ["enter", "p", "s", "d"])
async def test_what_is_no_recording_is_not_shown_anywhere_else(shelf: Path, key: str) -> None:
    (shelf / "a.msgpack").write_bytes(b"hello")
    async with app().run_test(size=SIZE) as pilot:
        await open_shelf(pilot)
        await pilot.press("home", key)
        await until(pilot, lambda: said(pilot))
        assert said(pilot) == "recordings/a.msgpack is not a recording"
        here(pilot)


@covers("recordings", "filter")
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


@covers("recordings", "rescan")
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


@covers("recordings", "copy")
async def test_y_copies_the_command_line(shelf: Path) -> None:
    async with app().run_test(size=SIZE) as pilot:
        await open_shelf(pilot)
        await pilot.press("y")
        assert pilot.app.clipboard == "taxtui replay recordings/a.msgpack"


async def test_an_empty_folder_says_how_to_make_a_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(library, "bundled", lambda name: None)
    Path("recordings").mkdir()
    async with app().run_test(size=SIZE) as pilot:
        await open_shelf(pilot)
        assert "ctrl+r" in text(pilot)
        assert "taxtui run" in text(pilot)
        await pilot.press("enter", "space", "p", "s", "d", "v", "x", "y", "slash", "escape")
        await pilot.pause()
        here(pilot)
        assert not pilot.app._notifications
        record(Path("recordings/first.msgpack"))
        await pilot.press("r")
        await until(pilot, lambda: "first" in text(pilot))


async def test_a_folder_that_cannot_be_read_is_one_line(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    async with app().run_test(size=SIZE) as pilot:
        await open_shelf(pilot)
        assert "cannot list recordings: Permission denied" in text(pilot)


async def test_names_and_texts_that_are_not_for_a_screen_do_no_harm(shelf: Path) -> None:
    header = story.header([story.planned("[red]local[/red]")])
    path = record(shelf / "plain.msgpack", [header])
    path.rename(shelf / os.fsdecode(b"\xff[bold]\x1b.msgpack"))
    async with app().run_test(size=SIZE) as pilot:
        screen = await open_shelf(pilot)
        while screen.chosen is None or "bold" not in screen.chosen.name:
            await pilot.press("down")
        await pilot.press("y", "v", "d")
        await until(pilot, lambda: isinstance(pilot.app.screen, Choose))
        await pilot.press("escape", "x")
        await until(pilot, lambda: not isinstance(pilot.app.screen, Choose))
        assert "[red]local[/red]" in text(pilot)
        assert "?[bold]" in text(pilot)
