"""Bars by cause below the headline: in proportion, readable without colour and without block characters."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from costmodel.analysis.project import project
from costmodel.analysis.ranking import answer_of
from costmodel.projection.row import CAUSES as ATTRIBUTED
from costmodel.projection.row import ByCause
from costmodel.recording.reader import load
from costmodel.training.run import TrainingRun
from taxtui.report import bars
from taxtui.report.palette import LOOKS
from taxtui.report.words import CAUSES
from taxtui.terminal_text import width
from tests.support.command_line import printed
from tests.support.cost_model.simulating import attribute_coarsely

RUN = Path(__file__).parents[3] / "recordings" / "run.msgpack"


@pytest.fixture(scope="module")
def chart() -> bars.BarChart:
    found = bars.chart(answer_of(project([load(RUN)], TrainingRun(trajectories=10**6, workers=500))))
    assert found is not None
    return found


def test_every_cause_has_one_name_one_letter_one_hatch_and_one_colour() -> None:
    assert list(LOOKS) == list(CAUSES)
    assert {*ByCause._fields, *ATTRIBUTED} <= LOOKS.keys()
    for field in ByCause._fields:
        others = [LOOKS[other] for other in ByCause._fields if CAUSES[other] != CAUSES[field]]
        for part in range(3):
            assert LOOKS[field][part] not in {look[part] for look in others}, field
    assert all(width(look.hatch) == width(look.letter) == 1 for look in LOOKS.values())


def test_the_bars_are_those_of_the_headline_in_both_modes(chart: bars.BarChart) -> None:
    assert chart.title == "Worker-hours by cause, T1 x 50"
    assert [(bar.name, bar.mode) for bar in chart.bars] == [
        ("docker:runc", "exec"),
        ("local:bwrap", "exec"),
        ("docker:runc", "session"),
        ("local:bwrap", "session"),
    ]


def test_a_bar_consists_of_all_that_the_amount_consists_of(chart: bars.BarChart) -> None:
    found = answer_of(project([load(RUN)], TrainingRun(trajectories=10**6, workers=500)))
    (line,) = [line for line in found.lines if line.name == "T1 50 exec"]
    amounts = {entry.place.name: entry.amount for entry in line.entries}
    for bar in chart.bars[:2]:
        amount = amounts[bar.name]
        assert amount is not None
        assert sum(bar.parts.values()) == pytest.approx(amount.value)


@pytest.mark.parametrize("columns", [48, 60, 80, 200])
def test_widths_are_in_proportion_and_fit_the_terminal(chart: bars.BarChart, columns: int) -> None:
    lines = bars.draw(chart, columns, bars.Pen())
    assert max(map(width, lines)) <= columns
    drawn = [re.sub("[^▒▓▞█▘]", "", line) for line in lines[1:5]]
    longest = max(sum(bar.parts.values()) for bar in chart.bars)
    for bar, text in zip(chart.bars, drawn, strict=True):
        assert len(text) == pytest.approx(len(drawn[0]) * sum(bar.parts.values()) / longest, abs=1)
        assert text.count("▓") == pytest.approx(len(drawn[0]) * bar.parts["dispatch"] / longest, abs=1)
    assert "".join(lines).count("startup") == 1, "the legend is printed once"


def test_the_bars_of_a_run_in_steps_are_ordered_by_the_cost_that_they_show(monkeypatch: pytest.MonkeyPatch) -> None:
    attribute_coarsely(monkeypatch)
    asked = TrainingRun(trajectories=512, workers=16, batch=64, gpus=8, gpu_usd_hour=2.0)
    for line in (answer := answer_of(project([load(RUN)], asked))).lines:
        sizes = [sum(bar.parts.values()) for bar in bars.bars_of(answer, line)]
        assert sizes
        assert sizes == sorted(sizes, reverse=True)


class Terminal(io.StringIO):
    """A stream that says that it is a terminal of an encoding."""

    def __init__(self, encoding: str = "utf-8", *, tty: bool = True) -> None:
        super().__init__()
        self._encoding, self._tty = encoding, tty

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._tty


def test_colour_is_for_terminals_that_have_it_and_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert bars.pen_of(Terminal()) == bars.Pen(hatches=True, colour=True)
    assert bars.pen_of(Terminal(tty=False)) == bars.Pen(hatches=True, colour=False)
    assert not bars.pen_of(Terminal("latin-1")).hatches
    assert not bars.pen_of(Terminal("ascii")).hatches
    monkeypatch.setenv("NO_COLOR", "1")
    assert not bars.pen_of(Terminal()).colour
    monkeypatch.delenv("NO_COLOR")
    for term in ("dumb", ""):
        monkeypatch.setenv("TERM", term)
        assert not bars.pen_of(Terminal()).colour


def test_without_block_characters_causes_are_letters(chart: bars.BarChart) -> None:
    text = "\n".join(bars.draw(chart, 80, bars.Pen(hatches=False)))
    assert text.isascii()
    assert "S startup  D dispatch" in text
    assert re.search(r"S+D+#+", text)


def test_colour_adds_nothing_but_colour(chart: bars.BarChart) -> None:
    plain, coloured = (bars.draw(chart, 80, bars.Pen(colour=colour)) for colour in (False, True))
    assert plain != coloured
    assert [re.sub(r"\x1b\[[\d;]+m", "", line) for line in coloured] == plain


@pytest.mark.parametrize("command", [("report",), ("project", "--trajectories", "1000000", "--workers", "500")])
def test_an_answer_has_bars_below_its_sentence(command: tuple[str, ...]) -> None:
    name, *options = command
    text = printed(name, str(RUN), *options)
    assert re.search(r"by cause, T1 x 50:\ndocker:runc  exec +[\d.]+( s)?  ▒+▓+▞?█+", text.split("\n\n")[1])
    markdown = printed(name, str(RUN), *options, "--format", "markdown")
    assert re.search(r"```text\n.* by cause, T1 x 50:\n(.*\n)+```", markdown)
