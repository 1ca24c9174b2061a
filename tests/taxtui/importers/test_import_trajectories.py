"""verifiers, inspect_ai, mini-swe-agent, SWE-agent: the figures of files that they wrote, and what is refused."""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from costmodel.recording.events import BORROWED, IMAGE_BUILT, IMAGE_CACHED, Mark
from taxtui import installed
from taxtui.errors import TaxtuiError
from taxtui.importers import registry
from taxtui.importers.files import Unreadable
from taxtui.importers.importing import reader_for
from taxtui.importers.protocol import HEAD_BYTES, Skipped
from taxtui.importers.trial import ImportedTrial
from tests.support.command_line import printed
from tests.support.importing import (
    LOG_FILES,
    LOGS,
    episode,
    imported,
    inspect_event,
    inspect_log,
    of,
    one,
    phases_s,
    swe_agent_trajectory,
    verifiers_result,
    written,
)

SWE_AGENT_S = (0.116, 0.138, 1.951, 0.138, 0.327, 0.228, 0.115, 0.119, 0.139, 0.753, 0.217, 0.115, 0.121)


def unknown(trial: ImportedTrial) -> dict[str, str]:
    return {each.quantity: each.why for each in trial.unknown}


def ms(trial: ImportedTrial) -> list[tuple[float, float, float]]:
    return [(a.think_ns / 1e6, a.gap_ns / 1e6, a.duration_ns / 1e6) for a in trial.actions]


@pytest.mark.parametrize(("name", "file"), [(name, file) for name, files in LOG_FILES.items() for file in files])
def test_each_file_is_recognised_by_its_own_reader_alone(name: str, file: str) -> None:
    assert reader_for(None, [LOGS / file]).name == name
    head = (LOGS / file).read_bytes()[:HEAD_BYTES]
    assert [known for known in registry.names() if registry.load(known).recognises(LOGS / file, head)] == [name]


def test_an_episode_of_verifiers_with_and_without_calls(tmp_path: Path) -> None:
    trial = one("verifiers", LOGS / "verifiers-given.jsonl")
    assert ms(trial) == [(10_000, 100, 2_100), (10_500, 0, 1_300)]
    assert [(phase.name, phase.duration_ns / 1e9) for phase in trial.phases] == [
        ("create", 4.2),
        ("preload", 1.8),
        ("verify", 0.4),
        ("verify", 10.6),
    ]
    assert (trial.end_ns - trial.start_ns) / 1e9 == 30
    assert (trial.group, trial.training_step, trial.image) == ("g17", 42, "swe/x:1")
    assert (trial.substrate, trial.cpu_milli, trial.memory_mib) == ("prime", 1000, 2048)
    assert unknown(trial).keys() == {"run", "ready", "exit codes"}
    without_calls = one("verifiers", episode(tmp_path, calls=[]))
    assert ms(without_calls) == [(20_500, 0, 3_500)]
    assert {"actions", "think"} <= unknown(without_calls).keys()


def test_a_rollout_that_failed_ends_with_what_is_known(tmp_path: Path) -> None:
    told = json.loads((LOGS / "verifiers-given.jsonl").read_text())
    trace = told["traces"][0]
    del trace["timing"]["agent"]["end"], trace["timing"]["finalize"], trace["timing"]["scoring"]
    trace |= {"ok": False, "errors": [{"type": error, "message": "m"} for error in ("SandboxError", "AgentTimeout")]}
    trial = one("verifiers", written(tmp_path / "traces.jsonl", told))
    assert trial.failure == ("AgentTimeout", "action", "timeout", "")
    assert (trial.end_ns - trial.start_ns) / 1e9 == 28.7  # the last answer: later ones are not told
    trace["timing"] |= {"boot": {"start": trace["timing"]["start"]}, "setup": {}, "agent": {}}
    trace["calls"] = []
    trial = one("verifiers", written(tmp_path / "traces.jsonl", told))
    assert trial.failure is not None
    assert trial.failure.phase == "create"
    assert "held" in unknown(trial)


