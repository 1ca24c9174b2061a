"""The tools whose logs are imported, run for real: known sleeps come back as the right action times.

``pytest -m real_tools`` installs them, each Python's in a venv of its own, in the folder ``TAXTUI_REAL_TOOLS`` where
that is set (and finds them there the next time), else in a temporary one. What cannot be installed or run is skipped.
A driver measures around each command: what is imported lies between the sleep and that, but for two clocks' slack.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from taxtui.importers import registry
from taxtui.importers.importing import import_files
from taxtui.importers.trial import ImportedTrial

pytestmark = [pytest.mark.real_tools, pytest.mark.timeout(1800)]
HERE = Path(__file__).parent
THINK_S = 0.3
SLEEPS_S = (0.2, 0.5, 0.05)
SLACK_S = 0.002


def drive(interpreter: str, driver: str, folder: Path, *arguments: object) -> None:
    (folder / "home").mkdir()
    search = f"{Path(interpreter).parent}{os.pathsep}{os.environ['PATH']}"  # the tools start each other by name
    environment = {**os.environ, "PATH": search, "HOME": str(folder / "home"), "MSWEA_SILENT_STARTUP": "1"}
    command = [interpreter, str(HERE / driver), "logs", *map(str, arguments)]
    (folder / "logs").mkdir()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def imported(name: str, path: Path) -> ImportedTrial:
    reader = registry.load(name)
    files = reader.files(path) if path.is_dir() else [path]
    (trial,) = (one for file in files for one in reader.trials(file) if isinstance(one, ImportedTrial))
    assert import_files(reader, [path], path.parent / f"{path.name}.msgpack").trials == 1
    return trial


def check(trial: ImportedTrial, slept_s: tuple[float, ...], most_s: list[float]) -> None:
    took_s = [action.duration_ns / 1e9 for action in trial.actions]
    print(f"slept {slept_s} s, imported {took_s}, measured around them {most_s}")
    assert len(took_s) == len(slept_s) <= len(most_s)
    for slept, took, most in zip(slept_s, took_s, most_s, strict=False):
        assert slept - SLACK_S <= took <= most + SLACK_S
    assert all(action.think_ns / 1e9 >= THINK_S - SLACK_S for action in trial.actions[1:])


@pytest.mark.parametrize("form", ["eval", "json"])
def test_inspect(python: Callable[[str], str], tmp_path: Path, form: str) -> None:
    drive(python("3.11"), "drive_inspect.py", tmp_path, THINK_S, *SLEEPS_S)
    (log,) = (tmp_path / "logs").glob(f"*.{form}")
    trial = imported("inspect", log)
    check(trial, SLEEPS_S, json.loads((tmp_path / "logs" / f"bounds_of_{form}.txt").read_text()))
    assert trial.substrate == "local"


def test_mini_swe_agent(python: Callable[[str], str], tmp_path: Path) -> None:
    drive(python("3.11"), "drive_mini_swe_agent.py", tmp_path, THINK_S, *SLEEPS_S)
    trial = imported("mini-swe-agent", tmp_path / "logs")
    check(trial, (*SLEEPS_S, sum(SLEEPS_S)), json.loads((tmp_path / "logs" / "bounds.txt").read_text()))


def test_verifiers(python: Callable[[str], str], tmp_path: Path) -> None:
    drive(python("3.12"), "drive_verifiers.py", tmp_path, THINK_S, *SLEEPS_S)
    trial = imported("verifiers", tmp_path / "logs" / "outputs")
    bounds_s = json.loads((tmp_path / "logs" / "bounds.txt").read_text())
    *between, _ = trial.actions  # the last is what the harness does behind the last answer
    check(msgspec.structs.replace(trial, actions=tuple(between)), SLEEPS_S, bounds_s)
    assert {phase.name for phase in trial.phases} >= {"create", "preload", "verify"}
