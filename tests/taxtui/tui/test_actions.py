"""The actions of the whole app, by key, and what goes wrong around the screens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import OptionList, Static

from costmodel.recording import events
from taxtui import folders, shipped
from taxtui.errors import RecordingError, UsageError
from taxtui.live import catalogue
from taxtui.live.histogram import LogHistogram
from taxtui.tui import actions, units
from taxtui.tui.background import Newest
from taxtui.tui.colours import SUBSTRATES
from taxtui.tui.dialogs import Choice, Choose, Confirm, Tell, copy
from taxtui.tui.live.chart import outlines
from taxtui.tui.live.panels import CellTable
from taxtui.tui.numbered_screen import NumberedScreen, Tab
from taxtui.tui.section_table import AnswerTable
from tests.taxtui.tui.driving import SIZE, app, finished, live, looking_at, running, setup, text, until
from tests.taxtui.tui.story import record


async def test_digits_and_tabs_go_to_the_screens_and_a_click_chooses_a_cell() -> None:
    async with app(running()).run_test(size=SIZE) as pilot:
        await pilot.press("1")
        setup(pilot)
        await pilot.press("2")
        await pilot.click(CellTable, offset=(5, 3))  # below the border and the heading, the second cell
        chosen = live(pilot).query_one(CellTable).chosen
        assert chosen.label == "docker:runc"
        for scope in (tab.scope for tab in reversed(actions.SCREENS)):
            await pilot.click(next(tab for tab in pilot.app.screen.query(Tab) if tab.mode == scope))
            await pilot.pause()
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


class Pump:
    """Keeps what would be delivered as messages, until it is delivered."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.came = threading.Semaphore(0)

    def call_later(self, callback: Callable[..., None], *arguments: Any) -> bool:
        self.waiting.append(lambda: callback(*arguments))
        self.came.release()
        return True

    def deliver(self) -> None:
        assert self.came.acquire()
        self.waiting.pop(0)()


def test_an_answer_in_parts_ends_with_a_newer_request_and_failures_are_reported() -> None:
    pump, heard, closed = Pump(), [], []
    failures = {"-": RecordingError("negative"), "!": ZeroDivisionError("a bug")}

    def parts(request: str) -> Iterator[str]:
        try:
            if request in failures:
                raise failures[request]
            yield from request
        finally:
            closed.append(request)

    newest = Newest[str, str](parts, heard.append, heard.append, lambda: heard.append("end"), on=pump)  # type: ignore[arg-type]  # a pump
    assert not newest.busy
    newest.ask("ab")
    for _ in "ab":
        pump.deliver()
    assert newest.busy  # the end is not known yet
    pump.deliver()
    assert heard == ["a", "b", "end"]
    assert not newest.busy
    newest.ask("cd")
    assert pump.came.acquire()  # a part is on its way
    pump.came.release()
    for request in ("e", "-", "!", "f"):
        newest.ask(request)
        while newest.busy:
            pump.deliver()
    assert heard[3:] == ["e", "end", "negative", "end", "ZeroDivisionError: a bug", "end", "f", "end"]
    assert closed == ["ab", "cd", "e", "-", "!", "f"]
    newest.close()


async def test_another_recording_is_not_shown_with_the_rows_of_the_one_before(tmp_path: Path) -> None:
    broken = tmp_path / "broken.msgpack"
    broken.write_bytes(b"no recording")
    tui = looking_at(record(tmp_path / "x.msgpack"))
    async with tui.run_test(size=SIZE) as pilot:
        await pilot.press("4")
        screen = pilot.app.screen
        await until(pilot, lambda: screen.answered)
        tui.chosen = (broken,)
        screen.arrive()
        await until(pilot, lambda: screen.refusal)
        assert screen.answered is None
        assert not screen.query_one(AnswerTable).items


async def test_a_run_that_cannot_be_started_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise UsageError("cannot create recordings: read-only; name the recording with -o")

    monkeypatch.setattr("taxtui.folders.recordings", nowhere)
    async with app().run_test(size=SIZE) as pilot:
        await pilot.pause(0.2)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: any("read-only" in note.message for note in pilot.app._notifications))
        setup(pilot)


def test_a_percentile_is_only_printed_where_the_data_support_it() -> None:
    histogram = LogHistogram()
    assert units.percentile(histogram, "p50") == "–"
    histogram.add([1_000_000] * 71)
    assert [units.percentile(histogram, name) for name in units.QUANTILES] == ["≈1.00ms", "n≥72", "n≥368"]
    histogram.add([1_000_000] * 297)
    assert [units.percentile(histogram, name) for name in units.QUANTILES] == ["≈1.00ms"] * 3
    for name, n in units.NEEDED.items():
        q = units.QUANTILES[name]
        assert name == "p50" or q**n <= 0.025 < q ** (n - 1)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=50))
def test_the_chart_contains_every_value_of_each_cell(values: list[int]) -> None:
    histograms = [LogHistogram(), LogHistogram(), LogHistogram()]
    histograms[0].add(values)
    histograms[1].add(values[:1])
    drawn = outlines(histograms)
    for histogram, points in zip(histograms[:2], drawn, strict=False):
        edges = [edge for edge, _ in points]
        assert edges == sorted(edges)
        assert (points[0][1], points[-1][1]) == (0, 0)
        assert sum(count for _, count in points[1:-1:2]) == pytest.approx(histogram.n)  # each top edge has two points
    assert drawn[2] == []


def test_no_two_looks_are_alike() -> None:
    looks = [*SUBSTRATES.values(), *(look for name in SUBSTRATES for look in shipped.SUBSTRATES[name].variant_looks)]
    assert len({shape for shape, _ in looks}) == len({shade for _, shade in looks}) == len(looks)


async def test_a_choice_closes_once_however_often_enter_is_pressed() -> None:
    results: list[object] = []
    async with App[None]().run_test() as pilot:
        below, dialog = pilot.app.screen, Choose("One of", [Choice("a", "", "a")])
        await pilot.app.push_screen(dialog, results.append)
        for _ in range(3):  # the second enter is in the queue before the first closes the dialog
            dialog.query_one(OptionList).action_select()
        await pilot.pause()
        assert (pilot.app.screen, results) == (below, ["a"])
