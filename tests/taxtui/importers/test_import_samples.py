"""What the samples import to, against the times that stand in them; and how trials ended, with their causes."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from costmodel import TrainingRun, project
from costmodel.recording.events import TrialEnded
from costmodel.recording.reader import read_recording
from taxtui.errors import RecordingError
from taxtui.importers import registry
from taxtui.importers.formats import atif, terminal_bench
from taxtui.importers.trial import AGENT_LIMITS
from tests.support.importing import (
    LOGS,
    SAMPLES,
    actions_s,
    cell_of,
    episode,
    held_s,
    imported,
    of,
    one,
    phases_s,
    starts,
    swe_agent_trajectory,
    written,
)

JOB = SAMPLES / "harbor" / "job"
NEMO = SAMPLES / "nemo-gym" / "rollouts.jsonl"
BENCH = SAMPLES / "verifiers-bench" / "prime-r4.json"


def harbor(folder: Path, name: str = "chat__1", **changes: Any) -> Path:
    """The result of a sample's trial, changed; ``step`` changes its second step."""
    told = json.loads((JOB / name / "result.json").read_text())
    if step := changes.pop("step", None):
        told["step_results"][1] |= step
    return written(folder / "result.json", told | changes)


def raised(error: str) -> dict[str, str]:
    return {"exception_type": error, "exception_message": "m", "occurred_at": "2026-11-21T22:00:29Z"}


def test_harbor_trials_without_a_model_with_both_ends_of_tool_calls_and_of_several_steps(tmp_path: Path) -> None:
    result, events = imported("harbor", JOB / "task__cFxjvBA", tmp_path / "out")
    phases = phases_s(events, 0)
    assert phases == pytest.approx({"create": 1.460928, "preload": 0.000072, "verify": 1.205653})
    assert actions_s(events, 0) == pytest.approx([1.20416])
    assert held_s(events, 0) == pytest.approx(3.903071 - 1.237778)
    assert cell_of(events, 0).resolution_ns == 1_000
    assert "think" not in " ".join(result.unknown), "an oracle does not think"
    assert "run unknown: dispatch and command time are undivided" in result.unknown
    result, events = imported("harbor", JOB / "chat__1", tmp_path / "chat")
    assert actions_s(events, 0) == pytest.approx([0.5, 2])
    assert actions_s(events, 0, "think_ns") == pytest.approx([10, 13.5])
    assert (cell_of(events, 0).cpu_milli, cell_of(events, 0).memory_mib) == (2000, 4096)
    assert not [line for line in result.unknown if line.startswith("actions")]
    _, events = imported("harbor", JOB / "steps__1", tmp_path / "steps")
    assert actions_s(events, 0) == pytest.approx([0.5, 0.25, 4])
    assert actions_s(events, 0, "think_ns") == pytest.approx([4, 3, 6])
    assert actions_s(events, 0, "gap_ns") == pytest.approx([2.25, 0, 5]), "the first verify lies between the steps"
    assert phases_s(events, 0)["verify"] == pytest.approx(3), "the last one is behind them"


def _chat(tmp_path: Path, trajectory: str) -> Path:
    folder = tmp_path / "trial"
    (folder / "agent").mkdir(parents=True)
    (folder / "results.json").write_text((JOB / "chat__1" / "result.json").read_text())  # as some forks name it
    (folder / "agent" / "trajectory.json").write_text(trajectory)
    return folder


def _steps(*stamps: str, **extra: Any) -> list[dict[str, Any]]:
    calls = [{"tool_call_id": "1", "function_name": "bash", "arguments": {}}]
    return [{"source": "agent", "timestamp": stamp, "tool_calls": calls, "extra": extra} for stamp in stamps]


TWO_STEPS = _steps("2026-11-21T22:00:10Z", "2026-11-21T22:00:20Z")
MEASURED = _steps("2027-01-01T00:00:00Z", harbor_llm_wait_msec=9000.5, harbor_tool_exec_msec=120)
WAIT = {**_steps("2027-01-01T00:00:00Z", harbor_llm_wait_msec=6000)[0], "tool_calls": []}
OF_CALL = {"started_at": "2026-11-21T22:00:10Z", "completed_at": "2026-11-21T22:00:14Z"}
OF_RESULT = {"started_at": "2026-11-21T22:00:11Z", "completed_at": None, "ended_at": "2026-11-21T22:00:12Z"}
BOTH_ENDS = {
    **TWO_STEPS[0],
    "tool_calls": [{**TWO_STEPS[0]["tool_calls"][0], "extra": OF_CALL}],
    "observation": {"results": [{"source_call_id": "1", "extra": OF_RESULT}]},
}
"""Of a call's and its result's ends the first valid one counts."""


