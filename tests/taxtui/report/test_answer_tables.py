"""The answer on the command line: its table, which rows it is about, their order, and what json and csv have of it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from costmodel.analysis.project import project
from costmodel.analysis.ranking import Answer, answer_of
from costmodel.projection.row import CAUSES as ATTRIBUTED
from costmodel.projection.row import ByCause
from costmodel.recording.reader import load
from costmodel.training.run import TrainingRun
from taxtui.report import bars
from taxtui.report.answer import sections
from taxtui.report.answer.measured import summary
from taxtui.report.formats.plain_tables import to_text
from taxtui.report.palette import LOOKS
from taxtui.report.words import CAUSES
from taxtui.terminal_text import width
from tests.support.command_line import printed
from tests.support.cost_model.costmodel_files import S, cell, trial, write
from tests.support.cost_model.simulating import attribute_coarsely

RECORDINGS = Path(__file__).parents[3] / "recordings"
SHORT, RUN = str(RECORDINGS / "short.msgpack"), str(RECORDINGS / "run.msgpack")
ASK = ("--trajectories", "1000000", "--workers", "500")
JSON = ("--format", "json")
COMMANDS = [("project", SHORT, *ASK), ("report", SHORT)]


@pytest.fixture(scope="module")
def answer() -> Answer:
    return answer_of(project([load(RUN)], TrainingRun(trajectories=10**6, workers=500)))


@pytest.fixture(scope="module")
def chart(answer: Answer) -> bars.BarChart:
    return bars.chart(answer)


def works(text: str) -> list[str]:
    """The first columns of the first table's lines."""
    lines = text.split("\n\n")[3].splitlines()[2:]
    return [" ".join(line.split()[:3]) for line in lines]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_sentence_and_the_table_come_first(command: tuple[str, ...]) -> None:
    text = printed(*command)
    assert " ".join(text.split("\n\n")[0].split()).startswith(
        "docker:runc exec takes 2.97 ± 0.19 times as long as local:bwrap exec for T1 x 10; "
    )
    assert re.search(r"by cause, T1 x 10:\ndocker:runc  exec +[\d.]+( m?s)?  ▒+▓+▞?█+", text.split("\n\n")[1])
    assert works(text)[:3] == ["T0 10 exec", "T0 10 session", "T0 50 exec"]
    assert not [title for title in ("Causes of the worker-hours", "Cold start") if title in text]
    assert "--full" in text
    assert max(map(width, text.splitlines())) <= 80
    full = printed(*command, "--full")
    assert full.startswith(text.partition("\n\n")[0])
    assert len(full) > 2 * len(text)
    markdown = printed(*command, "--format", "markdown")
    assert re.search(r"```text\n.* by cause, T1 x 10:\n(.*\n)+```", markdown)


def test_no_name_and_no_number_is_cut_however_narrow_the_terminal(answer: Answer) -> None:
    told = sections.sections(answer, "asked", full=True)
    for columns in (50, 80, 120, 200):
        text = to_text(told, columns)
        assert max(map(width, text.splitlines())) <= columns
        assert not re.search(r"\w…(\s|$)", text), "an ellipsis is in intervals only"
        for piece in ("T1 150 session", "3.48x ±0.29", "190 ±6", "docker:runc"):
            assert piece in text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--tier T2", ["T2 10 exec", "T2 10 session"]),
        ("--tier T2 --mode exec", ["T2 10 exec"]),
        ("--tier T9", "no row is of --tier T9; there are T0, T1, T2"),
        ("--mode shell", "no row is of --mode shell; there are exec, session"),
        ("--substrate docker:runsc", "no row is of --substrate docker:runsc; there are docker:runc, local:bwrap"),
    ],
)
def test_rows_are_chosen_before_they_are_ranked_or_refused_by_name(words: str, expected: list[str] | str) -> None:
    for command in COMMANDS:
        if isinstance(expected, list):
            assert works(printed(*command, *words.split())) == expected
        else:
            assert printed(*command, *words.split(), code=2) == expected
            assert printed("compare", SHORT, SHORT, *words.split(), code=2) == expected


def test_lengths_are_in_numeric_order_for_people_and_as_recorded_for_programs(tmp_path: Path) -> None:
    cells = [cell(0, actions=4), cell(1, actions=30), cell(2, actions=4, mode="session"), cell(3, actions=10)]
    trials = [trial(9 * n + m, cell=n, actions=[S] * cells[n][6]) for n in range(4) for m in range(3)]
    file = str(write(tmp_path / "a", trials, *cells))
    assert [row["actions"] for row in json.loads(printed("project", file, *ASK, *JSON))] == [4, 30, 10, 4]
    assert works(printed("project", file, *ASK)) == ["T2 4 exec", "T2 4 session", "T2 10 exec", "T2 30 exec"]
    lines = printed("project", file, *ASK, "--full").partition("Causes of the worker-hours")[0].splitlines()
    named = [line.split()[1] for line in lines if line.startswith("T2 ") and "±" in line]
    assert named[-4:] == ["4", "4", "10", "30"]


@pytest.mark.parametrize("command", COMMANDS)
def test_json_and_csv_have_the_answer_in_every_row(command: tuple[str, ...]) -> None:
    rows: list[dict[str, Any]] = json.loads(printed(*command, *JSON))
    cells = {row["cell_id"] for row in rows}
    for row in rows:
        told = row["answer"]
        assert told["ranked"]
        assert told["cheapest"] == (row["substrate"] == "local")
        assert (told["against"] in cells) == (told["ratio"]["value"] is not None) == (not told["cheapest"])
    lines = list(csv.DictReader(io.StringIO(printed(*command, "--format", "csv"))))
    assert [line["answer.work"] for line in lines] == [row["answer"]["work"] for row in rows]
    assert {line["answer.verdict"] for line in lines} >= {"", "differs"}


