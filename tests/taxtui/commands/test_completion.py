"""Shell completion: files, and the names that an option takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

HERE = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
BASH = """
compopt() { echo "or $2"; }
source "$0"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_taxtui_completion taxtui
printf '%s\\n' "${COMPREPLY[@]}"
"""
FILES = "or default"
"""What is printed where bash completes a file if no name fits."""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What turns completion on in bash."""
    asked = {**HERE, "_TAXTUI_COMPLETE": "bash_source"}
    path = tmp_path_factory.mktemp("bash") / "taxtui.bash"
    path.write_bytes(subprocess.run(["taxtui"], env=asked, stdout=subprocess.PIPE, check=True).stdout)
    return path


def completed(script: Path, line: str) -> list[str]:
    """Completions of the last word, by the script that bash is given."""
    words = ["bash", "--noprofile", "--norc", "-c", BASH, str(script), *line.split(" ")]
    done = subprocess.run(words, env=HERE, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.removesuffix("\n").split("\n")


@pytest.mark.parametrize(
    "line",
    [
        "taxtui project rec",
        "taxtui project a.msgpack rec",
        "taxtui compare a.msgpack --pool-after rec",
        "taxtui run scen",
        "taxtui run -t my",
        "taxtui run --prices my",
        "taxtui run --resume rec",
        "taxtui project a.msgpack --training lab",
        "taxtui project a.msgpack --compose my",
        "taxtui recordings verify rec",
        "taxtui tier from-repo src",
        "taxtui import jobs",
    ],
)
def test_files_are_completed(script: Path, line: str) -> None:
    assert completed(script, line) == [FILES, ""]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("taxtui run -s do", ["docker"]),
        ("taxtui clean -s do", ["docker"]),
        ("taxtui decide a.msgpack --from lo", ["local"]),
        ("taxtui report a.msgpack --substrate lo", ["local"]),
        ("taxtui run -t ", [FILES, "T0", "T1", "T2"]),
        ("taxtui run --mode ", ["exec", "session"]),
        ("taxtui project a.msgpack --compose dayt", [FILES, "daytona"]),
        ("taxtui project a.msgpack --prices aws-f", [FILES, "aws-fargate"]),
        ("taxtui run re", [FILES, "reference"]),
        ("taxtui import terminal", [FILES, "terminal-bench"]),
        ("taxtui export a --format par", ["parquet"]),
    ],
)
def test_names_are_completed(script: Path, line: str, names: list[str]) -> None:
    assert completed(script, line) == names


def test_an_unknown_command_says_nothing(script: Path) -> None:
    assert "project" in completed(script, "taxtui unknown ")


def test_zsh_is_given_no_empty_value() -> None:
    """Where a value is empty, zsh takes the following line for it, and no name is completed."""
    asked = {**HERE, "_TAXTUI_COMPLETE": "zsh_complete", "COMP_WORDS": "taxtui run -t ", "COMP_CWORD": "3"}
    done = subprocess.run(["taxtui"], env=asked, capture_output=True, text=True, check=True)
    assert "" not in done.stdout.removesuffix("\n").split("\n")