@pytest.mark.parametrize(
    ("agent", "steps", "actions", "thinks", "said"),
    [
        *((agent, TWO_STEPS, [34], [], "refused: .*harbor_llm_wait_msec") for agent in atif.INVENTED),
        ("mini-swe-agent", MEASURED, [0.12], [9.0005], ""),
        ("mini-swe-agent", [WAIT, *MEASURED, *MEASURED, WAIT], [0.12, 0.12], [15.0005, 9.0005], ""),
        ("other", [BOTH_ENDS], [2], None, ""),
        ("other", [BOTH_ENDS, TWO_STEPS[1]], [2], None, "actions partly unknown: some tool calls have no ends"),
        ("other", _steps("2026-11-21T23:00:00Z"), [34], [], "do not lie within the agent's"),
        ("terminus-2", TWO_STEPS, [4, 10], [], "think unknown: a step has a single time: the model's answer is part"),
        ("terminus-2 timed", TWO_STEPS, [1.5, 7], [2.5, 3], "gaps unknown: the harness's time is part of the command"),
        ("other", TWO_STEPS + _steps("2026-11-21T22:00:39.5Z"), [10, 19.5, 0.5], [], "think unknown: a step"),
    ],
)
def test_times_of_an_agents_steps_are_believed_where_the_agent_measured_them(
    tmp_path: Path, agent: str, steps: list[dict[str, Any]], actions: list[float], thinks: list[float] | None, said: str
) -> None:
    source = _chat(tmp_path, json.dumps({"agent": {"name": agent.split()[0]}, "steps": steps}))
    if agent.endswith("timed"):
        harbor(source, agent_result={"metadata": {"api_request_times_msec": [2500, 3000, 1000]}})
        (source / "results.json").unlink()
    result, events = imported("harbor", source, tmp_path / "out")
    assert actions_s(events, 0) == pytest.approx(actions)
    assert thinks is None or actions_s(events, 0, "think_ns") == pytest.approx(thinks)
    assert re.search(said, "\n".join(result.unknown))


def test_a_harbor_trial_that_failed_says_where(tmp_path: Path) -> None:
    changes: dict[str, Any] = dict.fromkeys(("agent_setup", "agent_execution", "verifier"))
    changes["exception_info"] = raised("EnvironmentStartTimeoutError") | {"occurred_at": "2026-11-21T22:00:31Z"}
    changes["environment_setup"] = {"started_at": "2026-11-21T22:00:01Z", "finished_at": None}
    _, events = imported("harbor", harbor(tmp_path, **changes), tmp_path / "out")
    [end] = of(events, TrialEnded)
    assert (end.outcome, end.phase, end.error, end.message) == ("timeout", "create", "EnvironmentStartTimeoutError", "")
    assert held_s(events, 0) == pytest.approx(30)


@pytest.mark.parametrize(
    ("error", "end"), [("RuntimeRequestError", ("failed", "action")), ("AgentTimeoutError", ("ok", ""))]
)
def test_an_exception_of_a_step_is_of_its_trial(tmp_path: Path, error: str, end: tuple[str, str]) -> None:
    running = {"started_at": "2026-11-21T22:00:20.000000Z", "finished_at": None}
    step = {"exception_info": raised(error), "agent_execution": running, "verifier": None}
    _, events = imported("harbor", harbor(tmp_path, "steps__1", step=step), tmp_path / "out")
    assert [(each.outcome, each.phase, each.error) for each in of(events, TrialEnded)] == [(*end, error)]
    assert held_s(events, 0) == pytest.approx(28)


def test_limits_of_harbors_agent_are_delivered(tmp_path: Path) -> None:
    before, events = imported("harbor", harbor(tmp_path), tmp_path / "before")
    assert before.outcomes == {"ok": 1}
    held = held_s(events, 0)
    for error in sorted(AGENT_LIMITS):
        source = harbor(tmp_path, exception_info=raised(f"harbor.errors.{error}"))
        _, events = imported("harbor", source, tmp_path / error)
        [end] = of(events, TrialEnded)
        assert (end.outcome, end.phase, end.error) == ("ok", "", f"harbor.errors.{error}")
        assert held_s(events, 0) == held


def test_an_unreadable_trajectory_has_its_reason_and_json_lines_are_named(tmp_path: Path) -> None:
    result, _ = imported("harbor", _chat(tmp_path, "{"), tmp_path / "out")
    assert "actions unknown: trajectory.json is not readable: no JSON, or cut off" in result.unknown
    path = tmp_path / "result.json"
    path.write_text('{"trial_name": "a"}\n{"trial_name": "b"}\n')
    with pytest.raises(RecordingError, match="JSON lines"):
        imported("harbor", path, tmp_path / "lines")


