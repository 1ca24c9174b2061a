"""The plug-in in real jobs of Harbor's: known sleeps come back, agents see what they saw without it, jobs never fail.

Jobs run in ``unkind_harbor.FolderEnvironment`` where no container is needed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from costmodel.recording import events as ev
from taxtui.cli import app
from tests.support.command_line import printed
from tests.support.importing import actions_s, cell_of, events_of, imported, of, phases_s, starts

pytestmark = [pytest.mark.real_tools, pytest.mark.timeout(1800)]
HERE = Path(__file__).parent
IMAGE = "taxtui-base:bookworm"
CANARY = "sk-canary-0123456789abcdef"
FOLDER = {"image": "any", "environment": "unkind_harbor:FolderEnvironment"}
SLEEPS_S = (0.5, 0.1, 0.3)
AWKWARD = (
    "printf 'no newline'; printf 'nor here' >&2",
    "echo one\nfalse\necho $? two",
    "exit 7",
    "if then\necho never",
    "echo first\nif then",
    "set -x; echo traced",
    "set -eu; echo $undefined_variable",
    "cat <<'END'\n$literal\nEND",
    "kill -TERM $$",
    "exec sh -c 'echo replaced'",
    "trap 'echo mine' EXIT; echo before",
    "set | grep -ic taxtui_",
    "no_such_command",
    "# nothing but a comment",
)
"""Commands in which a timer could be seen."""


def start(interpreter: str, folder: Path, **options: Any) -> subprocess.Popen[str]:
    (folder / "home").mkdir(parents=True)
    environment = {**os.environ, "HOME": str(folder / "home")}
    command = [interpreter, str(HERE / "drive_harbor_plugin.py"), str(folder), json.dumps(options)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **streams)


def run(interpreter: str, folder: Path, **options: Any) -> str:
    """The standard error of a job that has ended well."""
    job = start(interpreter, folder, **options)
    _, said = job.communicate()
    assert job.returncode == 0, said[-3000:]
    return said


def recorded(folder: Path) -> list[ev.Event]:
    return events_of(folder / "jobs" / "job" / "taxtui.msgpack")


def seen(folder: Path) -> list[Any]:
    """What the agent of the only trial saw: durations, exit codes, both streams."""
    [path] = (folder / "jobs" / "job").glob("*/agent/seen.json")
    return list(json.loads(path.read_text()))


def exceptions(folder: Path) -> list[object]:
    """Of each trial's result."""
    paths = (folder / "jobs" / "job").glob("*/result.json")
    return [json.loads(path.read_text())["exception_info"] for path in paths]


@pytest.mark.compose
def test_known_sleeps_come_back_from_docker(interpreter: str, tmp_path: Path) -> None:
    if subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True, check=False).returncode:
        pytest.skip(f"there is no image {IMAGE} here")
    commands = [f"sleep {each}" for each in SLEEPS_S]
    options = {"image": IMAGE, "commands": commands, "setup": ["sleep 0.2"], "think_s": 0.25, "tests_s": 0.3}
    run(interpreter, tmp_path, **options, kwargs={"timer": True})
    events = recorded(tmp_path)
    took_s, run_s = actions_s(events, 0)[-3:], [ns / 1e9 for each in of(events, ev.Actions, 0) for ns in each.run_ns]
    print(f"slept {SLEEPS_S} s, in the sandbox {run_s[-3:]}, commands {took_s}, the agent saw {seen(tmp_path)}")
    for slept, inside, took, (around, *_) in zip(SLEEPS_S, run_s[-3:], took_s, seen(tmp_path), strict=True):
        assert slept <= inside <= took <= around
    [setup, action] = [(each.step, len(each.duration_ns)) for each in of(events, ev.Actions, 0)]
    assert (setup, action) == (("preload", 1), ("action", 3))
    [thinks] = [each.think_ns for each in of(events, ev.Actions, 0) if each.step == "action"]
    assert all(think >= 0.25e9 for think in thinks)
    phases = phases_s(events, 0)
    assert set(phases) == {"create", "preload", "verify", "cleanup"}
    assert phases["preload"] >= 0.2
    assert phases["verify"] >= 0.3
    cell = cell_of(events, 0)
    assert (cell.substrate, cell.variant, cell.provenance, cell.mode) == ("harbor", "docker", "measured", "exec")
    _, without_plugin = imported("harbor", tmp_path / "jobs" / "job", tmp_path / "imported.msgpack")
    known = phases_s(without_plugin, 0)
    assert known == {phase: phases[phase] for phase in ("create", "preload", "verify")}
    assert sum(actions_s(without_plugin, 0)) >= sum(SLEEPS_S)


