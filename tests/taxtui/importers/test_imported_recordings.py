"""What report, project, compare and the live fold say of an imported recording and of causes of failures."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from costmodel import TrainingRun, load, project
from costmodel.recording.causes import CAUSE_POLICIES, cause_of, policy_of, recorded_cause
from costmodel.simulation.attempts import Trials
from costmodel.workload.characterization import cause_rates
from costmodel.workload.pool import pools
from taxtui.cli import app
from taxtui.live import catalogue
from tests.support.command_line import printed
from tests.support.cost_model.costmodel_files import cell, trial, write
from tests.support.cost_model.simulating import attribute_coarsely
from tests.support.cost_model.stepping import parts, stepped, training_run
from tests.support.importing import SAMPLES, episode, events_of, imported
from tests.taxtui.tui.story import fold

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


def records(*words: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(printed(*words, "--format", "json"))
    return found


def test_a_report_marks_them_ranks_no_measured_ones_beside_and_leaves_open_what_nobody_told(
    harbor: Path, reference: Path
) -> None:
    rows = records("report", harbor, reference)
    assert {row["provenance"] for row in rows} == {"imported", "measured"}
    assert not any(row["answer"]["ranked"] for row in rows)
    [row] = records("report", harbor)
    assert row["provenance"] == "imported"
    assert {"imported", "run_time_unknown"} <= set(row["flags"])
    assert row["mean_ns"]["unsplit"] == 2.5 * S
    assert row["mean_ns"]["verify"] == 18 * S
    assert row["mean_ns"]["held"] == 31 * S, "verifying is not held for the trajectory"
    assert (row["mean_ns"]["ready"], row["mean_ns"]["work"], row["mean_ns"]["dispatch"]) == (None, None, None)
    assert row["tax_per_success_ns"]["value"] is None
    assert "(as imported)" in printed("report", harbor)
    text = printed("report", harbor, "--full")
    assert "IMPORTED docker: the resolution of the source's clock is 1.00 µs" in text
    assert all(limit in text for limit in ("≥ 5.00 s", "≤ 7.50 s")), "31 held, 23.5 of them think time, 2.5 tool time"


def test_a_projection_has_tool_time_as_a_cause_and_a_tax_between_bounds(harbor: Path) -> None:
    [row] = records("project", harbor, *ASK)
    causes = row["by_cause"]
    assert causes["unsplit"] == pytest.approx(2.5)
    assert (causes["work"], causes["dispatch"]) == (None, None)
    assert sum(hours for hours in causes.values() if hours) == pytest.approx(row["worker_hours"]["value"])
    assert row["tax_worker_hours"] is None
    assert row["tax_between_worker_hours"] == pytest.approx({"low": 5, "high": 7.5})
    assert "imported" in row["flags"]
    text = printed("project", harbor, *ASK, "--full")
    assert all(part in text for part in ("unsplit: commands", "≥ 5.00", "≤ 7.50"))


def test_a_reference_bounds_dispatch_and_says_so(harbor: Path, reference: Path, tmp_path: Path) -> None:
    [row] = records("project", harbor, *ASK, "--reference", reference)
    assert row["tax_between_worker_hours"] == pytest.approx({"low": 5 + 2 * 0.2, "high": 7.5})
    for words in (("project", harbor, *ASK), ("report", harbor)):
        told = " ".join(printed(*words, "--reference", reference).split())
        assert "docker: at least 200 ms of each command is taken to be dispatch, the median of 3 actions" in told, words
        assert "5.4" in told
    printed("report", harbor, "--reference", reference, "--html", tmp_path / "page.html")
    assert "of each command is taken to be dispatch" in (tmp_path / "page.html").read_text()


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
        assert hasattr(ran.exception, "exit_code")


def test_what_is_missing_of_what_was_held_is_flagged_and_parts_are_a_lower_bound_and_no_tax(tmp_path: Path) -> None:
    imported("otlp", SAMPLES / "otlp", tmp_path / "otlp")
    [row] = records("project", tmp_path / "otlp", *ASK)
    assert "create_untold" in row["flags"]
    [row] = records("report", tmp_path / "otlp")
    assert row["cold_start_ns"]["n"] == 0
    imported("terminal-bench", SAMPLES / "terminal-bench", tmp_path / "tb")
    [row] = records("report", tmp_path / "tb")
    assert {"think_untold", "actions_untold"} <= set(row["flags"])
    assert (row["action_ns"]["n"], row["trajectory_ns"]["n"], row["cold_start_ns"]["n"]) == (0, 0, 1)
    parts = {"responses_create_params": {}, "sandbox_start_time_s": 10.0, "verification_time_s": 40.0}
    (tmp_path / "parts.jsonl").write_text(f"{json.dumps(parts)}\n" * 5)
    out = tmp_path / "out.msgpack"
    imported("nemo-gym", tmp_path / "parts.jsonl", out)
    for words in (("report",), ("project", "--trajectories", "10k")):
        sentence = " ".join(printed(words[0], out, *words[1:]).split())
        assert "takes at least 10 s per trajectory" in sentence
        assert not [words for words in ("100 %", "of it tax") if words in sentence]
    [measured] = records("report", out)
    assert (measured["tax_share_of_held"], measured["mean_ns"]["create"]) == (None, 10 * S)


def test_two_imports_of_the_same_work_are_compared(harbor: Path, tmp_path: Path) -> None:
    source = tmp_path / "slower"
    shutil.copytree(SAMPLES / "harbor" / "job" / "chat__1", source)
    text = (source / "result.json").read_text()
    (source / "result.json").write_text(text.replace("22:00:01.0", "22:00:00.0"))
    imported("harbor", source, tmp_path / "slower.msgpack")
    [row] = records("compare", harbor, tmp_path / "slower.msgpack", "--metric", "mean:held_per_success")
    held_ns = [row[side]["ns"]["value"] for side in ("before", "after")]
    assert held_ns[1] - held_ns[0] == pytest.approx(S), "what it took to come"


def test_a_replay_and_the_list_of_recordings_know_them(harbor: Path, reference: Path) -> None:
    [shown] = fold(events_of(harbor)).cells.values()
    assert (shown.ok, shown.planned, shown.provenance) == (1, 1, "imported")
    assert (shown.mean_ns("unsplit"), shown.mean_ns("verify")) == (2.5 * S, 18 * S)
    entries = [catalogue.inspect(path) for path in (harbor, reference)]
    known = [(True, 1, "complete"), (False, None, "complete")]
    assert [entry and (entry.imported, entry.trials, entry.state) for entry in entries] == known


def _failures(path: Path) -> Path:
    """Eight successes of 3 s, two lost sandboxes, one failed verifier, one agent's time-out that is delivered."""
    ok = [trial(number) for number in range(8)]
    lost = [trial(number, outcome="failed", error="SandboxLost") for number in (8, 9)]
    judged = trial(10, outcome="failed", error="VerifierTimeoutError")
    limited = trial(11, error="AgentTimeoutError")
    return write(path, [*ok, *lost, judged, limited], cell())