@pytest.mark.parametrize(("zone", "said"), [('Z"', False), ('"', True)])
def test_times_without_a_zone_are_said(tmp_path: Path, zone: str, said: bool) -> None:
    source = harbor(tmp_path)
    source.write_text(source.read_text().replace('Z"', zone))
    result, _ = imported("harbor", source, tmp_path / "out")
    assert any("times without a zone are taken as UTC" in line for line in result.unknown) == said


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
        ("harbor before its start", "NonZeroAgentExitCodeError", ("failed", None)),  # a failed installation
        ("swe-agent", "exit_environment_error", ("failed", "sandbox_failed")),
        ("swe-agent", "exit_api", ("failed", "model_provider_failed")),
        ("swe-agent", "exit_cost", ("ok", "agent_exhausted_budget")),
        ("swe-agent", "submitted (exit_total_execution_time)", ("ok", "agent_exhausted_budget")),
        ("swe-agent", "submitted (exit_command_timeout)", ("timeout", "sandbox_failed")),
        ("swe-agent", "submitted", ("ok", "")),
        ("swe-agent", "", ("cancelled", "cancelled")),  # saved after a step that was not the last
        ("mini-swe-agent", "", ("cancelled", "cancelled")),
        ("mini-swe-agent", "TimeoutExpired", ("timeout", "unclassified")),
        ("mini-swe-agent", "OSError", ("failed", "unclassified")),
        ("verifiers", "SandboxError", ("failed", "sandbox_failed")),
        ("verifiers", "ProviderError", ("failed", "model_provider_failed")),
        ("verifiers", "TunnelError", ("failed", "harbor_failed")),
    ],
)
def test_causes_of_failures(tmp_path: Path, name: str, error: str, expected: tuple[str, str | None]) -> None:
    match name.split()[0]:
        case "harbor":
            never_ran = {"agent_execution": None} if "before" in name else {}
            source = harbor(tmp_path, exception_info=raised(error), **never_ran)
        case "swe-agent":
            source = written(tmp_path / "x.traj", swe_agent_trajectory(1.0, exit_status=error))
        case "mini-swe-agent":
            told = json.loads((LOGS / "slept.traj.json").read_text())
            source = written(tmp_path / "x.traj.json", told | {"info": told["info"] | {"exit_status": error}})
        case _:
            source = episode(tmp_path, ok=False, errors=[{"type": error, "message": "m"}])
    _, events = imported(name.split()[0], source, tmp_path / "out")
    [end] = of(events, TrialEnded)
    assert (end.outcome, end.cause if expected[1] is not None else None) == expected


def test_rollouts_of_nemo_gym(tmp_path: Path) -> None:
    result, events = imported("nemo-gym", NEMO, tmp_path / "out")
    assert result.outcomes == {"ok": 3, "failed": 1}
    causes = sorted(end.cause for end in of(events, TrialEnded))
    assert causes == ["", "", "agent_exhausted_budget", "sandbox_failed"]
    by_hand = {round(held_s(events, start.trial), 3): start.trial for start in starts(events)}
    observed, summed, started = by_hand[4.25], by_hand[6.0], by_hand[8.5]
    assert (actions_s(events, observed), actions_s(events, observed, "think_ns")) == ([1.5, 0.25], [0.0, 2.5])
    assert phases_s(events, summed) == {"verify": 3.0}
    assert phases_s(events, started) == {"create": 8.5, "verify": 20.0}
    inside = next(iter(registry.load("nemo-gym").trials(NEMO)))
    assert inside == one("harbor", JOB / "task__cFxjvBA" / "result.json")


def test_the_benchmark_of_verifiers(tmp_path: Path) -> None:
    result, events = imported("verifiers-bench", BENCH, tmp_path / "out")
    assert result.outcomes == {"ok": 4, "failed": 1}
    delivered = [end.trial for end in of(events, TrialEnded) if end.outcome == "ok"]
    assert sorted(phases_s(events, number)["create"] for number in delivered) == [7.5, 8.0, 9.0, 12.0]
    assert sum(held_s(events, number) for number in delivered) == pytest.approx(36.5 + 185.0)
    for errors, outcomes, skipped in ((3, {"ok": 2, "failed": 3}, 0), (0, {"ok": 4}, 1)):
        source = written(tmp_path / "bench.json", json.loads(BENCH.read_text()) | {"errors": errors})
        result, _ = imported("verifiers-bench", source, tmp_path / f"{errors}")
        assert (result.outcomes, result.skipped) == (outcomes, skipped)


