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
source "$0"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_taxtui_completion taxtui
printf '%s\\n' "${COMPREPLY[@]}"
"""
FILES = "or default"
"""What is printed where bash completes a file if no name fits."""


def printed(**variables: str) -> str:
    return subprocess.run(["taxtui"], env=HERE | variables, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The script that switches completion on in bash."""
    path = tmp_path_factory.mktemp("bash") / "taxtui.bash"
    path.write_text(printed(_TAXTUI_COMPLETE="bash_source"))
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
        "taxtui compare a.msgpack --pool-after rec",
        "taxtui run scen",
        "taxtui run -t my",
        "taxtui run --resume rec",
        "taxtui project a.msgpack --training lab",
        "taxtui project a.msgpack --compose my",
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
        ("taxtui decide a.msgpack --from lo", ["local"]),
        ("taxtui run -t ", [FILES, "T0", "T1", "T2"]),
        ("taxtui run --mode ", ["exec", "session"]),
        ("taxtui project a.msgpack --compose dayt", [FILES, "daytona"]),
        ("taxtui project a.msgpack --prices aws-f", [FILES, "aws-fargate"]),
        ("taxtui run re", [FILES, "reference"]),
        ("taxtui import terminal", [FILES, "terminal-bench"]),
        ("taxtui export a --format j", ["jsonl"]),
    ],
)
def test_names_are_completed(script: Path, line: str, names: list[str]) -> None:
    assert completed(script, line) == names


def test_commands_and_options_are_completed(script: Path) -> None:
    assert "project" in completed(script, "taxtui proj")
    assert "--workers" in completed(script, "taxtui project --worke")
    assert "project" in completed(script, "taxtui unknown ")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete_too(shell: str) -> None:
    assert f"{shell}_complete" in printed(_TAXTUI_COMPLETE=f"{shell}_source")
    word = "-t " if shell == "fish" else "3"
    names = printed(_TAXTUI_COMPLETE=f"{shell}_complete", COMP_WORDS="taxtui run -t ", COMP_CWORD=word)
    assert "T1" in names
    lines = names.removesuffix("\n").split("\n")
    assert "" not in lines, "zsh would read the line after an empty value as the value"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_page_has_the_line_of_each_shell(shell: str) -> None:
    assert f"_TAXTUI_COMPLETE={shell}_source taxtui" in text_of("command-line.md")


def test_bash_takes_the_line_of_the_page() -> None:
    [line] = re.findall(r'^(eval "\$\(_TAXTUI_COMPLETE=bash.*?)\s+#', text_of("command-line.md"), re.MULTILINE)
    press = "COMP_WORDS=(taxtui doc) COMP_CWORD=1; _taxtui_completion taxtui"
    words = ["bash", "-c", f"{line}\n{press}\necho ${{COMPREPLY[0]}}; complete -p taxtui"]
    output = subprocess.run(words, env=HERE, capture_output=True, text=True, check=True).stdout
    assert output.splitlines()[0] == "doctor"
    assert "_taxtui_completion" in output
