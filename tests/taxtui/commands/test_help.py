"""Help texts, noun phrases or imperatives of at most 25 words; at most 25 options; and shell completion."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from taxtui.cli import COMMANDS, FIRST, MORE, app
from taxtui.errors import UsageError
from tests.docs.pages import text_of

MOST_WORDS = 25
MOST_OPTIONS = 25
HEADLESS = re.compile(r"^(of|what|who|whose|whoever|which|that|those|its|\.\.\.)\b", re.IGNORECASE)


def leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for each, sub in command.commands.items():
            yield from leaves(sub, f"{name} {each}")
    else:
        yield name, command


def commands() -> list[tuple[str, click.Command]]:
    context = click.Context(app)
    found = ((name, app.get_command(context, name)) for name in COMMANDS)
    return [leaf for name, command in found if command for leaf in leaves(command, name)]


ALL = commands()


def options(command: click.Command) -> list[click.Option]:
    return [one for one in command.params if isinstance(one, click.Option) and not one.hidden]


@pytest.mark.parametrize(("name", "command"), ALL, ids=[name for name, _ in ALL])
def test_texts_stand_alone_and_the_help_lists_each_option(name: str, command: click.Command) -> None:
    first_sentence = re.split(r"(?<=[.:])\s", " ".join((command.help or "").split()))[0]
    for text in (first_sentence, *(option.help or "" for option in options(command))):
        assert text, f"{name}: an option without help"
        assert not HEADLESS.match(text), f"{name}: {text}"
        assert len(text.split()) <= MOST_WORDS, f"{name}: {text}"
    assert len(options(command)) <= MOST_OPTIONS, name
    text = command.get_help(click.Context(command, info_name=name))
    listed = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.MULTILINE)) - {"--help"}
    assert listed == {next(flag for flag in option.opts if flag.startswith("--")) for option in options(command)}


def test_the_help_lists_the_commands_of_the_three_jobs_first() -> None:
    assert list(FIRST) == ["run", "report", "project", "decide", "compare", "import", "doctor", "clean"]
    lines = CliRunner().invoke(app, ["--help"]).output.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ") and line[2].islower()]
    assert [name for name in listed if name in COMMANDS] == [*FIRST, *MORE]
    assert lines.index("Commands:") < lines.index("More:")
    for text in COMMANDS.values():
        assert not HEADLESS.match(text), text
        assert len(text.split()) <= MOST_WORDS, text


def test_an_unknown_command_offers_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"unknown command 'rnu'; did you mean 'run'\?"):
        CliRunner().invoke(app, ["rnu"], catch_exceptions=False)


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
    **{line: [OR_FILES, ""] for line in ("taxtui project rec", "taxtui run -t my", "taxtui project --training lab")},
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


@pytest.mark.processes
def test_bash_completes_files_names_commands_and_options() -> None:
    argv = ["bash", "--noprofile", "--norc", "-c", BASH, "bash", *COMPLETED]
    lines = printed(*argv, _TAXTUI_COMPLETE="bash_source").removesuffix("\n").split("\n")
    assert lines == [line for completed in COMPLETED.values() for line in completed]


@pytest.mark.processes
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