def test_a_command_ends_at_the_start_of_a_call_and_follows_no_failed_one(tmp_path: Path) -> None:
    ends = [(6.0, 16.0), (18.0, 0.0), (48.0, 58.0), (60.0, 61.0), (63.0, 70.0)]
    calls = [{"time": {"start": 1795297000 + start, "end": end and 1795297000 + end}} for start, end in ends]
    calls[3]["error"] = {"type": "ProviderError"}
    timing = json.loads((LOGS / "verifiers-given.jsonl").read_text())["traces"][0]["timing"]
    timing["agent"]["end"] = 1795297072.0
    trial = one("verifiers", episode(tmp_path, calls=calls, timing=timing))
    assert ms(trial) == [(10_000, 0, 2_000), (10_000, 30_000, 2_000), (8_000, 2_000, 2_000)]
    assert {"actions", "think"} <= {each.quantity for each in trial.unknown if each.partly}


def test_of_two_views_of_one_step_the_whole_one_is_read(tmp_path: Path) -> None:
    for folder in ("step_1/train/all", "step_1/train/effective", "step_2/train/effective"):
        (tmp_path / folder).mkdir(parents=True)
        episode(tmp_path / folder)
    found = [path.relative_to(tmp_path).parts[:3] for path in registry.load("verifiers").files(tmp_path)]
    assert found == [("step_1", "train", "all"), ("step_2", "train", "effective")]


@pytest.mark.parametrize(("cached", "mark"), [(True, IMAGE_CACHED), (False, IMAGE_BUILT)])
def test_verifiers_real_box_is_read_before_the_policy_and_a_borrowed_one_has_no_boot(
    tmp_path: Path, cached: bool, mark: str
) -> None:
    path = episode(tmp_path, runtime={"type": "modal", "cpu": 4.0, "memory": 8.0, "image_cached": cached})
    box = one("verifiers", path)
    assert (box.substrate, box.cpu_milli, box.memory_mib, box.image_cached) == ("modal", 4000, 8192, cached)
    _, events = imported("verifiers", path, tmp_path / "out")
    assert [event.name for event in of(events, Mark)] == [mark]
    [row] = json.loads(printed("report", tmp_path / "out", "--table", "summary", "--format", "json"))
    known, other = ("boot_cached_ns", "boot_built_ns")[:: 1 if cached else -1]
    assert row["summary"][known]["p50"]["value"] == 4_200_000_000
    assert (row["summary"][other], row["summary"]["boot_ns"]) == (None, None)
    path = episode(tmp_path, runtime={"type": "prime", "borrowed": True, "image_cached": cached})
    _, events = imported("verifiers", path, tmp_path / "borrowed")
    assert [event.name for event in of(events, Mark)] == [BORROWED]
    assert "create" not in phases_s(events, 0)


def test_a_rollout_of_verifiers_at_its_agents_deadline_is_delivered(tmp_path: Path) -> None:
    whole = one("verifiers", LOGS / "verifiers-given.jsonl")
    trial = one("verifiers", episode(tmp_path, ok=False, is_timeout=True))
    assert (trial.failure, trial.limit, trial.end_ns) == (None, "AgentTimeoutError", whole.end_ns)
    errors = [{"type": "SandboxError", "message": "m"}]
    failure = one("verifiers", episode(tmp_path, ok=False, is_timeout=True, errors=errors)).failure
    assert failure == ("SandboxError", "action", "timeout", "")


def test_a_result_of_verifiers_before_1(tmp_path: Path) -> None:
    span = {"start": 1000.0, "end": 1020.0, "duration": 20.0}
    timing = {
        "start_time": 1000.0,
        "setup": {"start": 1000.0, "end": 1003.0},
        "generation": span,
        "scoring": {"start": 1020.0, "end": 1024.0},
        "model": {"spans": [{"start": 1003.0, "end": 1008.0}, {"start": 1009.5, "end": 1015.0}]},
        "env": {"spans": [{"start": 1008.0, "end": 1009.5}, {"start": 1015.0, "end": 1020.0}]},
    }
    path = tmp_path / "results.jsonl"
    timings = (timing, {"generation_ms": 5.0, "total_ms": 6.0}, True)
    path.write_text("\n".join(json.dumps(verifiers_result() | {"timing": each}) for each in timings))
    assert reader_for(None, [path]).name == "verifiers"
    trial, refused, damaged = registry.load("verifiers").trials(path)
    assert isinstance(damaged, Skipped)
    assert isinstance(trial, ImportedTrial)
    assert ms(trial) == [(5_000, 0, 1_500), (5_500, 0, 5_000)]
    assert (trial.task, trial.group) == ("swe:3", "swe:3")
    assert isinstance(refused, Skipped)
    assert "sums in milliseconds" in refused.why


