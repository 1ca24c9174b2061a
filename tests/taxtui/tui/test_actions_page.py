"""The key that writes a page, on Results and Projection."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from taxtui.live import catalogue
from taxtui.tui.numbered_screen import NumberedScreen
from tests.taxtui.tui.driving import SIZE, looking_at, until
from tests.taxtui.tui.story import record


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return record(tmp_path / "story.msgpack")


async def pages(pilot: Pilot[None], path: Path) -> None:
    """Wait until the screen has its answer, then until it is written."""
    await until(pilot, lambda: pilot.app.screen.settled and str(pilot.app.screen.query_one("#said", Static).render()))  # type: ignore[attr-defined]
    await pilot.press("h")
    await until(pilot, lambda: path.exists() and isinstance(pilot.app.screen, NumberedScreen))


async def test_h_writes_the_report_beside_the_recording_and_never_over_a_file(path: Path) -> None:
    first, second = path.with_name("story.html"), path.with_name("story.2.html")
    async with looking_at(path).run_test(size=SIZE) as pilot:
        await pilot.press("3")
        await pages(pilot, first)
        await pages(pilot, second)
        answer = str(pilot.app.screen.query_one("#said", Static).render())
        told = [(note.title, note.message) for note in pilot.app._notifications]
        assert any(title == "Page written" and second.name in text for title, text in told)
    assert unescape(first.read_text()).startswith("<!doctype html>")
    assert " ".join(answer.split()) in unescape(first.read_text())
    assert first.read_bytes() == second.read_bytes()


async def test_h_writes_the_question_that_is_asked(path: Path) -> None:
    page = path.with_name("story.html")
    async with looking_at(path).run_test(size=SIZE) as pilot:
        await pilot.press("4", "right", "down", "right")
        await pages(pilot, page)
        answer = str(pilot.app.screen.query_one("#said", Static).render())
    html = unescape(page.read_text())
    assert "Training run: 2,000,000 trajectories of 10 actions on 1,000 workers" in html
    assert " ".join(answer.split()) in html
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
