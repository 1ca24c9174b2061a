"""Every action of Results, by its key, on an app with a recording."""

from __future__ import annotations

import csv
import io
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from textual.pilot import Pilot
from textual.widgets import OptionList, Static

from taxtui.commands.compare import command as compare
from taxtui.commands.report import command
from taxtui.report.bars import Bar
from taxtui.tui.answer_table import AnswerTable
from taxtui.tui.arranging import Arrangement
from taxtui.tui.command_dialog import COLUMNS
from taxtui.tui.dialogs import Choose, LaidOut, Tell
from taxtui.tui.results.model import TABLES
from taxtui.tui.results.screen import ResultsScreen, TableTab
from taxtui.tui.results.table import ResultTable
from taxtui.tui.stacked_bars import StackedBars
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import SIZE, covers, looking_at, until
from tests.taxtui.tui.story import record


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return record(tmp_path / "story.msgpack")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return record(tmp_path / "earlier.msgpack", story.run(30), "an-earlier-run")


def results(pilot: Pilot[None]) -> ResultsScreen:
    screen = pilot.app.screen
    assert isinstance(screen, ResultsScreen)
    return screen


def lines(pilot: Pilot[None]) -> list[str]:
    return [line.text for line in pilot.app.screen.query_one(ResultTable).items]


async def shown(pilot: Pilot[None], words: str) -> None:
    head = results(pilot).query_one("#head", Static)
    await until(pilot, lambda: words in str(head.render()) and results(pilot).settled)


async def answered(pilot: Pilot[None]) -> AnswerTable:
    await until(pilot, lambda: results(pilot).result.answer is not None and results(pilot).settled)
    return results(pilot).query_one(AnswerTable)


@covers("go('results')")
async def test_3_says_which_is_cheapest_and_enter_shows_all_of_it(path: Path) -> None:
    async with looking_at(path).run_test(size=SIZE) as pilot:
        await pilot.press("3")
        table = await answered(pilot)
        said = str(results(pilot).query_one("#said", Static).render())
        assert said.startswith("docker:runc exec runs ")
        assert "local:bwrap exec for T0 x 10" in said
        drawn = [table.draw(line, number, 76).plain for number, line in enumerate(table.items)]
        assert len(drawn) == 1
        assert " best " in drawn[0]
        assert f"{table.answer.lines[0].entries[1].ratio.value:.2f}x" in drawn[0]  # type: ignore[union-attr]
        bars = results(pilot).query_one(StackedBars)
        assert [bar.name for bar in bars.items if isinstance(bar, Bar)] == ["docker:runc", "local:bwrap"]
        await pilot.press("enter")
        await shown(pilot, "Completion")
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Choose))
        assert "docker:runc T0 10 exec" in str(pilot.app.screen.query_one(".dialog").border_title)


@covers("sort", "filter", "open")
async def test_tables_are_sorted_and_filtered_until_another_recording_is_shown(path: Path, other: Path) -> None:
    async with looking_at(path).run_test(size=SIZE) as pilot:
        await pilot.press("3")
        await answered(pilot)
        await pilot.press("enter")
        await shown(pilot, "Completion")

        def labels() -> list[str]:
            found = [line.text.split()[0] for line in pilot.app.screen.query_one(ResultTable).items if line.first]
            return [label for label in found if ":" in label]

        assert labels() == ["local:bwrap", "docker:runc"]
        await pilot.press("o")
        assert labels() == ["docker:runc", "local:bwrap"]
        await pilot.press("o")
        assert results(pilot).arrangement == Arrangement(column=0, descending=True)
        assert labels() == ["local:bwrap", "docker:runc"]
        await pilot.press("slash", *"LOCAL", "enter")
        assert labels() == ["local:bwrap"]
        results(pilot).taxtui.chosen = (other,)
        results(pilot).arrive()
        await until(pilot, lambda: results(pilot).settled)
        assert results(pilot).arrangement == Arrangement()
        assert labels() == ["local:bwrap", "docker:runc"]
        assert not results(pilot).query_one("#wanted").display


async def test_3_shows_what_taxtui_report_prints(path: Path) -> None:
    async with looking_at(path).run_test(size=SIZE) as pilot:
        await pilot.press("3", "right_square_bracket")
        await shown(pilot, "Cold start: create request")
        printed = CliRunner().invoke(command, [str(path), "--table", "cold-start"]).output
        values = [line.split("  ")[-3:] for line in printed.splitlines() if line.startswith(("local", "docker"))]
        assert len(values) == 2
        for value in values:
            assert any("  ".join(value) in line for line in lines(pilot))


