"""Every action of Results, by its key, on an app with a recording."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList, Static

from taxtui.report.answer.measured import summary
from taxtui.report.bars import Bar
from taxtui.report.numbers import plus_minus
from taxtui.report.page import content
from taxtui.tui.dialogs import Choose, Tell, columns
from taxtui.tui.results.model import TABLES
from taxtui.tui.results.screen import TableTab
from taxtui.tui.section_table import AnswerTable
from taxtui.tui.stacked_bars import StackedBars
from tests.support.command_line import printed
from tests.support.documents.page_recordings import recordings
from tests.taxtui.tui import story
from tests.taxtui.tui.driving import SIZE, looking_at, results, until
from tests.taxtui.tui.story import record


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return record(tmp_path / "earlier.msgpack", story.run(30), "an-earlier-run")


def table(pilot: Pilot[None]) -> AnswerTable:
    return pilot.app.screen.query_one(AnswerTable)


def lines(pilot: Pilot[None]) -> list[str]:
    return [line.text for line in table(pilot).items]


async def shown(pilot: Pilot[None], words: str) -> None:
    await until(
        pilot, lambda: results(pilot).settled and words in " ".join(line.plain for line in table(pilot).heading)
    )


async def answered(pilot: Pilot[None]) -> None:
    await until(pilot, lambda: results(pilot).result.answer is not None and results(pilot).settled)


async def test_3_ranks_and_enter_leads_to_the_long_table_and_the_slowest_trials(path: Path) -> None:
    async with looking_at(path).run_test(size=SIZE) as pilot:
        await pilot.press("3")
        await answered(pilot)
        said = str(results(pilot).query_one("#said", Static).render())
        assert said.startswith("docker:runc exec takes ")
        assert "local:bwrap exec for T0 x 10" in said
        workload = table(pilot).workload
        assert any(f"{workload.entries[1].ratio.value:.2f}x" in line for line in lines(pilot))  # type: ignore[union-attr]
        assert "local:bwrap" in table(pilot).heading[0].plain
        bars = results(pilot).query_one(StackedBars)
        assert [bar.name for bar in bars.items if isinstance(bar, Bar)] == ["docker:runc", "local:bwrap"]
        await pilot.press("enter")
        await shown(pilot, "Completion")
        assert not bars.display
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Choose))
        assert "docker:runc T0 10 exec" in str(pilot.app.screen.query_one(".dialog").border_title)
        await pilot.press("escape")


async def test_brackets_and_tabs_go_through_the_tables_of_taxtui_report(path: Path) -> None:
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
        await pilot.click(next(tab for tab in results(pilot).query(TableTab) if tab.table == "cold-start"))
        await shown(pilot, "Cold start: create request")
        told = printed("report", path, "--table", "cold-start")
        values = [line.split()[2:] for line in told.splitlines() if line.startswith(("local", "docker"))]
        drawn = [line.split()[2:] for line in lines(pilot)]
        assert len(values) == 2
        assert all(value in drawn for value in values)
        await pilot.press(*["right_square_bracket"] * 3)
        await shown(pilot, "Per action, amortised")
        table(pilot).scroll_to(y=8, animate=False, immediate=True)
        await shown(pilot, "Action: submission to exit code")


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
        monkeypatch.setenv("COLUMNS", str(columns(pilot.app)))
        shown = str(pilot.app.screen.query_one("#told", Static).render())
        assert shown.split() == printed(*words[1:]).split()


ASKED = ["--trajectories", "1000000", "--workers", "500"]
SHIPPED = Path(__file__).parents[4] / "recordings"


def words(text: str) -> str:
    return " ".join(text.split())


async def on_screen(path: Path, key: str) -> tuple[str, list[str]]:
    """The sentence of a screen, and the ratios of its table, each with its interval."""

    def said(pilot: Pilot[None]) -> str:
        return str(pilot.app.screen.query_one("#said", Static).render())

    async with looking_at(path).run_test(size=SIZE) as pilot:
        await pilot.press(key)
        await until(pilot, lambda: said(pilot) and pilot.app.screen.settled)  # type: ignore[attr-defined]
        found = pilot.app.screen.query_one(AnswerTable).answer
        ratios = [entry.ratio for line in found.lines for entry in line.entries if entry.ratio]
        return words(said(pilot)).removeprefix("≈ "), [plus_minus(one, unit="x") for one in ratios]


@pytest.mark.parametrize("name", ["short", "page"])
async def test_the_answer_is_the_same_everywhere(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "inline_svg", lambda panel: "")  # the words are looked at, not the pictures
    path = recordings(tmp_path)[0] if name == "page" else SHIPPED / f"{name}.msgpack"
    reported, projected, summed_up = printed("report", path), printed("project", path, *ASKED), summary(path)
    sentence = words(reported.split("\n\n")[0])
    assert words(projected.split("\n\n")[0]) == sentence
    assert words(summed_up.split("\n\n")[-2]) == sentence
    for key in ("3", "4"):
        said, ratios = await on_screen(path, key)
        assert said == sentence
        for told in (reported, projected, summed_up):
            compared = re.findall(r"[\d.]+x +[±(][\d.…]+\)?", told.split("\n\n±")[0])
            assert sorted(map(words, compared)) == sorted(ratios)
    for name, asked in (("report", []), ("project", ASKED)):
        out = tmp_path / f"{name}.html"
        printed(name, path, *asked, "--html", out)
        page = words(html.unescape(re.sub("<[^>]+>", " ", out.read_text())))
        assert sentence in page
        assert all(ratio in page for ratio in ratios)
