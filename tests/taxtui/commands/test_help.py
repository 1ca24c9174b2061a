"""Help texts: noun phrases or imperatives of at most 25 words; at most 25 options; the three jobs first."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from taxtui.cli import COMMANDS, FIRST, MORE, app
from taxtui.errors import UsageError

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
