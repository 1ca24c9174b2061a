"""What the samples import to, against the times that stand in them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from costmodel.recording.events import TrialEnded
from taxtui.errors import RecordingError
from taxtui.importers.formats import atif
from tests.support.importing import SAMPLES, actions_s, cell_of, held_s, imported, of, phases_s, starts

JOB = SAMPLES / "harbor" / "job"


def test_a_harbor_trial_of_an_agent_without_a_model(tmp_path: Path) -> None:
    result, events = imported("harbor", JOB / "task__cFxjvBA", tmp_path / "out")
    phases = phases_s(events, 0)
    assert phases == pytest.approx({"create": 1.460928, "preload": 0.000072, "verify": 1.205653})
    assert actions_s(events, 0) == pytest.approx([1.20416])
    assert held_s(events, 0) == pytest.approx(3.903071 - 1.237778)
    assert cell_of(events, 0).resolution_ns == 1_000
    assert "think" not in " ".join(result.unknown), "an oracle does not think"
    assert "run unknown: dispatch and command time are undivided" in result.unknown


def test_tool_calls_with_both_ends_are_the_actions(tmp_path: Path) -> None:
    result, events = imported("harbor", JOB / "chat__1", tmp_path / "out")
    assert actions_s(events, 0) == pytest.approx([0.5, 2])
    assert actions_s(events, 0, "think_ns") == pytest.approx([10, 13.5])
    assert (cell_of(events, 0).cpu_milli, cell_of(events, 0).memory_mib) == (2000, 4096)
    assert not [line for line in result.unknown if line.startswith("actions")]


def test_the_end_of_a_tool_call_is_the_first_valid_one_of_its_result_and_call(tmp_path: Path) -> None:
    [step] = _steps("2026-11-21T22:00:10Z")
    step["tool_calls"][0]["extra"] = {"started_at": "2026-11-21T22:00:10Z", "completed_at": "2026-11-21T22:00:14Z"}
    extra = {"started_at": "2026-11-21T22:00:11Z", "completed_at": None, "ended_at": "2026-11-21T22:00:12Z"}
    step["observation"] = {"results": [{"source_call_id": "1", "extra": extra}]}
    source = _chat(tmp_path, {"agent": {"name": "other"}, "steps": [step]})
    _, events = imported("harbor", source, tmp_path / "out")
    assert actions_s(events, 0) == [2]


def test_an_unreadable_trajectory_has_its_reason(tmp_path: Path) -> None:
    source = _chat(tmp_path, {})
    (source / "agent" / "trajectory.json").write_text("{")
    result, _ = imported("harbor", source, tmp_path / "out")
    assert "actions unknown: trajectory.json is not readable: no JSON, or cut off" in result.unknown


def test_steps_of_one_trial_follow_each_other(tmp_path: Path) -> None:
    _, events = imported("harbor", JOB / "steps__1", tmp_path / "out")
    assert actions_s(events, 0) == pytest.approx([0.5, 0.25, 4])
    assert actions_s(events, 0, "think_ns") == pytest.approx([4, 3, 6])
    assert actions_s(events, 0, "gap_ns") == pytest.approx([2.25, 0, 5]), "the first verify lies between the steps"
    assert phases_s(events, 0)["verify"] == pytest.approx(3), "the last one is behind them"


def _chat(tmp_path: Path, trajectory: dict[str, Any], **changes: Any) -> Path:
    folder = tmp_path / "trial"
    (folder / "agent").mkdir(parents=True)
    result = json.loads((JOB / "chat__1" / "result.json").read_text())
    (folder / "results.json").write_text(json.dumps(result | changes))  # as some forks name it
    (folder / "agent" / "trajectory.json").write_text(json.dumps(trajectory))
    return folder


def _steps(*stamps: str, **extra: Any) -> list[dict[str, Any]]:
    calls = [{"tool_call_id": "1", "function_name": "bash", "arguments": {}}]
    return [{"source": "agent", "timestamp": stamp, "tool_calls": calls, "extra": extra} for stamp in stamps]


TWO_STEPS = _steps("2026-11-21T22:00:10Z", "2026-11-21T22:00:20Z")
MEASURED = _steps("2027-01-01T00:00:00Z", harbor_llm_wait_msec=9000.5, harbor_tool_exec_msec=120)


@pytest.mark.parametrize(
    ("agent", "steps", "actions", "thinks", "said"),
    [
        *((agent, TWO_STEPS, [34], [], "refused: .*harbor_llm_wait_msec") for agent in atif.INVENTED),
        ("mini-swe-agent", MEASURED, [0.12], [9.0005], ""),
        ("other", _steps("2026-11-21T23:00:00Z"), [34], [], "do not lie within the agent's"),
        (
            "other",
            TWO_STEPS + _steps("2026-11-21T22:00:39.5Z"),
            [10, 19.5, 0.5],
            [],
            "think unknown: a step",
        ),
    ],
)
def test_times_of_an_agents_steps_are_believed_where_the_agent_measured_them(
    tmp_path: Path, agent: str, steps: list[dict[str, Any]], actions: list[float], thinks: list[float], said: str
) -> None:
    result, events = imported("harbor", _chat(tmp_path, {"agent": {"name": agent}, "steps": steps}), tmp_path / "out")
    assert actions_s(events, 0) == pytest.approx(actions)
    assert actions_s(events, 0, "think_ns") == pytest.approx(thinks)
    assert re.search(said, "\n".join(result.unknown))


def test_a_harbor_trial_that_failed_says_where(tmp_path: Path) -> None:
    info = {
        "exception_type": "EnvironmentStartTimeoutError",
        "exception_message": "m",
        "occurred_at": "2026-11-21T22:00:31Z",
    }
    setup = {"started_at": "2026-11-21T22:00:01Z", "finished_at": None}
    rest = dict.fromkeys(("agent_setup", "agent_execution", "verifier"))
    source = _chat(tmp_path, {}, exception_info=info, environment_setup=setup, **rest)
    _, events = imported("harbor", source, tmp_path / "out")
    [end] = of(events, TrialEnded)
    assert (end.outcome, end.phase, end.error, end.message) == ("timeout", "create", "EnvironmentStartTimeoutError", "")
    assert held_s(events, 0) == pytest.approx(30)


def test_terminal_bench_is_six_instants(tmp_path: Path) -> None:
    result, events = imported("terminal-bench", SAMPLES / "terminal-bench", tmp_path / "out")
    assert (result.files, result.trials) == (2, 1), "the run's own results are those of its trials"
    assert phases_s(events, 0) == pytest.approx({"create": 20.16, "verify": 5.83, "cleanup": 11.44})
    assert actions_s(events, 0) == pytest.approx([1.67])
    assert any(line.startswith("think unknown") for line in result.unknown)


def test_a_run_of_terminal_bench_without_files_of_its_trials(tmp_path: Path) -> None:
    [trial] = [path for path in (SAMPLES / "terminal-bench").rglob("results.json") if path.parent.name == "trial"]
    told = {"failure_mode": "agent_timeout"} | {
        key: value for key, value in json.loads(trial.read_text()).items() if key != "failure_mode"
    }
    (tmp_path / "results.json").write_text(json.dumps({"n_resolved": 0, "results": [told, {"nothing": 1}]}))
    result, events = imported("terminal-bench", tmp_path / "results.json", tmp_path / "out")
    [end] = of(events, TrialEnded)
    assert (end.outcome, end.error) == ("ok", "AgentTimeoutError")
    assert [line.partition(", ")[2] for line in result.named] == ["result 2: no result of Terminal-Bench"]


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


def test_csv_of_durations_only(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "phase,trial,duration_s\ncreate,a,2\nthink,a,8\naction,a,0.5\ncreate,b,3\naction,b,0.25\naction,a,1\n"
    )
    result, events = imported("csv", tmp_path / "a.csv", tmp_path / "out")
    assert [held_s(events, trial) for trial in (0, 1)] == pytest.approx([10.5, 3.25])
    assert any(line.startswith("instants unknown") for line in result.unknown)
    assert [line.rpartition("csv, ")[2] for line in result.named] == ["line 7: the rows of a trial are not adjacent"]


def test_csv_with_carriage_returns_alone(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"trial,phase,duration_s\ra,action,2\rb,action,3\r")
    result, _ = imported("csv", tmp_path / "a.csv", tmp_path / "out")
    assert (result.trials, result.skipped) == (2, 0)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("trial,start,end\n", "no column phase"),
        ("trial,phase\n", "neither the columns start and end nor duration_s"),
        ("trial,phase,duration_s\na,walk,1\n", "the phase in line 2 is none of"),
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
