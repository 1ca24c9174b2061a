"""Causes of failures and limits of the agent in every importer, in the report, and in the model."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from costmodel import TrainingRun, load, project
from costmodel.recording.causes import CAUSE_POLICIES, cause_of, policy_of, recorded_cause
from costmodel.recording.events import BORROWED, IMAGE_BUILT, IMAGE_CACHED, Mark, TrialEnded
from costmodel.recording.reader import Recording, read_recording
from costmodel.simulation.attempts import Trials
from costmodel.workload.characterization import cause_rates
from costmodel.workload.pool import pools
from taxtui.cli import app
from taxtui.errors import RecordingError
from taxtui.importers import registry
from taxtui.importers.trial import AGENT_LIMITS, ImportedTrial
from tests.support.cost_model.costmodel_files import cell, trial, write
from tests.support.cost_model.stepping import parts, stepped, training_run
from tests.support.importing import (
    LOGS,
    SAMPLES,
    actions_s,
    held_s,
    imported,
    of,
    phases_s,
    starts,
    swe_agent_trajectory,
)

NEMO = SAMPLES / "nemo-gym" / "rollouts.jsonl"
BENCH = SAMPLES / "verifiers-bench" / "prime-r4.json"


def said(*words: object) -> str:
    ran = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def records(*words: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(said(*words, "--format", "json"))
    return found


def ends(name: str, source: Path, out: Path) -> list[tuple[str, str]]:
    """Outcome and cause of each trial."""
    _, events = imported(name, source, out)
    return [(end.outcome, end.cause) for end in sorted(of(events, TrialEnded), key=lambda end: end.trial)]


# ------------------------------------------------------------------------------------------------------ the taxonomy


def test_the_cause_of_an_error_is_harbors() -> None:
    assert cause_of("harbor.errors.AgentSetupTimeoutError") == "sandbox_failed"
    assert cause_of("litellm.RateLimitError") == "model_provider_failed"
    assert policy_of("model_provider_failed", "litellm.RateLimitError").retry
    assert not policy_of("model_provider_failed", "litellm.AuthenticationError").retry
    assert (cause_of("ValueError"), cause_of("ValueError", "create")) == ("unclassified", "sandbox_failed")


def test_a_recording_from_before_causes_has_those_of_its_errors() -> None:
    assert recorded_cause("ok", "", "", "") == ""
    assert recorded_cause("ok", "AgentTimeoutError", "", "") == "agent_exhausted_budget"
    assert recorded_cause("failed", "SandboxLost", "action", "") == "sandbox_failed"
    assert recorded_cause("cancelled", "", "", "") == "cancelled"
    assert recorded_cause("failed", "SandboxLost", "action", "verifier_failed") == "verifier_failed"


# ------------------------------------------------------------------------------------------------------- the importers


def _episode(tmp_path: Path, runtime: dict[str, Any] | None, **trace: Any) -> Path:
    told = json.loads((LOGS / "verifiers-given.jsonl").read_text())
    told["traces"][0] |= trace
    if runtime is not None:
        told["traces"][0]["agent"]["runtime"] = runtime
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps(told))
    return path


def _swe_agent(tmp_path: Path, status: str) -> Path:
    (tmp_path / "x.traj").write_text(json.dumps(swe_agent_trajectory(1.0, exit_status=status)))
    return tmp_path / "x.traj"


@pytest.mark.parametrize(
    ("name", "error", "expected"),
    [
        ("harbor", "VerifierTimeoutError", ("timeout", "verifier_failed")),
        ("harbor", "RuntimeRequestError", ("failed", "sandbox_failed")),
        ("harbor", "AgentSetupTimeoutError", ("timeout", "sandbox_failed")),
        ("harbor", "AgentSafetyRefusalError", ("ok", "agent_refused_task")),
        ("harbor", "AgentTimeoutError", ("ok", "agent_exhausted_budget")),
        ("harbor", "MissingExtraError", ("failed", "harbor_failed")),
        ("harbor", "CancelledError", ("cancelled", "cancelled")),
        ("harbor", "NonZeroAgentExitCodeError", ("ok", "unclassified")),
        ("harbor", "SecretlyNamed", ("failed", "unclassified")),
        ("swe-agent", "exit_environment_error", ("failed", "sandbox_failed")),
        ("swe-agent", "exit_api", ("failed", "model_provider_failed")),
        ("swe-agent", "exit_cost", ("ok", "agent_exhausted_budget")),
        ("swe-agent", "submitted (exit_total_execution_time)", ("ok", "agent_exhausted_budget")),
        ("swe-agent", "submitted (exit_command_timeout)", ("timeout", "sandbox_failed")),
        ("swe-agent", "submitted", ("ok", "")),
        ("verifiers", "SandboxError", ("failed", "sandbox_failed")),
        ("verifiers", "ProviderError", ("failed", "model_provider_failed")),
        ("verifiers", "TunnelError", ("failed", "harbor_failed")),
    ],
)
def test_causes_of_failures(tmp_path: Path, name: str, error: str, expected: tuple[str, str]) -> None:
    source = {
        "harbor": lambda: _harbor(tmp_path, "chat__1", exception_info=_raised(error)),
        "swe-agent": lambda: _swe_agent(tmp_path, error),
        "verifiers": lambda: _episode(tmp_path, None, ok=False, errors=[{"type": error, "message": "m"}]),
    }[name]()
    assert ends(name, source, tmp_path / "out") == [expected]


def test_an_agents_error_before_its_start_is_a_failed_installation(tmp_path: Path) -> None:
    never_ran = {"agent_execution": None, "exception_info": _raised("NonZeroAgentExitCodeError")}
    source = _harbor(tmp_path, "chat__1", **never_ran)
    assert [outcome for outcome, _ in ends("harbor", source, tmp_path / "out")] == ["failed"]


@pytest.mark.parametrize(("cached", "mark"), [(True, IMAGE_CACHED), (False, IMAGE_BUILT)])
def test_verifiers_real_box_is_read_before_the_policy(tmp_path: Path, cached: bool, mark: str) -> None:
    runtime = {"type": "modal", "cpu": 4.0, "memory": 8.0, "image_cached": cached}
    box = _one("verifiers", _episode(tmp_path, runtime))
    assert (box.substrate, box.cpu_milli, box.memory_mib, box.image_cached) == ("modal", 4000, 8192, cached)
    _, events = imported("verifiers", tmp_path / "traces.jsonl", tmp_path / "out")
    assert [event.name for event in of(events, Mark)] == [mark]
    [row] = records("report", tmp_path / "out", "--table", "summary")
    known, other = ("boot_cached_ns", "boot_built_ns")[:: 1 if cached else -1]
    assert row["summary"][known]["p50"]["value"] == 4_200_000_000
    assert (row["summary"][other], row["summary"]["boot_ns"]) == (None, None)


def test_a_borrowed_sandbox_has_no_boot(tmp_path: Path) -> None:
    path = _episode(tmp_path, {"type": "prime", "borrowed": True, "image_cached": True})
    _, events = imported("verifiers", path, tmp_path / "out")
    assert [event.name for event in of(events, Mark)] == [BORROWED]
    assert "create" not in phases_s(events, 0)


def test_rollouts_of_nemo_gym(tmp_path: Path) -> None:
    result, events = imported("nemo-gym", NEMO, tmp_path / "out")
    assert result.outcomes == {"ok": 3, "failed": 1}
    causes = sorted(end.cause for end in of(events, TrialEnded))
    assert causes == ["", "", "agent_exhausted_budget", "sandbox_failed"]
    by_hand = {round(held_s(events, start.trial), 3): start.trial for start in starts(events)}
    observed, summed, started = by_hand[4.25], by_hand[6.0], by_hand[8.5]
    assert actions_s(events, observed) == [1.5, 0.25]
    assert actions_s(events, observed, "think_ns") == [0.0, 2.5]
    assert phases_s(events, summed) == {"verify": 3.0}
    assert phases_s(events, started) == {"create": 8.5, "verify": 20.0}


def test_the_harbor_trial_in_a_rollout_is_that_of_its_result() -> None:
    inside = next(iter(registry.load("nemo-gym").trials(NEMO)))
    assert inside == _one("harbor", SAMPLES / "harbor" / "job" / "task__cFxjvBA" / "result.json")


def test_the_benchmark_of_verifiers(tmp_path: Path) -> None:
    result, events = imported("verifiers-bench", BENCH, tmp_path / "out")
    assert result.outcomes == {"ok": 4, "failed": 1}
    delivered = [end.trial for end in of(events, TrialEnded) if end.outcome == "ok"]
    assert sorted(phases_s(events, number)["create"] for number in delivered) == [7.5, 8.0, 9.0, 12.0]
    assert sum(held_s(events, number) for number in delivered) == pytest.approx(36.5 + 185.0)


def test_json_lines_are_named_where_one_document_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text('{"trial_name": "a"}\n{"trial_name": "b"}\n')
    with pytest.raises(RecordingError, match="JSON lines"):
        imported("harbor", path, tmp_path / "out")


def test_times_without_a_zone_are_said(tmp_path: Path) -> None:
    told = (SAMPLES / "harbor" / "job" / "chat__1" / "result.json").read_text()
    for text, expected in ((told, False), (told.replace('Z"', '"'), True)):
        folder = tmp_path / str(expected)
        folder.mkdir()
        (folder / "result.json").write_text(text)
        result, _ = imported("harbor", folder / "result.json", tmp_path / f"{expected}.msgpack")
        assert any("times without a zone are taken as UTC" in line for line in result.unknown) == expected


# ------------------------------------------------------------------------------------------------ report and model


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
    text = said("report", tmp_path / "a.msgpack", "--table", "failures")
    assert "sandbox_failed" in text
    assert "dropped" in text


def test_only_causes_that_no_harness_retries_are_dropped_in_the_model(tmp_path: Path) -> None:
    recording = load(_failures(tmp_path / "a.msgpack"))
    assert isinstance(recording, Recording)
    [pool] = pools([recording])
    assert {rate.cause: rate.treatment for rate in cause_rates(pool.trials)} == {
        "sandbox_failed": "retried",
        "verifier_failed": "dropped",
        "agent_exhausted_budget": "kept",
    }
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
    path = _episode(tmp_path, {"type": "modal", "cpu": 1.0, "memory": 2.0, "image_cached": False})
    text = said("import", path, "-o", tmp_path / "out", "--summary", "--prices", "modal")
    for quantity in ("delivered", "sandbox failures per hour", "boot, image built", "wall", "sandbox lifetime", "cost"):
        assert quantity in text
    assert re.search(r"cost, \$ +1 +0\.0\d+", text)


def test_delays_for_simulators_have_units_quantiles_and_a_fit(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.msgpack", [trial(number, outcome="ok" if number else "failed") for number in range(5)], cell()
    )
    [row] = records("report", path, "--table", "distributions")
    command = row["delays"]["command"]
    assert (command["unit"], command["n"]) == ("s", 5 * row["longest_actions"])
    assert command["quantiles"]["p01"] <= command["quantiles"]["p50"] <= command["quantiles"]["p99"]
    assert command["lognormal"]["median_s"]["value"] > 0
    lengths = row["actions_per_trajectory"]
    assert (lengths["unit"], lengths["n"], lengths["left_out"]) == ("actions", 4, 1)
    assert row["delays"]["setup"]["n"] in (0, 5)


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


# ------------------------------------------------------------------------------------------ limits of the agent

BEGUN = datetime(2025, 9, 10, tzinfo=UTC)
AGENT_S = {"unset": 408.0, "agent_timeout": 536.0}
"""Of 50 trials and of 30: 456 s on average, and 729.6 s if the 30 were tried again."""


def _result(number: int, mode: str) -> dict[str, Any]:
    begun = BEGUN + timedelta(hours=number)
    after_s = {
        "trial_started_at": 0.0,
        "agent_started_at": 0.0,
        "agent_ended_at": AGENT_S[mode],
        "test_started_at": AGENT_S[mode],
        "test_ended_at": AGENT_S[mode] + 5,
        "trial_ended_at": AGENT_S[mode] + 6,
    }
    instants = {name: (begun + timedelta(seconds=seconds)).isoformat() for name, seconds in after_s.items()}
    return {"task_id": f"t{number}", "failure_mode": mode, **instants}


def test_time_outs_of_the_agent_are_delivered_and_their_time_counts(tmp_path: Path) -> None:
    results = [_result(number, "agent_timeout" if number % 8 < 3 else "unset") for number in range(80)]
    (tmp_path / "results.json").write_text(json.dumps({"n_resolved": 0, "results": results}))
    result, _ = imported("terminal-bench", tmp_path / "results.json", tmp_path / "out.msgpack")
    assert result.outcomes == {"ok": 80}
    assert result.limits == ["30 of 80 trajectories ended by AgentTimeoutError: delivered, not failed"]
    [row] = project([read_recording(tmp_path / "out.msgpack")], TrainingRun(trajectories=1, workers=1))
    assert row.failures == 0
    assert row.held_per_success_s is not None
    assert row.held_per_success_s.value == pytest.approx(456)


def test_a_time_out_without_the_agents_end_counts_until_the_next_instant(tmp_path: Path) -> None:
    told = _result(0, "agent_timeout") | {"agent_ended_at": None}
    (tmp_path / "results.json").write_text(json.dumps(told))
    _, events = imported("terminal-bench", tmp_path / "results.json", tmp_path / "out")
    assert held_s(events, 0) == pytest.approx(536)


def _harbor(tmp_path: Path, name: str, *, steps: dict[int, dict[str, Any]] | None = None, **changes: Any) -> Path:
    told = json.loads((SAMPLES / "harbor" / "job" / name / "result.json").read_text()) | changes
    for number, more in (steps or {}).items():
        told["step_results"][number] |= more
    (tmp_path / "result.json").write_text(json.dumps(told))
    return tmp_path / "result.json"


def _raised(error: str) -> dict[str, Any]:
    return {"exception_type": error, "exception_message": "m", "occurred_at": "2026-11-21T22:00:29Z"}


def test_limits_of_harbors_agent_are_delivered(tmp_path: Path) -> None:
    before, events = imported("harbor", _harbor(tmp_path, "chat__1"), tmp_path / "before")
    assert before.outcomes == {"ok": 1}
    held = held_s(events, 0)
    for error in sorted(AGENT_LIMITS):
        source = _harbor(tmp_path, "chat__1", exception_info=_raised(f"harbor.errors.{error}"))
        _, events = imported("harbor", source, tmp_path / error)
        [end] = of(events, TrialEnded)
        assert (end.outcome, end.phase, end.error) == ("ok", "", f"harbor.errors.{error}")
        assert held_s(events, 0) == held


@pytest.mark.parametrize(
    ("error", "end"),
    [("RuntimeRequestError", ("failed", "action")), ("AgentTimeoutError", ("ok", ""))],
)
def test_an_exception_of_a_step_is_of_its_trial(tmp_path: Path, error: str, end: tuple[str, str]) -> None:
    running = {"started_at": "2026-11-21T22:00:20.000000Z", "finished_at": None}
    raised = {"exception_info": _raised(error), "agent_execution": running, "verifier": None}
    _, events = imported("harbor", _harbor(tmp_path, "steps__1", steps={1: raised}), tmp_path / "out")
    assert [(each.outcome, each.phase, each.error) for each in of(events, TrialEnded)] == [(*end, error)]
    assert held_s(events, 0) == pytest.approx(28)


def _one(name: str, path: Path) -> ImportedTrial:
    [trial] = registry.load(name).trials(path)
    assert isinstance(trial, ImportedTrial)
    return trial


def test_a_rollout_of_verifiers_at_its_agents_deadline_is_delivered(tmp_path: Path) -> None:
    told = json.loads((LOGS / "verifiers-given.jsonl").read_text())
    whole = _one("verifiers", LOGS / "verifiers-given.jsonl")
    path = tmp_path / "traces.jsonl"
    told["traces"][0] |= {"ok": False, "is_timeout": True}
    path.write_text(json.dumps(told))
    trial = _one("verifiers", path)
    assert (trial.failure, trial.limit, trial.end_ns) == (None, "AgentTimeoutError", whole.end_ns)
    told["traces"][0]["errors"] = [{"type": "SandboxError", "message": "m"}]
    path.write_text(json.dumps(told))
    assert _one("verifiers", path).failure == ("SandboxError", "action", "timeout", "")
