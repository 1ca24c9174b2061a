"""Help texts: a noun phrase or an imperative of at most 25 words; a command has at most 25 options."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from taxtui.cli import COMMANDS, app

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
def test_every_option_has_a_help_that_stands_alone(name: str, command: click.Command) -> None:
    for option in options(command):
        text = option.help or ""
        assert text, f"{name} {option.opts[-1]} has no help"
        assert not HEADLESS.match(text), f"{name} {option.opts[-1]}: {text}"
        assert len(text.split()) <= MOST_WORDS, f"{name} {option.opts[-1]}: {text}"


@pytest.mark.parametrize(("name", "command"), ALL, ids=[name for name, _ in ALL])
def test_the_first_sentence_of_a_command_is_short(name: str, command: click.Command) -> None:
    first = re.split(r"(?<=[.:])\s", " ".join((command.help or "").split()))[0]
    assert first
    assert not HEADLESS.match(first), first
    assert len(first.split()) <= MOST_WORDS, first


@pytest.mark.parametrize(("name", "command"), ALL, ids=[name for name, _ in ALL])
def test_no_command_has_too_many_options_and_the_help_lists_each(name: str, command: click.Command) -> None:
    assert len(options(command)) <= MOST_OPTIONS, name
    text = command.get_help(click.Context(command, info_name=name))
    listed = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.MULTILINE)) - {"--help"}
    assert listed == {next(flag for flag in option.opts if flag.startswith("--")) for option in options(command)}


def test_the_one_line_helps_are_short() -> None:
    for text in COMMANDS.values():
        assert not HEADLESS.match(text), text
        assert len(text.split()) <= MOST_WORDS, text
