"""The answer on the command line: its table, which rows it is about, their order, and what json and csv have of it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from costmodel.analysis.project import project
from costmodel.analysis.ranking import answer_of
from costmodel.recording.reader import load
from costmodel.training.run import TrainingRun
from taxtui.report.answer import sections
from taxtui.report.answer.measured import summary
from taxtui.report.formats.plain_tables import to_text
from taxtui.terminal_text import width
from tests.support.command_line import printed
from tests.support.cost_model.costmodel_files import S, cell, trial, write

RECORDINGS = Path(__file__).parents[3] / "recordings"
SHORT = str(RECORDINGS / "short.msgpack")
ASK = ("--trajectories", "1000000", "--workers", "500")


def works(text: str) -> list[str]:
    """The first columns of the first table's lines."""
    lines = text.split("\n\n")[3].splitlines()[2:]
    return [" ".join(line.split()[:3]) for line in lines]


@pytest.mark.parametrize("command", [("project", SHORT, *ASK), ("report", SHORT)])
def test_the_sentence_and_the_table_come_first(command: tuple[str, ...]) -> None:
    text = printed(*command)
    assert " ".join(text.split("\n\n")[0].split()).startswith(
        "docker:runc exec runs 2.97 ± 0.19 times longer than local:bwrap exec for T1 x 10; "
    )
    assert works(text)[:3] == ["T0 10 exec", "T0 10 session", "T0 50 exec"]
    assert "Causes of the worker-hours" not in text
    assert "Cold start" not in text
    assert "--full" in text
    assert max(map(width, text.splitlines())) <= 80
    full = printed(*command, "--full")
    assert full.startswith(text.partition("\n\n")[0])
    assert len(full) > 2 * len(text)


def test_no_name_and_no_number_is_cut_however_narrow_the_terminal() -> None:
    found = answer_of(project([load(RECORDINGS / "run.msgpack")], TrainingRun(trajectories=10**6, workers=500)))
    told = sections.sections(found, "asked", full=True)
    for columns in (50, 80, 120, 200):
        text = to_text(told, columns)
        assert max(map(width, text.splitlines())) <= columns
        assert not re.search(r"\w…(\s|$)", text), "an ellipsis is in intervals only"
        for piece in ("T1 150 session", "3.48x ±0.29", "190 ±6", "docker:runc"):
            assert piece in text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--tier", "T2"), ["T2 10 exec", "T2 10 session"]),
        (("--tier", "T2", "--mode", "exec"), ["T2 10 exec"]),
    ],
)
def test_rows_are_chosen_before_they_are_ranked(words: tuple[str, ...], expected: list[str]) -> None:
    for command in (("project", SHORT, *ASK), ("report", SHORT)):
        assert works(printed(*command, *words)) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--tier", "T9"), "no row is of --tier T9; there are T0, T1, T2"),
        (("--mode", "shell"), "no row is of --mode shell; there are exec, session"),
        (("--substrate", "docker:runsc"), "no row is of --substrate docker:runsc; there are docker:runc, local:bwrap"),
    ],
)
def test_what_means_nothing_is_refused_by_name(words: tuple[str, ...], expected: str) -> None:
    for command in (("project", SHORT, *ASK), ("report", SHORT), ("compare", SHORT, SHORT)):
        assert printed(*command, *words, code=2) == expected


def test_lengths_are_in_numeric_order_for_people_and_as_recorded_for_programs(tmp_path: Path) -> None:
    cells = [cell(0, actions=4), cell(1, actions=30), cell(2, actions=4, mode="session"), cell(3, actions=10)]
    trials = [trial(9 * n + m, cell=n, actions=[S] * cells[n][6]) for n in range(4) for m in range(3)]
    file = str(write(tmp_path / "a", trials, *cells))
    assert [row["actions"] for row in json.loads(printed("project", file, *ASK, *JSON))] == [4, 30, 10, 4]
    assert works(printed("project", file, *ASK)) == ["T2 4 exec", "T2 4 session", "T2 10 exec", "T2 30 exec"]
    lines = printed("project", file, *ASK, "--full").partition("Causes of the worker-hours")[0].splitlines()
    named = [line.split()[1] for line in lines if line.startswith("T2 ") and "±" in line]
    assert named[-4:] == ["4", "4", "10", "30"]


JSON = ("--format", "json")


def test_json_and_csv_have_the_answer_in_every_row() -> None:
    for command in (("project", SHORT, *ASK), ("report", SHORT)):
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
    heads = text.split("\n\n")[3].splitlines()[0]
    assert "docker" in heads
    assert "T1 " in text
    assert not {"T0", "T2"} & set(text.split())
    chosen = json.loads(printed("project", SHORT, *ASK, "--set", "baseline=docker", "--tier", "T1", *JSON))
    assert {row["tier"] for row in chosen} == {"T1"}


def test_tables_are_the_answer_or_one_or_all_and_nothing_is_ignored() -> None:
    assert "--full is every table, --table tax one" in printed("report", SHORT, "--full", "--table", "tax", code=2)
    assert "--full is for people" in printed("report", SHORT, "--full", *JSON, code=2)


def test_what_ran_at_a_time_is_a_line_of_its_own(tmp_path: Path) -> None:
    trials = [trial(9 * n + m, cell=n, create=(2 + n) * S) for n in range(2) for m in range(4)]
    file = write(tmp_path / "a", trials, cell(0), cell(1, concurrency=8))
    for text in (printed("report", str(file)), summary(file)):
        assert "T2 3 exec concurrency 1" in text
        assert "T2 3 exec concurrency 8" in text
    rows = json.loads(printed("report", str(file), *JSON))
    assert [row["answer"]["work"] for row in rows] == ["T2 3 exec concurrency 1", "T2 3 exec concurrency 8"]


def test_a_run_ends_with_the_table_the_sentence_and_the_bars() -> None:
    told = summary(RECORDINGS / "short.msgpack")
    assert told.startswith("Time that one delivered trajectory occupies a worker, and how many times the")
    *_, sentence, bars = told.split("\n\n")
    assert " ".join(sentence.split()).startswith("docker:runc exec runs 2.97 ± ")
    assert bars.startswith("Time of one delivered trajectory by cause, T1 x 10:\ndocker:runc  exec ")
    assert len(told.splitlines()) <= 32, "less than two small screens"


@pytest.mark.parametrize("label", ["x" * 250, "コンテナ" * 20, "a\x1b[31m[bold]|b"], ids=["long", "wide", "steering"])
def test_hostile_labels_neither_steer_nor_widen(tmp_path: Path, label: str) -> None:
    trials = [trial(n, create=(2 + n % 3) * S) for n in range(4)]
    more = [trial(n, cell=1, create=(5 + n % 3) * S) for n in range(5, 9)]
    file = write(tmp_path / "a", [*trials, *more], cell(0, substrate=label), cell(1, tier=label))
    for words in (("project", str(file), *ASK), ("report", str(file))):
        text = printed(*words)
        assert "\x1b" not in text
        assert max(map(width, text.splitlines())) <= 80
        assert len(text.splitlines()) < 150