def test_the_baseline_is_what_ratios_are_to_and_has_a_column() -> None:
    text = printed("project", SHORT, *ASK, "--set", "baseline=docker", "--substrate", "local", "--tier", "T1")
    assert "how many times docker" in " ".join(text.split())
    assert "0.276x" in text or "0.278x" in text, "local, in the table"
    assert "docker" in text.split("\n\n")[3].splitlines()[0]
    assert "T1 " in text
    assert not {"T0", "T2"} & set(text.split())


def test_tables_are_the_answer_or_one_or_all_and_nothing_is_ignored() -> None:
    assert "--full is every table, --table tax one" in printed("report", SHORT, "--full", "--table", "tax", code=2)
    assert "--full is for people" in printed("report", SHORT, "--full", *JSON, code=2)


def test_what_ran_at_a_time_is_a_line_of_its_own(tmp_path: Path) -> None:
    trials = [trial(9 * n + m, cell=n, create=(2 + n) * S) for n in range(2) for m in range(4)]
    file = write(tmp_path / "a", trials, cell(0), cell(1, concurrency=8))
    works = ["T2 3 exec concurrency 1", "T2 3 exec concurrency 8"]
    for text in (printed("report", file), summary(file)):
        assert all(work in text for work in works)
    assert [row["answer"]["work"] for row in json.loads(printed("report", file, *JSON))] == works


def test_a_run_ends_with_the_table_the_sentence_and_the_bars() -> None:
    told = summary(RECORDINGS / "short.msgpack")
    assert told.startswith("Time that one delivered trajectory occupies a worker, and how many times the")
    *_, sentence, drawn = told.split("\n\n")
    assert " ".join(sentence.split()).startswith("docker:runc exec takes 2.97 ± ")
    assert drawn.startswith("Time of one delivered trajectory by cause, T1 x 10:\ndocker:runc  exec ")
    assert len(told.splitlines()) <= 32, "less than two small screens"


def test_every_cause_has_one_name_one_letter_one_hatch_and_one_colour() -> None:
    assert list(LOOKS) == list(CAUSES)
    assert {*ByCause._fields, *ATTRIBUTED} <= LOOKS.keys()
    for field in ByCause._fields:
        others = [LOOKS[other] for other in ByCause._fields if CAUSES[other] != CAUSES[field]]
        for part in range(3):
            assert LOOKS[field][part] not in {look[part] for look in others}, field
    assert all(width(look.hatch) == width(look.letter) == 1 for look in LOOKS.values())


def test_the_bars_are_those_of_the_headline_in_both_modes(answer: Answer, chart: bars.BarChart) -> None:
    assert chart.title == "Worker-hours by cause, T1 x 50"
    named = [(name, mode) for mode in ("exec", "session") for name in ("docker:runc", "local:bwrap")]
    assert [(bar.name, bar.mode) for bar in chart.bars] == named
    (line,) = [line for line in answer.lines if line.name == "T1 50 exec"]
    amounts = {entry.place.name: entry.amount for entry in line.entries}
    for bar in chart.bars[:2]:
        amount = amounts[bar.name]
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


def test_rows_without_any_cost_have_bars_without_length(chart: bars.BarChart) -> None:
    free = bars.draw(chart._replace(bars=[bar._replace(parts={}) for bar in chart.bars]), 80, bars.Pen())
    assert not re.findall("[▒▓▞█▘]", "".join(free))


def test_the_bars_of_a_run_in_steps_are_ordered_by_the_cost_that_they_show(monkeypatch: pytest.MonkeyPatch) -> None:
    attribute_coarsely(monkeypatch)
    asked = TrainingRun(trajectories=512, workers=16, batch=64, gpus=8, gpu_usd_hour=2.0)
    for line in (answer := answer_of(project([load(RECORDINGS / "small.msgpack")], asked))).lines:
        sizes = [sum(bar.parts.values()) for bar in bars.bars_of(answer, line)]
        assert sizes
        assert sizes == sorted(sizes, reverse=True)


def terminal(encoding: str = "utf-8", *, tty: bool = True) -> SimpleNamespace:
    """A stream that says that it is a terminal of an encoding."""
    return SimpleNamespace(encoding=encoding, isatty=lambda: tty)


def test_colour_is_for_terminals_that_have_it_and_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert bars.pen_of(terminal()) == bars.Pen(hatches=True, colour=True)
    assert bars.pen_of(terminal(tty=False)) == bars.Pen(hatches=True, colour=False)
    assert not any(bars.pen_of(terminal(encoding)).hatches for encoding in ("latin-1", "ascii"))
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", "")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert not bars.pen_of(terminal()).colour


def test_without_block_characters_causes_are_letters(chart: bars.BarChart) -> None:
    text = "\n".join(bars.draw(chart, 80, bars.Pen(hatches=False)))
    assert text.isascii()
    assert "S startup  D dispatch" in text
    assert re.search(r"S+D+#+", text)


def test_colour_adds_nothing_but_colour(chart: bars.BarChart) -> None:
    plain, coloured = (bars.draw(chart, 80, bars.Pen(colour=colour)) for colour in (False, True))
    assert plain != coloured
    assert [re.sub(r"\x1b\[[\d;]+m", "", line) for line in coloured] == plain