def test_a_log_of_inspect() -> None:
    trial = one("inspect", LOGS / "inspect-given.eval")
    assert ms(trial) == [(1024.168, 788.119, 589.679), (4.267, 12.928, 446.376)]
    assert [action.exit_code for action in trial.actions] == [0, 1]
    assert [(phase.name, phase.duration_ns / 1e6) for phase in trial.phases] == [("create", 55.537), ("verify", 0.93)]
    assert trial.substrate == "local"
    assert unknown(trial).keys() == {"run", "ready"}


@pytest.mark.parametrize(
    ("name", "file", "slept_s", "most_s"),
    [
        ("inspect", "inspect-slept.eval", (0.2, 0.5, 0.05), (0.9055, 1.0096, 0.546)),
        ("mini-swe-agent", "slept.traj.json", (0.2, 0.5, 0.05, 0.75), (0.2197, 0.5159, 0.0724, 0.816)),
        ("verifiers", "verifiers-slept.jsonl", (0.2, 0.5, 0.05), (0.478, 0.5673, 0.1187)),
    ],
)
def test_known_sleeps_lie_between_themselves_and_what_was_measured_around_them(
    name: str, file: str, slept_s: tuple[float, ...], most_s: tuple[float, ...]
) -> None:
    actions = one(name, LOGS / file).actions
    assert len(actions) >= len(slept_s) if name == "verifiers" else len(actions) == len(slept_s)
    for action, slept, most in zip(actions, slept_s, most_s, strict=False):
        assert slept <= action.duration_ns / 1e9 <= most
    assert all(action.think_ns / 1e9 >= 0.3 for action in actions[name == "mini-swe-agent" : len(slept_s)])


def test_a_log_as_json_whose_tool_calls_stand_for_commands(tmp_path: Path) -> None:
    inner = inspect_event("model", 3, 4)  # an agent within a tool, as older versions keep it
    events = [inspect_event("model", 1, 2), inspect_event("tool", 2, 5, events=[inner], result="x"), {"event": "info"}]
    events += [inspect_event("tool", 1, 6, agent_span_id="s")]
    path = written(tmp_path / "log.json", inspect_log(events, sandbox=["docker", "compose.yaml"]))
    assert reader_for(None, [path]).name == "inspect"
    trial = one("inspect", path)
    assert trial.substrate == "docker"
    assert [(a.think_ns / 1e9, a.duration_ns / 1e9) for a in trial.actions] == [(1.0, 3.0)]
    assert {"actions", "create"} <= unknown(trial).keys()


def test_steps_of_older_versions_separate_setup_and_scoring_from_the_trajectory(tmp_path: Path) -> None:
    def step(kind: str | None, start_s: int, end_s: int, *inside: dict[str, Any]) -> list[dict[str, Any]]:
        begin = inspect_event("step", start_s, end_s, action="begin", type=kind, name="init")
        return [begin, *inside, begin | {"action": "end", "timestamp": begin["completed"]}]

    solving = inspect_event("model", 2, 5), inspect_event("sandbox", 5, 6)
    init, first = (
        step(kind, at, at + 1, inspect_event("sandbox", at, at + 1)) for kind, at in ((None, 1), ("scorer", 7))
    )
    events = [*init, *step("solver", 2, 6, *solving), *first, *step("scorer", 8, 20, inspect_event("model", 9, 20))]
    trial = one("inspect", written(tmp_path / "log.json", inspect_log(events)))
    assert ms(trial) == [(3_000, 0, 1_000)]
    assert [phase.duration_ns / 1e9 for phase in trial.phases] == [1, 1, 12]


def test_a_sample_with_an_error_failed_and_one_at_its_limit_did_not(tmp_path: Path) -> None:
    error = {"message": "TimeoutError('secret')", "traceback": "secret"}
    trial = one("inspect", written(tmp_path / "a.json", inspect_log([inspect_event("sandbox", 1, 2)], error=error)))
    assert trial.failure == ("TimeoutError", "action", "timeout", "")
    assert trial.end_ns - trial.start_ns == 60 * 10**9
    limited = inspect_log([inspect_event("sandbox", 1, 2)], limit={"type": "turn", "limit": 3})
    trial = one("inspect", written(tmp_path / "b.json", limited))
    assert (trial.failure, trial.limit) == (None, "LimitsExceeded")
    without_ends = inspect_log([{"event": kind, "timestamp": "2025-01-01T00:00:01Z"} for kind in ("model", "tool")])
    [skipped] = registry.load("inspect").trials(written(tmp_path / "c.json", without_ends))
    assert skipped == ("sample 1", "no event has both ends, as before inspect_ai 0.3.71")


