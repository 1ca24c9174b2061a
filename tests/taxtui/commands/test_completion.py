"""Shell completion of files, options and names, as docs/command-line.md switches it on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import text_of

pytestmark = pytest.mark.processes

HERE = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
BASH = """
compopt() { echo "or $2"; }
eval "$(taxtui)"
unset _TAXTUI_COMPLETE
for line in "$@"; do
    IFS=' ' read -ra COMP_WORDS <<<"$line."
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_WORDS[COMP_CWORD]=${COMP_WORDS[COMP_CWORD]%.} COMPREPLY=()
    _taxtui_completion taxtui
    echo "${COMPREPLY[@]}"
done
"""
OR_FILES = "or default"
"""Printed where bash completes a file if no name fits."""
COMPLETED = {
    "taxtui project rec": [OR_FILES, ""],
    "taxtui compare a.msgpack --pool-after rec": [OR_FILES, ""],
    "taxtui run -t my": [OR_FILES, ""],
    "taxtui project a.msgpack --training lab": [OR_FILES, ""],
    "taxtui run -s do": ["docker"],
    "taxtui run -t ": [OR_FILES, "T0 T1 T2"],
    "taxtui run --mode ": ["exec session"],
    "taxtui project a.msgpack --compose dayt": [OR_FILES, "daytona"],
    "taxtui project a.msgpack --prices aws-f": [OR_FILES, "aws-fargate"],
    "taxtui export a --format j": ["jsonl"],
    "taxtui proj": ["project"],
    "taxtui project --worke": ["--workers"],
}


def printed(*command: str, **variables: str) -> str:
    return subprocess.run(command, env=HERE | variables, capture_output=True, text=True, check=True).stdout


def test_bash_completes_files_names_commands_and_options() -> None:
    argv = ["bash", "--noprofile", "--norc", "-c", BASH, "bash", *COMPLETED]
    lines = printed(*argv, _TAXTUI_COMPLETE="bash_source").removesuffix("\n").split("\n")
    assert lines == [line for completed in COMPLETED.values() for line in completed]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete_too(shell: str) -> None:
    assert f"{shell}_complete" in printed("taxtui", _TAXTUI_COMPLETE=f"{shell}_source")
    word = "-t " if shell == "fish" else "3"
    names = printed("taxtui", _TAXTUI_COMPLETE=f"{shell}_complete", COMP_WORDS="taxtui run -t ", COMP_CWORD=word)
    assert "T1" in names
    assert "" not in names.removesuffix("\n").split("\n"), "zsh would read the line after an empty value as the value"


def test_the_page_has_the_line_of_each_shell() -> None:
    page = text_of("command-line.md")
    assert set(re.findall(r"_TAXTUI_COMPLETE=(\w+)_source taxtui", page)) == {"bash", "zsh", "fish"}
