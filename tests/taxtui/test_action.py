"""The GitHub action: what its script makes of its inputs and of the check's exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.support.cost_model.costmodel_files import S, cell, trial, write

pytestmark = pytest.mark.processes
ACTION = Path(__file__).parents[2] / "action.yml"


class Done(NamedTuple):
    code: int
    outputs: str
    summary: str
    log: str


def stepped(folder: Path, **inputs: str) -> Done:
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    inputs_of = {name: str(one.get("default", "")) for name, one in action["inputs"].items()} | inputs
    step = action["runs"]["steps"][-1]
    variables = {
        name: inputs_of[value.removeprefix("${{ inputs.").removesuffix(" }}")] for name, value in step["env"].items()
    }
    files = {name: folder / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for path in files.values():
        path.touch()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    argv = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    environment = {**os.environ, **variables, **{name: str(path) for name, path in files.items()}, "PATH": path}
    result = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return Done(result.returncode, *(path.read_text() for path in files.values()), result.stdout + result.stderr)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Recordings of four runs each, of which one took 30 % longer."""
    for name, took in (("base", S), ("same", S), ("slow", 13 * S // 10)):
        varied = [(took - n % 3, took, took + n % 5) for n in range(16)]
        trials = [trial(n, create=took, actions=actions, repetition=n // 4) for n, actions in enumerate(varied)]
        write(tmp_path / f"{name}.msgpack", trials, cell(), run_id=name)
    return tmp_path


def test_equal_recordings_pass_and_a_regression_fails_the_job(folder: Path) -> None:
    result = stepped(folder, after="same.msgpack", before="base.msgpack\n", junit="j.xml")
    assert (result.code, result.outputs) == (0, "verdict=ok\n"), result.log
    assert "### 3 comparisons: 0 worse" in result.summary
    assert (folder / "j.xml").exists()
    result = stepped(folder, after="slow.msgpack", before="base.msgpack", metrics="mean:trajectory\n\n")
    assert (result.code, result.outputs) == (5, "verdict=ok\nverdict=worse\n"), result.log
    assert "1 of 1 comparisons got worse" in result.log


@pytest.mark.parametrize(("wanted", "code"), [("warn", 0), ("fail", 6)])
def test_too_little_data_is_a_warning_or_a_failure_as_asked_for(folder: Path, wanted: str, code: int) -> None:
    inputs = {"metrics": "p95:cold_start=25%", "inconclusive": wanted}
    result = stepped(folder, after="same.msgpack", before="base.msgpack", **inputs)
    assert (result.code, result.outputs) == (code, "verdict=inconclusive\n"), result.log
    assert ("::warning::" in result.log) == (wanted == "warn")


HOSTILE = "$(touch pwned) `touch pwned`; touch pwned"


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ({"after": HOSTILE, "before": HOSTILE, "metrics": HOSTILE}, 2),
        ({"after": "--help", "before": "base.msgpack"}, 4),
        ({"after": "slow.msgpack", "before": "--help"}, 4),
        ({"after": "slow.msgpack", "before": "base.msgpack\n--fail-above=5000%"}, 4),
    ],
)
def test_inputs_are_data_and_never_commands_or_options(folder: Path, inputs: dict[str, str], code: int) -> None:
    result = stepped(folder, **{"metrics": "mean:trajectory", **inputs})
    assert (result.code, result.outputs) == (code, ""), result.log
    assert code == 2 or "taxtui: there is no -" in result.log
    assert not (folder / "pwned").exists()


def test_names_in_recordings_are_no_commands_to_the_runner(folder: Path) -> None:
    lines = stepped(folder, after="slow.msgpack", before="base.msgpack").log.splitlines()
    stop = next(number for number, line in enumerate(lines) if line.startswith("::stop-commands::"))
    again = lines.index(f"::{lines[stop].removeprefix('::stop-commands::')}::")
    table = next(number for number, line in enumerate(lines) if "comparisons:" in line)
    assert stop < table < again
    assert lines[stop] not in stepped(folder, after="slow.msgpack", before="base.msgpack").log


def test_no_input_is_text_of_a_script() -> None:
    steps = yaml.safe_load(ACTION.read_text(encoding="utf-8"))["runs"]["steps"]
    assert [step["run"] for step in steps if "${{" in step["run"]] == []
