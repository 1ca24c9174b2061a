"""``taxtui project``: tables, records, explanations and refusals."""

from __future__ import annotations

import csv
import functools
import io
import json
import re
from pathlib import Path

import pytest

from costmodel.analysis import questions
from taxtui.options.training_file import TEMPLATE
from taxtui.report import numbers
from taxtui.report.words import DO, FAMILY, WORDS
from taxtui.terminal_text import width
from tests.support.command_line import printed
from tests.support.cost_model.costmodel_files import S, cell, trial, write
from tests.support.cost_model.simulating import attribute_coarsely, simulate_once

ROW = """
    cell_id substrate variant tier actions mode concurrency arrival levels environment recordings trials failures
    provenance trajectory_s held_per_success_s worker_hours tax_worker_hours by_cause wall_clock_hours cost
    vs_baseline flags
""".split()  # noqa: SIM905  # the names of a row's fields
ESSAY = "scenarios/published/essay.toml"
ASK = ("--trajectories", "10000", "--workers", "500")


@functools.cache
def projected(*words: str) -> str:
    return printed("project", *words)


@pytest.fixture(autouse=True)
def _simulated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    simulate_once(monkeypatch)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    trials = [trial(n, block=n, create=(2 + n % 3) * S, runs=[S // 2] * 3) for n in range(40)]
    trials += [trial(n, cell=1, block=n, create=(9 + n % 3) * S, runs=[S // 2] * 3) for n in range(50, 90)]
    trials += [trial(100, cell=1, actions=[S], outcome="failed")]
    path = tmp_path_factory.mktemp("projected") / "run.msgpack"
    return str(write(path, trials, cell(0), cell(1, substrate="kubernetes", variant="kata")))


def test_the_published_tables_are_printed() -> None:
    lines = [line.split() for line in printed("project", ESSAY, *ASK, "--full").splitlines()]
    rows = {line[0]: " ".join(line[1:]) for line in lines if len(line) == 7 and line[5] == "min"}
    assert rows == {
        "Docker": "14.1 s 39.2 4.70 min -16.7",
        "EC2": "30.5 s 84.7 10.2 min +28.9",
        "K8's": "20.1 s 55.8 6.70 min –",
        "Fargate": "2.69 min 449 53.8 min +393",
        "Daytona": "12.9 s 35.8 4.30 min -20.0",
    }, "to three digits, where the essay has two"
    size = ("--trajectories", "1000000", "--workers", "500")
    text = printed("project", "scenarios/published/paper.toml", *size, "--full")
    for number in ("11,811", "6,495", "+5,316", "42.5 s", "23.4 s"):
        assert number in text


def test_shipped_files_go_by_name_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = printed("project", ESSAY, *ASK)
    monkeypatch.chdir(tmp_path)
    for name in (ESSAY, "published/essay.toml", "essay.toml", "essay", "./" + ESSAY):
        assert printed("project", name, *ASK) == here


EVERYTHING = """
    --set baseline=docker --set full_speed=docker --batch 512 --train-seconds 60 --gpus 256 --set gpu_usd_hour=2
    --set max_attempts=3 --think lognormal:2s,0.6 --set create_rate=5 --set create_burst=10 --set warm_pool=50
    --set refill_s=2 --set over_provision=0.2 --set timeout_s=10000 --set backoff_s=1 --set quota=400
    --set include_cleanup=true
""".split()  # noqa: SIM905  # words of a command line, as one would type them


@pytest.mark.parametrize("more", [[], ["--explain"], [*EVERYTHING, "--explain"], ["--length", "90"]])
def test_the_table_fits_80_columns(recording: str, more: list[str]) -> None:
    published = [] if "--think" in more else [ESSAY]  # which refuses next to everything
    lines = projected(recording, *published, *ASK, *more, "--full").splitlines()
    assert max(map(width, lines)) <= 80
    assert ("Causes of the worker-hours" in lines) != ("--batch" in more), "the step model separates its own causes"


def test_every_flag_is_explained_in_words(recording: str) -> None:
    rows = json.loads(projected(recording, *ASK, "--format", "json"))
    text = " ".join(projected(recording, *ASK).split())
    in_all = set.intersection(*({FAMILY[flag] for flag in row["flags"]} for row in rows))
    assert in_all
    assert all(f" {family} (" in text for family in in_all)
    for row in rows:
        for flag in row["flags"]:
            assert DO[flag] in text
        assert row["do"] == [f"{flag}: {DO[flag]}" for flag in row["flags"][:2]]
    told = " ".join(projected(recording, *ASK, "--explain").split())
    assert all(f"{flag} {WORDS[flag]}; {DO[flag]}" in told for row in rows for flag in row["flags"])


def test_json_rows_hold_the_contract(recording: str) -> None:
    docker, kata = json.loads(projected(recording, *ASK, "--set", "baseline=docker", "--format", "json"))
    assert set(docker) >= set(ROW)
    assert set(docker["trajectory_s"]) == {
        *("mean", "low", "high"),
        *(f"p{p}{part}" for p in (50, 95, 99) for part in ("", "_low", "_high", "_needs_trials")),
    }
    assert set(docker["worker_hours"]) == set(docker["tax_worker_hours"]) == {"value", "low", "high"}
    causes = ("startup", "dispatch", "slowdown", "contention", "work", "harness", "queued", "think", "failed")
    assert tuple(docker["by_cause"]) == causes
    assert set(docker["wall_clock_hours"]) == {*("value", "low", "high", "fluid", "method", "error", "needs_trials")}
    assert (docker["cost"], docker["vs_baseline"], docker["provenance"]) == (None, None, "measured")
    assert set(kata["vs_baseline"]) >= {"worker_hours", "low", "high", "tie"}
    assert (kata["trials"], kata["failures"], kata["variant"]) == (41, 1, "kata")
    everything = json.loads(projected(recording, *ASK, *EVERYTHING, "--format", "json"))
    assert everything[0]["gpu"]["sync"]["waiting_usd"] == pytest.approx(
        2 * everything[0]["gpu"]["sync"]["waiting_gpu_hours"]
    )
    assert everything[0]["steps"]["launched"] == 615
    assert 0 < everything[0]["warm_pool"]["hit"] <= 1


def test_csv_has_one_line_per_row(recording: str) -> None:
    rows = list(csv.DictReader(io.StringIO(projected(recording, ESSAY, *ASK, "--format", "csv"))))
    assert len(rows) == 7
    assert float(rows[0]["worker_hours.value"]) == pytest.approx(10_000 * float(rows[0]["held_per_success_s"]) / 3600)
    assert rows[-1]["by_cause.startup"] == ""
    assert "by_cause" not in rows[0]


def test_explain_can_be_followed_by_hand(recording: str) -> None:
    _, row = json.loads(projected(recording, *ASK, "--format", "json"))
    text = projected(recording, *ASK, "--explain", "-s", "kubernetes")
    words = " ".join(text.split())
    held = [trial(n, create=(9 + n % 3) * S)[-1][6] - n * 1000 * S for n in range(50, 90)]
    assert f"H_ok, held by successes {numbers.seconds(sum(held) / S)} s" in words
    assert "H_f, held by failures 4 s" in words
    assert "K, successes 40" in words
    assert f"(H_ok + H_f) / K = {numbers.seconds((sum(held) / S + 4) / 40)} s" in words
    assert f"= {row['worker_hours']['value']:,.9g}" in words
    assert "docker" not in text


def test_rows_are_compared_with_a_baseline_that_is_not_shown(recording: str) -> None:
    ask = (*ASK, "--set", "baseline=docker")
    docker, kata = json.loads(projected(recording, *ask, "--format", "json"))
    assert json.loads(projected(recording, *ask, "-s", "kubernetes", "--format", "json")) == [kata]
    delta = kata["vs_baseline"]["worker_hours"]
    for form, parts in (
        (("csv",), (docker["cell_id"], str(delta))),
        (("table", "--full"), ("vs docker", numbers.number(delta, signed=True))),
        (("markdown", "--full"), ("vs docker", numbers.number(delta, signed=True))),
    ):
        text = projected(recording, *ask, "-s", "kubernetes", "--format", *form)
        assert all(part in text for part in parts), form
    assert "vs docker" not in projected(recording, *ask, "-s", "docker", "--full")


def test_explain_of_published_and_failed_rows(tmp_path: Path) -> None:
    published = printed("project", ESSAY, *ASK, "--explain")
    assert "N·L/3600 = 10,000 · 14.1 / 3600 = 39.1666667" in " ".join(published.split())
    cells = cell(0), cell(1, tier="T9")
    failed = str(write(tmp_path / "both", [trial(1), trial(2, cell=1, outcome="failed")], *cells))
    assert "Nothing to compute: no_success" in printed("project", failed, *ASK, "--explain")


def test_explain_has_no_closed_form_of_a_simulated_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attribute_coarsely(monkeypatch)
    file = str(write(tmp_path / "a", list(map(trial, range(8)))))
    asked = ("--trajectories", "64", "--workers", "16", "--batch", "16", "--set", "failure_rate=50%", "--explain")
    text = " ".join(printed("project", file, *asked).split())
    assert re.search(r"attempts per trajectory [12]\.\d+: simulated", text)
    assert not [words for words in ("N · held", "upper bound", "(1 − ", "no_failures") if words in text]


@pytest.mark.parametrize(
    "words",
    [
        "--trajectories x",
        "--set policy=sync",
        "--train-seconds nan --batch 5",
        "--think soon",
        "--format json --explain",
        "--prices aws-fargate",
        f"{ESSAY} --batch 5 --gpus 8",
        "nowhere.msgpack",
    ],
)
def test_bad_input_is_one_line_and_a_documented_exit_code(recording: str, words: str) -> None:
    printed("project", recording, *ASK, *words.split(), code=4 if "nowhere" in words else 2)


def test_decide_refuses_missing_node_prices_before_it_simulates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "rows_of", lambda *_, **__: pytest.fail("simulated"))
    file = str(write(tmp_path / "r.msgpack", [trial(n) for n in range(8)], cell(substrate="docker", tier="T1")))
    (tmp_path / "lab.toml").write_text(TEMPLATE)
    line = "docker costs nothing here and daytona is billed: add nodes, pods_per_node and node_usd_hour"
    assert line in printed("decide", file, "--to", "daytona", "--training", tmp_path / "lab.toml", code=2)
