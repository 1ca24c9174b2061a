"""The actions of the whole app, by key."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Static

from costmodel.recording import events
from taxtui import folders
from taxtui.live import catalogue
from taxtui.tui import actions
from taxtui.tui.dialogs import Confirm, Tell, copy
from taxtui.tui.live.panels import CellTable
from taxtui.tui.numbered_screen import NumberedScreen, Tab
from tests.taxtui.tui.driving import SIZE, app, finished, live, looking_at, running, setup, text, until
from tests.taxtui.tui.story import record


async def test_digits_and_tabs_go_to_the_screens_and_a_click_chooses_a_cell() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        await pilot.press("1")
        setup(pilot)
        await pilot.press("2")
        await pilot.click(CellTable, offset=(5, 3))  # below the border and the heading, the second cell
        chosen = live(pilot).query_one(CellTable).chosen
        assert chosen is not None
        assert chosen.label == "docker:runc"
        for scope in (tab.scope for tab in reversed(actions.SCREENS)):
            await pilot.click(next(tab for tab in pilot.app.screen.query(Tab) if tab.mode == scope))
            await pilot.pause()
            assert isinstance(pilot.app.screen, NumberedScreen)
            assert pilot.app.screen.scope == scope


async def test_a_copied_text_is_in_a_file_too_for_terminals_without_a_clipboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with App[None]().run_test() as pilot:
        copy(pilot.app, "taxtui project ×\n", "one line")
        file = tmp_path / "cache" / "copied.txt"
        assert pilot.app.clipboard == file.read_text(encoding="utf-8") == "taxtui project ×\n"
        await pilot.pause()
        (note,) = pilot.app._notifications
        assert note.message == f"one line\nNot on the clipboard? cat {file}"

        monkeypatch.setattr(folders, "cache", lambda: file)  # no folder
        copy(pilot.app, "another", "copied")
        await pilot.pause()
        assert [note.message for note in pilot.app._notifications][-1].endswith("shift held")


async def test_help_lists_every_action_of_the_screen_and_q_leaves_at_once_when_nothing_runs() -> None:
    async with app(finished()).run_test(size=(160, 50)) as pilot:
        await pilot.press("question_mark")
        assert isinstance(pilot.app.screen, Tell)
        assert all(action.label in text(pilot) for action in actions.actions_in("live", "app"))
        await pilot.press("escape")
        live(pilot)
        await pilot.press("q")
        await pilot.pause()
    assert pilot.app.return_code == 0


async def test_q_asks_while_a_run_goes_on_cancels_it_and_leaves_when_it_is_cleaned_up() -> None:
    feed = running()
    async with app(feed).run_test(size=SIZE) as pilot:
        await pilot.press("q", "n")
        assert feed.sent == []
        await pilot.press("q")
        assert isinstance(pilot.app.screen, Confirm)
        await pilot.press("y")
        await pilot.pause()
        assert feed.sent == ["cancel"]
        assert pilot.app.is_running
        assert "CLEANING UP" in text(pilot)
        feed.goes_on([events.RunFinished("cancelled", {})], exit_code=130)
        live(pilot).advance()
        await pilot.pause()
        assert not pilot.app.is_running


def test_there_are_few_actions_and_a_key_has_one_meaning_everywhere() -> None:
    assert len(actions.ACTIONS) <= 40
    keys = [action.keys for action in actions.ACTIONS]
    assert len(set(keys)) == len(keys)
    assert len({action.name for action in actions.ACTIONS}) == len(keys)
    for tab in actions.SCREENS:
        shown = {one.keys for one in actions.actions_in(tab.scope, "app") if {tab.scope, "app"} & set(one.footer)}
        assert len(shown - {"enter", "y", "h", "question_mark", "q"}) == 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return record(tmp_path / "story.msgpack")


async def pages(pilot: Pilot[None], path: Path) -> str:
    """The answer, once it is there and written."""

    def answer() -> str:
        return str(pilot.app.screen.query_one("#said", Static).render())

    await until(pilot, lambda: pilot.app.screen.settled and answer())  # type: ignore[attr-defined]
    await pilot.press("h")
    await until(pilot, lambda: path.exists() and isinstance(pilot.app.screen, NumberedScreen))
    return " ".join(answer().split())


async def test_h_writes_the_report_beside_the_recording_and_never_over_a_file(path: Path) -> None:
    first, second = path.with_name("story.html"), path.with_name("story.2.html")
    async with looking_at(path).run_test(size=SIZE) as pilot:
        await pilot.press("3")
        await pages(pilot, first)
        answer = await pages(pilot, second)
        told = [(note.title, note.message) for note in pilot.app._notifications]
        assert any(title == "Page written" and second.name in text for title, text in told)
    html = unescape(first.read_text())
    assert html.startswith("<!doctype html>")
    assert answer in html
    assert first.read_bytes() == second.read_bytes()


async def test_h_writes_the_question_that_is_asked(path: Path) -> None:
    page = path.with_name("story.html")
    async with looking_at(path).run_test(size=SIZE) as pilot:
        await pilot.press("4", "right", "down", "right")
        answer = await pages(pilot, page)
    html = unescape(page.read_text())
    assert "Training run: 2,000,000 trajectories of 10 actions on 1,000 workers" in html
    assert answer in html
    assert "taxtui project story.msgpack --trajectories 2000000 --workers 1000 --html page.html" in html


def test_what_is_made_of_a_shipped_recording_lies_where_runs_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    shipped = next(catalogue._shipped())
    assert catalogue.free_name(shipped, ".html") == tmp_path / "data" / "taxtui" / "recordings" / "run.html"
    own = tmp_path / "mine.msgpack"
    assert catalogue.free_name(own, ".results.svg") == tmp_path / "mine.results.svg"