def test_an_agent_sees_what_it_saw_without_the_plug_in(interpreter: str, tmp_path: Path) -> None:
    for name, options in {"without": {"plugin": False}, "with": {"kwargs": {"timer": True}}}.items():
        run(interpreter, tmp_path / name, **FOLDER, commands=AWKWARD, **options)
    before, after = ([each[1:] for each in seen(tmp_path / name)] for name in ("without", "with"))
    for command, one, other in zip(AWKWARD, before, after, strict=True):
        assert other == one, command
    events = recorded(tmp_path / "with")
    [actions] = of(events, ev.Actions, 0)
    unknown = [command for command, ns in zip(AWKWARD, actions.run_ns, strict=True) if ns == ev.UNKNOWN]
    assert unknown == [command for command in AWKWARD if command.startswith(("if then", "exec sh", "trap"))]


def test_a_recording_holds_no_prompt_output_path_or_key(interpreter: str, tmp_path: Path) -> None:
    commands = [f"echo {CANARY} >&2; echo $CANARY_KEY", f"cat /tmp/{CANARY}", f"exec {CANARY}"]
    said = run(interpreter, tmp_path, **FOLDER, commands=commands, environment_kwargs={"exec_fails": [3]})
    text = b"".join(msgspec.json.encode(event) for event in recorded(tmp_path)).decode()
    for word in (CANARY, "canary", "cat ", str(tmp_path), tmp_path.name, Path.home().name + "/", "slept-"):
        assert word not in text
    # Harbor's own lines have the folder of a trial, which this test names with the canary.
    assert not [line for line in said.splitlines() if line.startswith("taxtui") and CANARY in line]


def test_what_fails_in_a_job_is_recorded_and_retried_attempts_are_counted(interpreter: str, tmp_path: Path) -> None:
    faults = {"start_fails": [1], "exec_fails": [2], "slow_s": 0.01}
    run(interpreter, tmp_path, **FOLDER, commands=["true", "true", "true"], environment_kwargs=faults, retries=3)
    events = recorded(tmp_path)
    ends = [(end.outcome, end.phase) for end in of(events, ev.TrialEnded)]
    assert ends[0] == ("failed", "create")
    assert ends[-1] == ("ok", "")
    assert [start.attempt for start in starts(events)] == list(range(len(ends)))
    assert ("failed", "action") in ends
    assert exceptions(tmp_path) == [None]


def test_an_agent_that_runs_out_of_time_is_delivered_with_its_last_command(interpreter: str, tmp_path: Path) -> None:
    run(interpreter, tmp_path, **FOLDER, commands=["sleep 0.2", "sleep 30"], agent_timeout_s=1.0)
    events = recorded(tmp_path)
    [end] = of(events, ev.TrialEnded)
    assert (end.outcome, end.error) == ("ok", "AgentTimeoutError")
    [actions] = of(events, ev.Actions, 0)
    assert actions.exit_code == [0, ev.UNKNOWN]
    assert sum(actions.duration_ns) <= 1.5e9


def test_a_plug_in_that_cannot_write_leaves_the_job_alone(interpreter: str, tmp_path: Path) -> None:
    said = run(interpreter, tmp_path, **FOLDER, commands=["true"], kwargs={"out": "/nowhere/r.msgpack"})
    lines = [line for line in said.splitlines() if line.startswith("taxtui: ")]
    assert lines == [
        "taxtui: the job continues, but the recording is incomplete: cannot create /nowhere/r.msgpack: "
        "No such file or directory; choose another with -o"
    ]
    assert exceptions(tmp_path) == [None]


def test_an_interrupted_job_keeps_what_has_ended(interpreter: str, tmp_path: Path) -> None:
    job = start(interpreter, tmp_path, **FOLDER, commands=["sleep 1"], trials=30, concurrency=1)
    try:
        while job.poll() is None and len(list((tmp_path / "jobs").glob("job/*/result.json"))) < 2:
            time.sleep(0.1)
        os.killpg(job.pid, signal.SIGINT)
        job.communicate(timeout=60)
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.communicate()
    ends = of(recorded(tmp_path), ev.TrialEnded)
    assert ends
    assert {end.outcome for end in ends} <= {"ok", "cancelled"}


def test_its_recording_is_reported_projected_and_decided_on(interpreter: str, tmp_path: Path) -> None:
    run(interpreter, tmp_path, **FOLDER, commands=["sleep 0.1", "true"], trials=4, kwargs={"timer": True})
    path = str(tmp_path / "jobs" / "job" / "taxtui.msgpack")
    printed("project", path, "--trajectories", "10k", "--explain")
    printed("recordings", "verify", path)
    assert json.loads(printed("report", path, "--format", "json"))
    decided = CliRunner().invoke(app, ["decide", path, "--to", "e2b", "--trajectories", "10k", "--quick"])
    assert decided.exit_code in (0, 6), decided.output