def test_terminal_bench_is_six_instants(tmp_path: Path) -> None:
    result, events = imported("terminal-bench", SAMPLES / "terminal-bench", tmp_path / "out")
    assert (result.files, result.trials) == (2, 1), "the run's own results are those of its trials"
    assert phases_s(events, 0) == pytest.approx({"create": 20.16, "verify": 5.83, "cleanup": 11.44})
    assert actions_s(events, 0) == pytest.approx([1.67])
    assert any(line.startswith("think unknown") for line in result.unknown)


AGENT_S = {"unset": 408, "agent_timeout": 536}
"""Of 50 trials and of 30: 456 s on average, and 729.6 s if the 30 were tried again."""


def _result(number: int, mode: str, **changes: None) -> dict[str, Any]:
    begun, ended_s = datetime(2025, 9, 10, tzinfo=UTC) + timedelta(hours=number), AGENT_S[mode]
    after_s = zip(terminal_bench.STAMPS, (0, 0, ended_s, ended_s, ended_s + 5, ended_s + 6), strict=True)
    instants = {stamp: (begun + timedelta(seconds=seconds)).isoformat() for stamp, seconds in after_s}
    return {"task_id": f"t{number}", "failure_mode": mode, **instants, **changes}


def test_time_outs_of_the_agent_are_delivered_and_their_time_counts(tmp_path: Path) -> None:
    results = [_result(number, "agent_timeout" if number % 8 < 3 else "unset") for number in range(80)]
    source = written(tmp_path / "results.json", {"n_resolved": 0, "results": [*results, {"nothing": 1}]})
    result, _ = imported("terminal-bench", source, tmp_path / "out.msgpack")
    assert result.outcomes == {"ok": 80}
    assert result.limits == ["30 of 80 trajectories ended by AgentTimeoutError: delivered, not failed"]
    assert [line.partition(", ")[2] for line in result.named] == ["result 81: no result of Terminal-Bench"]
    [row] = project([read_recording(tmp_path / "out.msgpack")], TrainingRun(trajectories=1, workers=1))
    assert row.failures == 0
    assert row.held_per_success_s is not None
    assert row.held_per_success_s.value == pytest.approx(456)
    source = written(tmp_path / "results.json", _result(0, "agent_timeout", agent_ended_at=None))
    _, events = imported("terminal-bench", source, tmp_path / "without-its-end")
    assert held_s(events, 0) == pytest.approx(536), "until the next instant"


def test_otlp_by_the_conventions_and_by_map(tmp_path: Path) -> None:
    source = SAMPLES / "otlp" / "traces.jsonl"
    result, events = imported("otlp", source, tmp_path / "plain")
    assert actions_s(events, 0) == pytest.approx([0.25, 2])
    assert actions_s(events, 0, "think_ns") == pytest.approx([5, 2.5])
    assert any("--map NAME=create" in line for line in result.unknown)
    assert held_s(events, 0) == pytest.approx(10)

    result, events = imported("otlp", source, tmp_path / "mapped", span_phases={"sandbox.create": "create"})
    assert phases_s(events, 0) == pytest.approx({"create": 3.5})
    assert held_s(events, 0) == pytest.approx(14)
    assert not [line for line in result.unknown if line.startswith("create")]


def traced(folder: Path, *spans: tuple[str, str, str, int, int]) -> Path:
    """A trace of spans: name, parent, operation, start and end in seconds."""
    told = [
        {"traceId": "t", "spanId": name, "parentSpanId": parent}
        | {f"{key}TimeUnixNano": f"{1795297000 + at}000000000" for key, at in (("start", start), ("end", end))}
        | {"attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": operation}}]}
        for name, parent, operation, start, end in spans
    ]
    return written(folder / "x.json", {"resourceSpans": [{"scopeSpans": [{"spans": told}]}]})


def test_a_command_of_several_spans_counts_once_and_one_of_an_agent_is_the_agents(tmp_path: Path) -> None:
    outer = [("a", "", "invoke_agent", 0, 60), ("1", "a", "chat", 0, 5), ("2", "a", "execute_tool", 5, 10)]
    layers = [("3", "2", "execute_tool", 6, 9), ("3", "2", "execute_tool", 6, 9)]
    agent_as_tool = [("4", "a", "execute_tool", 12, 50), ("b", "4", "invoke_agent", 13, 49)]
    inside = [("5", "b", "chat", 13, 20), ("6", "b", "execute_tool", 20, 30), ("7", "6", "execute_tool", 29, 31)]
    _, events = imported("otlp", traced(tmp_path, *outer, *layers, *agent_as_tool, *inside), tmp_path / "out")
    assert (actions_s(events, 0), actions_s(events, 0, "think_ns")) == ([5, 10, 1], [5, 7, 0])


