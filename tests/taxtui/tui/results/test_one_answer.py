"""The answer is one sentence with the same figures wherever it is said: screens, commands, the end of a run, a page."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from taxtui.report.answer.measured import summary
from taxtui.report.numbers import plus_minus
from taxtui.report.page import content
from taxtui.tui.section_table import AnswerTable
from tests.support.command_line import printed
from tests.support.documents.page_recordings import recordings
from tests.taxtui.tui.driving import SIZE, looking_at, until

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
        assert found is not None
        ratios = [entry.ratio for line in found.lines for entry in line.entries if entry.ratio]
        return words(said(pilot)).removeprefix("≈ "), [plus_minus(one, unit="x") for one in ratios]


@pytest.mark.parametrize("name", ["run", "small", "page"])
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
    for command, asked in (("report", []), ("project", ASKED)):
        out = tmp_path / f"{command}.html"
        printed(command, path, *asked, "--html", out)
        page = words(html.unescape(re.sub("<[^>]+>", " ", out.read_text())))
        assert sentence in page
        assert all(ratio in page for ratio in ratios)
