"""A limit of the agent ends a delivered trajectory; it is no failure of the sandbox."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from costmodel.analysis.project import project
from costmodel.recording.events import TrialEnded
from costmodel.recording.reader import read_recording
from costmodel.training.run import TrainingRun
from taxtui.importers import registry
from taxtui.importers.protocol import AGENT_LIMITS, ImportedTrial, ReaderOptions
from tests.support.importing import SAMPLES, held_s, imported, of

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


@pytest.mark.parametrize("error", sorted(AGENT_LIMITS))
def test_a_limit_of_harbors_agent_is_delivered(tmp_path: Path, error: str) -> None:
    before, events = imported("harbor", _harbor(tmp_path, "chat__1"), tmp_path / "before")
    assert before.outcomes == {"ok": 1}
    held = held_s(events, 0)
    source = _harbor(tmp_path, "chat__1", exception_info=_raised(f"harbor.errors.{error}"))
    _, events = imported("harbor", source, tmp_path / "out")
    [end] = of(events, TrialEnded)
    assert (end.outcome, end.phase, end.error) == ("ok", "", f"harbor.errors.{error}")
    assert held_s(events, 0) == held


@pytest.mark.parametrize(
    ("error", "outcome"), [("AgentSetupTimeoutError", "timeout"), ("RuntimeRequestError", "failed")]
)
def test_failures_of_harbors_sandbox_stay_failures(tmp_path: Path, error: str, outcome: str) -> None:
    _, events = imported("harbor", _harbor(tmp_path, "chat__1", exception_info=_raised(error)), tmp_path / "out")
    [end] = of(events, TrialEnded)
    assert (end.outcome, end.error) == (outcome, error)


def test_a_step_of_several_fails_its_trial(tmp_path: Path) -> None:
    running = {"started_at": "2026-11-21T22:00:20.000000Z", "finished_at": None}
    failed = {"exception_info": _raised("RuntimeRequestError"), "agent_execution": running, "verifier": None}
    _, events = imported("harbor", _harbor(tmp_path, "steps__1", steps={1: failed}), tmp_path / "out")
    [end] = of(events, TrialEnded)
    assert (end.outcome, end.phase, end.error) == ("failed", "action", "RuntimeRequestError")
    assert held_s(events, 0) == pytest.approx(28)


def test_a_step_that_reaches_the_agents_limit_is_delivered(tmp_path: Path) -> None:
    running = {"started_at": "2026-11-21T22:00:20.000000Z", "finished_at": None}
    limited = {"exception_info": _raised("AgentTimeoutError"), "agent_execution": running}
    _, events = imported("harbor", _harbor(tmp_path, "steps__1", steps={1: limited}), tmp_path / "out")
    [end] = of(events, TrialEnded)
    assert (end.outcome, end.error) == ("ok", "AgentTimeoutError")
    assert held_s(events, 0) == pytest.approx(28)


def _one(name: str, path: Path) -> ImportedTrial:
    [trial] = registry.load(name).trials(path, ReaderOptions())
    assert isinstance(trial, ImportedTrial)
    return trial


def test_a_rollout_of_verifiers_at_its_agents_deadline_is_delivered(tmp_path: Path) -> None:
    told = json.loads((SAMPLES.parents[1] / "logs" / "verifiers-given.jsonl").read_text())
    whole = _one("verifiers", SAMPLES.parents[1] / "logs" / "verifiers-given.jsonl")
    path = tmp_path / "traces.jsonl"
    told["traces"][0] |= {"ok": False, "is_timeout": True}
    path.write_text(json.dumps(told))
    trial = _one("verifiers", path)
    assert (trial.failure, trial.limit, trial.end_ns) == (None, "AgentTimeoutError", whole.end_ns)
    told["traces"][0]["errors"] = [{"type": "SandboxError", "message": "m"}]
    path.write_text(json.dumps(told))
    assert _one("verifiers", path).failure == ("SandboxError", "action", "timeout", "")


def test_swe_agent_out_of_its_execution_time_is_delivered(tmp_path: Path) -> None:
    steps = [{"action": "ls", "observation": "o", "execution_time": 1.0}]
    told = {"trajectory": steps, "info": {"exit_status": "submitted (exit_total_execution_time)"}}
    (tmp_path / "x.traj").write_text(json.dumps(told))
    trial = _one("swe-agent", tmp_path / "x.traj")
    assert (trial.failure, trial.limit) == (None, "TotalExecutionTimeExceeded")