def test_rates_by_cause_have_intervals_and_their_treatment(tmp_path: Path) -> None:
    [row] = records("report", _failures(tmp_path / "a.msgpack"), "--table", "failures")
    found = row["failures_by_cause"]
    assert set(found) == set(CAUSE_POLICIES)
    counts = {cause: one["trials"] for cause, one in found.items() if one["trials"]}
    assert counts == {"sandbox_failed": 2, "verifier_failed": 1, "agent_exhausted_budget": 1}
    lost = found["sandbox_failed"]
    assert (lost["model"], found["verifier_failed"]["model"]) == ("retried", "dropped")
    assert found["agent_exhausted_budget"]["model"] == "kept"
    assert lost["share"]["value"] == pytest.approx(2 / 12)
    assert 0 < lost["share"]["low"] < 2 / 12 < lost["share"]["high"] < 1
    assert lost["per_hour"]["low"] < lost["per_hour"]["value"] < lost["per_hour"]["high"]
    text = printed("report", tmp_path / "a.msgpack", "--table", "failures")
    assert all(word in text for word in ("sandbox_failed", "dropped"))


def test_only_causes_that_no_harness_retries_are_dropped_in_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attribute_coarsely(monkeypatch)
    recording = load(_failures(tmp_path / "a.msgpack"))
    [pool] = pools([recording])
    treatments = {"sandbox_failed": "retried", "verifier_failed": "dropped", "agent_exhausted_budget": "kept"}
    assert {rate.cause: rate.treatment for rate in cause_rates(pool.trials)} == treatments
    trials = Trials(pool, TrainingRun(trajectories=10, workers=2))
    assert len(trials.successes) == 9
    assert sorted(one.dropped for one in trials.failures) == [False, False, True]
    steps = {"trajectories": 64, "workers": 8, "prompts": 4, "group_size": 4, "nodes": 2, "pods_per_node": 8}
    for how, expected in ((None, "1 of 3, by cause"), ("retry", None)):
        [row] = project([recording], TrainingRun(**steps, on_failure=how))
        assert row.attribution is not None
        told = {one.name: one.value for one in row.attribution.assumptions}
        assert told.get("failures without a retry") == expected