@covers("switch(1)", "switch(-1)")
async def test_brackets_go_through_the_tables(path: Path) -> None:
    async with looking_at(path).run_test(size=SIZE) as pilot:
        await pilot.press("3")
        seen = []
        for _ in TABLES:
            await until(pilot, lambda: results(pilot).settled)
            seen.append(results(pilot).query_one("TableTab.current", TableTab).table)
            await pilot.press("right_square_bracket")
        assert seen == list(TABLES)
        # the last is that of a ladder, which this is not
        await pilot.press("left_square_bracket", "left_square_bracket")
        await shown(pilot, "Tax")


async def test_a_click_on_a_tab_shows_its_table(path: Path) -> None:
    async with looking_at(path).run_test(size=SIZE) as pilot:
        await pilot.press("3")
        tab = next(tab for tab in results(pilot).query(TableTab) if tab.table == "breakdown")
        await pilot.click(tab)
        await shown(pilot, "Breakdown of completion")


@covers("renew")
async def test_r_reads_what_the_recording_has_grown_by(tmp_path: Path) -> None:
    told = story.run(40)
    path = record(tmp_path / "grows.msgpack", told[: len(told) // 2])
    async with looking_at(path).run_test(size=SIZE) as pilot:
        await pilot.press("3", "right_square_bracket")
        await shown(pilot, "Cold start")
        before = lines(pilot)
        path.unlink()
        record(path, told)
        await pilot.press("r")
        await until(pilot, lambda: lines(pilot) != before)


@covers("copy")
@pytest.mark.parametrize(
    ("form", "begins"),
    [("row", "### Cold start"), ("Markdown", "### Cold start"), ("text", "Cold start"), ("CSV", '"'), ("JSON", "[")],
)
async def test_y_copies_the_table(path: Path, form: str, begins: str) -> None:
    async with looking_at(path).run_test(size=SIZE) as pilot:
        await pilot.press("3", "right_square_bracket")
        await shown(pilot, "Cold start")
        await pilot.press("down", "y")
        await until(pilot, lambda: pilot.app.screen.query(OptionList))
        names = ["row", "text", "Markdown", "CSV", "JSON", "command"]
        await pilot.press(*["down"] * names.index(form), "enter")
        await until(pilot, lambda: pilot.app.clipboard)
        assert pilot.app.clipboard.startswith(begins)
        if form == "row":
            assert "docker:runc" in pilot.app.clipboard
            assert "local" not in pilot.app.clipboard
        if form == "CSV":
            assert len(list(csv.reader(io.StringIO(pilot.app.clipboard)))) == 3


@pytest.mark.parametrize(("content", "words"), [(b"", "empty"), (b"text", "not a taxtui recording"), (None, "cannot")])
async def test_what_cannot_be_read_is_said_in_one_line(content: bytes | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.msgpack"
    if content is not None:
        path.write_bytes(content)
    async with looking_at(path).run_test(size=SIZE) as pilot:
        await pilot.press("3")
        await until(pilot, lambda: words in results(pilot).refusal)
        await pilot.press("y", "escape", "o")


async def test_the_head_follows_the_section_in_sight(path: Path) -> None:
    async with looking_at(path).run_test(size=SIZE) as pilot:
        await pilot.press("3", *["left_square_bracket"] * 4)
        await shown(pilot, "Per action, amortised")
        pilot.app.screen.query_one(ResultTable).scroll_to(y=8, animate=False, immediate=True)
        await shown(pilot, "Action: submitted")


@covers("diff")
async def test_d_shows_what_compare_prints_of_an_earlier_recording(
    path: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path.parent / "recordings").mkdir()
    monkeypatch.chdir(path.parent)
    other.rename("recordings/earlier.msgpack")
    async with looking_at(path).run_test(size=(120, 40)) as pilot:
        await pilot.press("3")
        await answered(pilot)
        await pilot.press("d")
        await until(pilot, lambda: pilot.app.screen.query(OptionList))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Tell))
        await pilot.press("y")
        words = shlex.split(pilot.app.clipboard)
        assert words[:3] == ["taxtui", "compare", "recordings/earlier.msgpack"]
        printed = CliRunner().invoke(compare, words[2:], env={"COLUMNS": str(COLUMNS)}).stdout
        assert str(pilot.app.screen.query_one(LaidOut).render()).split() == printed.split()
