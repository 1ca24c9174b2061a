"""What report, project, compare and the live fold say of an imported recording."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from taxtui.cli import app
from taxtui.errors import TaxtuiError
from taxtui.live import catalogue
from taxtui.live.state import RunState
from tests.support.cost_model.costmodel_files import cell, trial, write
from tests.support.importing import SAMPLES, events_of, imported

S = 10**9
ASK = ("--trajectories", "3600", "--workers", "1")


@pytest.fixture(scope="module")
def harbor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two docker trials of 26 s and 29 s beyond their first 1 s, verified for 18 s and 3 s."""
    out = tmp_path_factory.mktemp("imported") / "harbor.msgpack"
    imported("harbor", SAMPLES / "harbor" / "job" / "chat__1", out)
    return out


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A docker whose dispatch is 0.1, 0.2 and 0.3 s an action."""
    path = tmp_path_factory.mktemp("reference") / "measured.msgpack"
    recorded = trial(0, actions=[S, S, S], runs=[900_000_000, 800_000_000, 700_000_000])
    return write(path, [recorded], cell(), run_id="measured")


def said(*words: object) -> str:
    ran = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def records(*words: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(said(*words, "--format", "json"))
    return found


def test_a_report_marks_them_and_leaves_open_what_nobody_told(harbor: Path) -> None:
    [row] = records("report", harbor)
    assert row["provenance"] == "imported"
    assert {"imported", "run_time_unknown"} <= set(row["flags"])
    assert row["mean_ns"]["unsplit"] == 2.5 * S
    assert row["mean_ns"]["verify"] == 18 * S
    assert row["mean_ns"]["held"] == 31 * S, "verifying is not held for the trajectory"
    assert (row["mean_ns"]["ready"], row["mean_ns"]["work"], row["mean_ns"]["dispatch"]) == (None, None, None)
    assert row["tax_per_success_ns"]["value"] is None
    assert "(as imported)" in said("report", harbor)
    text = said("report", harbor, "--full")
    assert "IMPORTED docker" in text
    assert "IMPORTED docker: the resolution of the source's clock is 1.00 µs" in text
    assert "≥ 5.00 s" in text, "31 held, 23.5 of them think time, 2.5 of them tool time"
    assert "≤ 7.50 s" in text


def test_they_are_never_ranked_with_measured_ones(harbor: Path, reference: Path) -> None:
    rows = records("report", harbor, reference)
    assert {row["provenance"] for row in rows} == {"imported", "measured"}
    assert not any(row["answer"]["ranked"] for row in rows)


def test_a_projection_has_tool_time_as_a_cause_and_a_tax_between_bounds(harbor: Path) -> None:
    [row] = records("project", harbor, *ASK)
    causes = row["by_cause"]
    assert causes["unsplit"] == pytest.approx(2.5)
    assert (causes["work"], causes["dispatch"]) == (None, None)
    assert sum(hours for hours in causes.values() if hours) == pytest.approx(row["worker_hours"]["value"])
    assert row["tax_worker_hours"] is None
    assert row["tax_between_worker_hours"] == pytest.approx({"low": 5, "high": 7.5})
    assert "imported" in row["flags"]
    text = said("project", harbor, *ASK, "--full")
    assert "unsplit: commands" in text
    assert "≥ 5.00" in text
    assert "≤ 7.50" in text


def test_a_reference_bounds_dispatch_and_says_so(harbor: Path, reference: Path) -> None:
    [row] = records("project", harbor, *ASK, "--reference", reference)
    assert row["tax_between_worker_hours"] == pytest.approx({"low": 5 + 2 * 0.2, "high": 7.5})
    for words in (("project", harbor, *ASK), ("report", harbor)):
        told = " ".join(said(*words, "--reference", reference).split())
        assert "docker: at least 200 ms of each command is taken to be dispatch, the median of 3 actions" in told, words
        assert "5.4" in told


def test_what_a_reference_cannot_bound_it_refuses(harbor: Path, reference: Path, tmp_path: Path) -> None:
    other = tmp_path / "csv.msgpack"
    imported("csv", SAMPLES / "csv", other)
    for words, why in (
        (("report", reference, "--reference", reference), "every row tells its commands' time inside"),
        (("project", harbor, *ASK, "--reference", harbor), "cannot be a reference"),
        (("report", harbor, "--reference", other), "measured prime, and the rows that it could bound ran on"),
        (("report", harbor, "--reference", "scenarios/published/essay.toml"), "published latencies have no dispatch"),
    ):
        ran = CliRunner().invoke(app, [str(word) for word in words])
        assert why in str(ran.exception), words
        assert isinstance(ran.exception, TaxtuiError) or hasattr(ran.exception, "exit_code")


def test_what_is_missing_of_what_was_held_is_flagged(tmp_path: Path) -> None:
    imported("otlp", SAMPLES / "otlp", tmp_path / "otlp")
    [row] = records("project", tmp_path / "otlp", *ASK)
    assert "create_untold" in row["flags"]
    [row] = records("report", tmp_path / "otlp")
    assert row["cold_start_ns"]["n"] == 0
    imported("terminal-bench", SAMPLES / "terminal-bench", tmp_path / "tb")
    [row] = records("report", tmp_path / "tb")
    assert {"think_untold", "actions_untold"} <= set(row["flags"])
    assert (row["action_ns"]["n"], row["trajectory_ns"]["n"], row["cold_start_ns"]["n"]) == (0, 0, 1)


def test_two_imports_of_the_same_work_are_compared(harbor: Path, tmp_path: Path) -> None:
    source = tmp_path / "slower"
    shutil.copytree(SAMPLES / "harbor" / "job" / "chat__1", source)
    text = (source / "result.json").read_text()
    (source / "result.json").write_text(text.replace("22:00:01.0", "22:00:00.0"))
    imported("harbor", source, tmp_path / "slower.msgpack")
    [row] = records("compare", harbor, tmp_path / "slower.msgpack", "--metric", "mean:held_per_success")
    held_ns = [row[side]["ns"]["value"] for side in ("before", "after")]
    assert held_ns[1] - held_ns[0] == pytest.approx(S), "what it took to come"


def test_a_replay_shows_them(harbor: Path) -> None:
    state = RunState()
    for event in events_of(harbor):
        state.apply(event)
    [shown] = state.cells.values()
    assert (shown.ok, shown.planned, shown.provenance) == (1, 1, "imported")
    assert shown.mean_ns("unsplit") == 2.5 * S
    assert shown.mean_ns("verify") == 18 * S


def test_the_list_of_recordings_knows_them(harbor: Path, reference: Path) -> None:
    entries = [catalogue.inspect(path) for path in (harbor, reference)]
    assert [entry and (entry.imported, entry.trials, entry.state) for entry in entries] == [
        (True, 1, "complete"),
        (False, None, "complete"),
    ]


def test_parts_of_the_occupied_time_are_a_lower_bound_and_no_tax(tmp_path: Path) -> None:
    row = {"responses_create_params": {}, "sandbox_start_time_s": 10.0, "verification_time_s": 40.0}
    (tmp_path / "parts.jsonl").write_text(f"{json.dumps(row)}\n" * 5)
    out = tmp_path / "out.msgpack"
    imported("nemo-gym", tmp_path / "parts.jsonl", out)
    for words in (("report",), ("project", "--trajectories", "10k")):
        sentence = " ".join(said(words[0], out, *words[1:]).split())
        assert "takes at least 10 s per trajectory" in sentence
        assert "100 %" not in sentence
        assert "of it tax" not in sentence
    [measured] = records("report", out)
    assert (measured["tax_share_of_held"], measured["mean_ns"]["create"]) == (None, 10 * S)


def test_a_page_names_the_reference_too(harbor: Path, reference: Path, tmp_path: Path) -> None:
    said("report", harbor, "--reference", reference, "--html", tmp_path / "page.html")
    assert "of each command is taken to be dispatch" in (tmp_path / "page.html").read_text()