def test_the_summary_of_an_import_has_money(tmp_path: Path) -> None:
    path = episode(tmp_path, runtime={"type": "modal", "cpu": 1.0, "memory": 2.0, "image_cached": False})
    text = printed("import", path, "-o", tmp_path / "out", "--summary", "--prices", "modal")
    for quantity in ("delivered", "sandbox failures per hour", "boot, image built", "wall", "sandbox lifetime", "cost"):
        assert quantity in text
    assert re.search(r"cost, \$ +1 +0\.0\d+", text)


def test_delays_for_simulators_have_units_quantiles_and_a_fit(tmp_path: Path) -> None:
    trials = [trial(number, outcome="ok" if number else "failed") for number in range(5)]
    path = write(tmp_path / "a.msgpack", trials, cell())
    [row] = records("report", path, "--table", "distributions")
    command = row["delays"]["command"]
    assert (command["unit"], command["n"]) == ("s", 5 * row["longest_actions"])
    assert command["quantiles"]["p01"] <= command["quantiles"]["p50"] <= command["quantiles"]["p99"]
    assert command["lognormal"]["median_s"]["value"] > 0
    lengths = row["actions_per_trajectory"]
    assert (lengths["unit"], lengths["n"], lengths["left_out"]) == ("actions", 4, 1)
    assert row["delays"]["setup"]["n"] in (0, 5)


def test_the_cause_of_an_error_is_harbors() -> None:
    assert cause_of("harbor.errors.AgentSetupTimeoutError") == "sandbox_failed"
    assert cause_of("litellm.RateLimitError") == "model_provider_failed"
    assert policy_of("model_provider_failed", "litellm.RateLimitError").retry
    assert not policy_of("model_provider_failed", "litellm.AuthenticationError").retry
    assert (cause_of("ValueError"), cause_of("ValueError", "create")) == ("unclassified", "sandbox_failed")
    assert recorded_cause("ok", "", "", "") == "", "as in a recording from before causes"
    assert recorded_cause("ok", "AgentTimeoutError", "", "") == "agent_exhausted_budget"
    assert recorded_cause("failed", "SandboxLost", "action", "") == "sandbox_failed"
    assert recorded_cause("cancelled", "", "", "") == "cancelled"
    assert recorded_cause("failed", "SandboxLost", "action", "verifier_failed") == "verifier_failed"


@pytest.mark.parametrize("asked", [{}, {"warm_pool": 4}, {"create_rate": 50.0}], ids=["plain", "pool", "limit"])
def test_a_dropped_rollout_is_not_tried_again_unless_all_are_retried(asked: dict[str, Any]) -> None:
    successes, failures = [parts(work=2)] * 3, [parts(work=1)._replace(dropped=True)]
    left = stepped(training_run(**asked), successes, failures, steps=30)
    again = stepped(training_run(on_failure="retry", **asked), successes, failures, steps=30)
    masked = stepped(training_run(on_failure="mask", **asked), successes, failures, steps=30)
    assert [step.attempts for step in left] == [16.0] * 30
    assert 0.6 < sum(step.delivered for step in left) / (30 * 16) < 0.9
    assert [step.delivered for step in again] == [16.0] * 30
    assert sum(step.attempts for step in again) > 30 * 16
    assert left == masked