def test_without_the_package_a_log_is_read_that_python_decompresses_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zipfile_zstd", None)
    with pytest.raises(TaxtuiError, match=rf"Zstandard.*{re.escape(installed.extra_command('import'))}"):
        one("inspect", LOGS / "inspect-given.eval")
    path = tmp_path / "old.eval.bak"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        log = inspect_log([inspect_event("sandbox", 1, 2)])
        archive.writestr("header.json", json.dumps({key: log[key] for key in ("version", "eval")}))
        archive.writestr("samples/1_epoch_1.json", json.dumps(log["samples"][0]))  # type: ignore[index]
        archive.writestr("samples/2_epoch_1.json", "{")
    trial, skipped = registry.load("inspect").trials(path)
    assert isinstance(trial, ImportedTrial)
    assert len(trial.actions) == 1
    assert isinstance(skipped, Skipped)


def test_answers_older_than_their_observations_have_no_times_and_actions_of_an_answer_share_an_interval() -> None:
    trial = one("mini-swe-agent", LOGS / "given.traj.json")
    assert (ms(trial), trial.failure) == ([(0, 0, 216.885)], None)
    assert ("actions", "the clock runs backwards", True) in trial.unknown
    trial = one("mini-swe-agent", LOGS / "slept.traj.json")
    assert [round(duration) for _, _, duration in ms(trial)] == [219, 515, 70, 810]
    assert ("actions", "commands of an answer share an interval", True) in trial.unknown
    assert [action.exit_code for action in trial.actions] == [0, 0, 0, -1]


def test_an_answer_without_commands_observes_none_and_what_has_no_time_is_said(tmp_path: Path) -> None:
    told = json.loads((LOGS / "slept.traj.json").read_text())
    told["info"]["exit_status"] = "LengthTruncated"
    last_s = max(message.get("extra", {}).get("timestamp", 0) for message in told["messages"])
    told["messages"].append({"role": "assistant", "extra": {"actions": [], "timestamp": last_s + 60}})
    truncated = one("mini-swe-agent", written(tmp_path / "x", told))
    assert truncated.actions == one("mini-swe-agent", LOGS / "slept.traj.json").actions
    assert (truncated.failure, truncated.limit) == (None, "OutputLengthExceededError")
    answers = [message for message in told["messages"] if message.get("extra", {}).get("actions")]
    del answers[0]["extra"]["timestamp"]  # a person's command
    told["info"]["config"]["agent"]["mode"] = "confirm"
    told["messages"].remove(told["messages"][told["messages"].index(answers[1]) + 1])
    trial = one("mini-swe-agent", written(tmp_path / "x", told))
    assert [tuple(map(round, row)) for row in ms(trial)] == [(305, 820, 70), (302, 0, 810)]
    why = "an answer has no time", "a person may have confirmed commands: the wait is part of them"
    assert {each.why for each in trial.unknown} >= set(why)


@pytest.mark.parametrize("document", [[], [{"role": "system"}], {"trajectory_format": "mini-swe-agent-1", "info": {}}])
def test_files_from_before_the_times_are_refused_with_the_reason(tmp_path: Path, document: object) -> None:
    path = written(tmp_path / "x.traj.json", document)
    with pytest.raises(Unreadable, match="no times into messages before version 2"):
        one("mini-swe-agent", path)
    if document and isinstance(document, list):
        assert reader_for(None, [path]).name == "mini-swe-agent"


def test_swe_agent_tells_how_long_its_tools_took(tmp_path: Path) -> None:
    told = swe_agent_trajectory(*SWE_AGENT_S, exit_status="submitted")
    told["trajectory"] += [{"action": "", "execution_time": 5.0}, {"action": "submit", "execution_time": 0}]
    path = written(tmp_path / "x.traj", told)
    assert reader_for(None, [path]).name == "swe-agent"
    trial = one("swe-agent", path)
    assert [duration / 1e3 for _, _, duration in ms(trial)] == list(SWE_AGENT_S)
    assert not trial.dated
    assert (trial.substrate, trial.image, trial.task) == ("docker", "i", "p")
    assert {"run", "think", "create", "instants", "actions"} <= unknown(trial).keys()