def test_spans_outside_of_every_agent_are_counted(tmp_path: Path) -> None:
    agents = [(f"a{number}", "", "invoke_agent", 0, 1) for number in range(2)]
    tools = [(f"t{number}", f"a{number}", "execute_tool", 0, 1) for number in range(52)]
    result, events = imported("otlp", traced(tmp_path, *agents, *tools), tmp_path / "out")
    assert [len(actions_s(events, number)) for number in range(result.trials)] == [1, 1]
    assert [line.partition("json, ")[2] for line in result.named] == [
        "line 1: 50 spans of the trace are outside of every agent"
    ]


def test_csv_rows(tmp_path: Path) -> None:
    result, events = imported("csv", SAMPLES / "csv", tmp_path / "out", keep_names=True)
    assert phases_s(events, 0) == pytest.approx({"create": 4.2, "preload": 1.8, "verify": 11})
    assert actions_s(events, 0) == pytest.approx([2.1, 1.3])
    assert actions_s(events, 0, "run_ns") == pytest.approx([1.9, 1])
    assert actions_s(events, 0, "think_ns") == pytest.approx([10, 10.5])
    first, second = starts(events)
    assert (first.task, first.group, first.training_step) == ("fix", "g1", 42)
    ends = {end.trial: (end.outcome, end.error) for end in of(events, TrialEnded)}
    assert ends == {first.trial: ("ok", ""), second.trial: ("timeout", "AgentTimeout")}
    assert result.outcomes == {"ok": 1, "timeout": 1}


@pytest.mark.parametrize(("newline", "line"), [("\n", 7), ("\r", 1)])
def test_csv_of_durations_only(tmp_path: Path, newline: str, line: int) -> None:
    rows = ("phase,trial,duration_s", "create,a,2", "think,a,8", "action,a,0.5", "create,b,3", "action,b,0.25")
    (tmp_path / "a.csv").write_bytes(newline.join([*rows, "action,a,1", ""]).encode())
    result, events = imported("csv", tmp_path / "a.csv", tmp_path / "out")
    assert [held_s(events, trial) for trial in (0, 1)] == pytest.approx([10.5, 3.25])
    assert any(line.startswith("instants unknown") for line in result.unknown)
    left_out = [name.rpartition("csv, ")[2] for name in result.named]
    assert left_out == [f"line {line}: the rows of a trial are not adjacent"]
    rows = (
        "trial,phase,start,end,exit_code",
        "a,action,1795297003,1795297004,1.0",
        "a,create,1795297000,1795297002",
        "a,action,nan,nan",
    )
    (tmp_path / "b.csv").write_bytes(newline.join(rows).encode())
    trial = one("csv", tmp_path / "b.csv")
    assert (trial.dated, trial.actions) == (True, ((10**9, 0, 10**9, -1, 1),)), "in the order of time"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("trial,start,end\n", "no column phase"),
        ("trial,phase\n", "neither the columns start and end nor duration_s"),
        ("trial,phase,duration_s\na,walk,1\n", "the phase in line 2 is none of"),
        ("trial,phase,duration_s,outcome\na,action,1,Failed\n", "the outcome is none of ok, failed, timeout, canc"),
        ("trial,phase,duration_s\na,action,-1\n", "no row of the trial has a valid time"),
    ],
)
def test_csv_that_is_none_says_what_is_missing(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(RecordingError, match=why):
        imported("csv", tmp_path / "a.csv", tmp_path / "out")


def test_computesdk_is_cold_starts_at_their_concurrency(tmp_path: Path) -> None:
    result, events = imported("computesdk", SAMPLES / "computesdk", tmp_path / "out")
    told = [
        (cell.substrate, cell.concurrency, cell.arrival, phases_s(events, start.trial).get("create"))
        for start in starts(events)
        for cell in [cell_of(events, start.trial)]
    ]
    assert sorted(told, key=str) == [
        ("daytona", 2, "staggered:200ms", 0.150125),
        ("daytona", 2, "staggered:200ms", 0.151),
        ("e2b", 1, "sequential", 0.39825),
        ("e2b", 1, "sequential", 0.4125),
        ("e2b", 1, "sequential", None),
        ("modal", 100, "burst", 1.8005),
    ]
    assert result.outcomes == {"ok": 5, "failed": 1}
