"""The form of the Projection screen: the options of ``taxtui project``, and the command line of the typed values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from costmodel import toml
from taxtui.errors import UsageError
from taxtui.live.catalogue import path_text, stamp
from taxtui.options.training import GROUPS, OPTIONS, SET, TYPED
from taxtui.options.training_file import field_of
from taxtui.options.training_runs import places_of, providers_of
from taxtui.plan.notation import parse_count

if TYPE_CHECKING:
    from costmodel import Provider, SubstrateRun, TrainingRun

ON: Final = "yes"
FILE: Final = "file"
"""The option for a training file."""
HIDDEN: Final = ("changes", "tiers", "modes", *(str(option.name) for option in GROUPS["life_cycle"].options))
"""Options outside the form: ``--set``, selections of rows, and questions of ``project --what-if``."""

Typed = Mapping[str, str]
"""Typed texts by the names of the options."""

FIRST: Final = ("trajectories", "workers", "actions", "batch", "gpus", FILE)
"""The options of every training run, above all others."""
MORE: Final = "Compare, spread"
"""Heading of the other options of the training run."""
DEFAULTS: Final[Mapping[str, str]] = {
    str(option.name): str(parse_count(option.default)) for option in OPTIONS if isinstance(option.default, str)
}
"""Values of the options with a default: counts."""
START: Final[Mapping[str, str]] = {
    "actions": "10",
    "gpus": "8",
    "think": "8s",
    "run_sd": "5%",
    "failure_rate": "5%",
    "think_correlation": "0.5",
    "over_provision": "0.25",
}
"""First value of an option on the way from unset to more, if not 1."""
AMOUNT: Final = re.compile(r"([\d,]+(?:\.\d+)?)([a-zA-Z%]*)")
"""A number with a unit: ``500``, ``1M``, ``8s``, ``5%``."""


class Field(NamedTuple):
    """An option of ``taxtui project`` in the form."""

    name: str
    label: str
    help: str
    flag: bool
    choices: tuple[str, ...]  # (): the option takes a text


@cache
def fields() -> Mapping[str, Field]:
    """Return every field by name."""
    return {str(option.name): _field(option) for option in OPTIONS if option.name not in HIDDEN}


def _field(option: click.Option) -> Field:
    choices = tuple(option.type.choices) if isinstance(option.type, click.Choice) else ()
    return Field(
        str(option.name),
        option.opts[-1].lstrip("-").replace("-", " "),
        option.help or "",
        bool(option.is_flag),
        choices,
    )


@cache
def lines() -> Sequence[Field | str]:
    """Return the lines of the form: the most common fields, then a heading and the other fields of each group."""
    by_name = fields()
    result: list[Field | str] = [by_name[name] for name in FIRST]
    for table, group in GROUPS.items():
        names = [str(option.name) for option in group.options if option.name not in (*FIRST, *HIDDEN)]
        if names:
            result += [MORE if table == "run" else group.heading, *(by_name[name] for name in names)]
    return result


@lru_cache(4)
def _file_values(path: str, stamp: tuple[int, int]) -> Mapping[str, str]:
    try:
        document = toml.Document(Path(path)).data
    except (OSError, toml.MalformedDocument):
        return {}  # ``parsed`` refuses the file with the reason
    values: dict[str, str] = {}
    for table, group in GROUPS.items():
        content = document.get(table)
        for option in group.options:
            if isinstance(content, dict) and (value := content.get(field_of(option))) is not None:
                if isinstance(value, bool):
                    value = ON if value else ""
                values[str(option.name)] = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return values


def file_values(typed: Typed) -> Mapping[str, str]:
    """Return the values of the training file by option, without tables of a single substrate."""
    path = typed.get(FILE, "")
    return _file_values(path, stamp(Path(path))) if path else {}


def value_of(name: str, typed: Typed) -> str:
    """Return the value of an option: typed, else of the training file, else the default, else ""."""
    return typed.get(name) or file_values(typed).get(name) or DEFAULTS.get(name, "")


def words(typed: Typed) -> list[str]:
    """Return the options of the command line with the same question."""
    collected: list[str] = []
    for option in OPTIONS:
        name = str(option.name)
        value = typed.get(name, "").strip()
        if value:
            spelling = [option.opts[-1]] if option in TYPED else [SET.opts[-1], f"{field_of(option)}="]
            collected += _option_words(spelling, value, option)
    return collected


def _option_words(spelling: Sequence[str], value: str, option: click.Option) -> list[str]:
    """Return the words of an option: ``--gpus 8``, ``--include-cleanup`` or ``--set nodes=125``."""
    flag, *key = spelling
    collected: list[str] = []
    for item in value.split() if option.multiple else ["true" if option.is_flag else value]:
        if key:
            collected += [flag, f"{key[0]}{item}"]
        elif option.is_flag:
            collected.append(flag)
        else:  # a change may begin with a minus
            collected += [f"{flag}={item}"] if item.startswith("-") else [flag, item]
    return collected


def command(paths: Sequence[Path], typed: Typed) -> str:
    """Return the command line that prints the same projection."""
    return shlex.join(["taxtui", "project", *map(path_text, paths), *words(typed)])


class Question(NamedTuple):
    """A parsed form, for the cost model."""

    places: Sequence[SubstrateRun]  # substrates with tables in the training file, then all others
    providers: Sequence[Provider] = ()  # to estimate

    @property
    def training_run(self) -> TrainingRun:
        return self.places[-1].training_run


def parsed(typed: Typed) -> Question:
    """Parse a form.

    Raises:
        UsageError: the command line would refuse the options, in the same words.
        costmodel.errors.CostModelError: the options contradict each other, or have no answer.
    """
    try:
        context = click.Command("project", params=list(OPTIONS)).make_context("project", words(typed))
        return Question(places_of(context), providers_of(context))
    except click.UsageError as error:
        raise UsageError(error.format_message()) from error


def next_value(text: str, field: Field, choices: Sequence[str], step: int) -> str:
    """Return the next choice, or twice the number; with ``step`` -1 the previous choice, or half of the number.

    Below the first value an option is unset, unless the option has a default. Other texts do not change.
    """
    if choices:
        values = ["", *choices]
        number = values.index(text) + step if text in values else 1
        return values[min(max(number, 0), len(values) - 1)]
    start = START.get(field.name, "1")
    if not text:
        return start if step > 0 else ""
    match = AMOUNT.fullmatch(text)
    if match is None:
        return text
    digits, unit = match[1].replace(",", ""), match[2]
    is_whole = "." not in digits
    if step > 0:
        return f"{int(digits) * 2 if is_whole else float(digits) * 2:.15g}{unit}"
    if text in ("1", start):
        return text if field.name in DEFAULTS else ""
    return f"{max(1, int(digits) // 2) if is_whole else float(digits) / 2:.15g}{unit}"
