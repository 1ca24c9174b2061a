"""The form of the Projection screen: the options of ``taxtui project``, and a command line made of what is typed."""

from __future__ import annotations

import bisect
import math
import shlex
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from costmodel import ON_FAILURE, PLACEMENTS, POLICIES, load, toml
from taxtui.errors import UsageError
from taxtui.live.catalogue import shown, stamp
from taxtui.options.training import GROUPS, OPTIONS, SET, TYPED
from taxtui.options.training_file import field_of
from taxtui.options.training_runs import places_of, providers_of
from taxtui.plan.notation import parse_count

if TYPE_CHECKING:
    from costmodel import PlaceAsked, Provider, TrainingRun

TRAJECTORIES: Final = 1_000_000
WORKERS: Final = 500
USUAL: Final[Mapping[str, str]] = {"trajectories": str(TRAJECTORIES), "workers": str(WORKERS)}
ON: Final = "yes"
FILE: Final = "file"
"""The option that takes a training file."""
HIDDEN: Final = ("changes", "tiers", "modes", *(str(option.name) for option in GROUPS["life_cycle"].options))
"""Options that the form does not show: they set others, select rows, or are questions of ``project --what-if``."""

Typed = Mapping[str, str]
"""Typed texts by the options' names; an absent option is not given."""

FIRST: Final = ("trajectories", "workers", "actions", "batch", "gpus", FILE)
"""The options that every training run has; all others are folded away in their groups."""
MORE: Final = "Compare, spread"
"""The rest of the group of these options."""


def _rounds(low: int, high: int) -> tuple[str, ...]:
    """1, 2, 5, 10 … from 10**low to 10**high."""
    return (*(f"{step}{'0' * power}" for power in range(low, high) for step in (1, 2, 5)), f"1{'0' * high}")


_RATES: Final = ("0.1", "0.2", "0.5", *_rounds(0, 3))
_SECONDS: Final = ("0.5", "1", "2", "5", "10", "20", "30", "60", "120", "300", "600", "1800", "3600")
_SMALL: Final = tuple(map(str, range(1, 11)))
_POWERS: Final = tuple(str(2**power) for power in range(1, 13))
_DOLLARS: Final = ("0.5", "1", "1.5", "2", "2.5", "3", "4", "5", "7.5", "10")
_PERCENT: Final = ("0%", "1%", "2%", "5%", "7%", "10%", "15%", "20%")

STOPS: Final[Mapping[str, tuple[str, ...]]] = {
    "trajectories": _rounds(3, 9),
    "workers": _rounds(0, 6),
    "actions": ("1", "5", "10", "20", "30", "50", "75", "100", "150", "200", "300", "500", "1000"),
    "run_sd": _PERCENT,
    "seed": _SMALL,
    "include_cleanup": (ON,),
    "think": ("1s", "2s", "5s", "8s", "15s", "30s", "60s", "lognormal:8s,0.6"),
    "think_correlation": ("0.1", "0.3", "0.5", "0.7", "0.9"),
    "prompts": _POWERS,
    "group_size": _POWERS,
    "batch": _POWERS,
    "policy": tuple(POLICIES),
    "staleness": _SMALL,
    "over_provision": tuple(f"{percent / 100:g}" for percent in (5, 10, 15, 20, 25, 30, 40, 50, 75, 100)),
    "partial_rollouts": (ON,),
    "train_seconds": _SECONDS,
    "gpus": _POWERS,
    "gpu_usd_hour": _DOLLARS,
    "images": ("500:2-8", "100:1-2", "1:4", "2,4,8"),
    "placement": PLACEMENTS,
    "nodes": _rounds(0, 4),
    "pods_per_node": ("4", "8", "16", "32", "64", "110"),
    "node_usd_hour": _DOLLARS,
    "node_disk_gib": ("50", "100", "200", "500", "1000", "2000"),
    "pull_gb_s": ("0.05", "0.1", "0.2", "0.5", "1", "2"),
    "failure_rate": _PERCENT[1:],
    "failure_hazard": ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"),
    "failure_burst": _SMALL,
    "on_failure": ON_FAILURE,
    "max_attempts": _SMALL,
    "backoff_seconds": _SECONDS,
    "timeout_seconds": _SECONDS,
    "quota": _rounds(0, 5),
    "create_rate": _RATES,
    "create_burst": _rounds(0, 3),
    "warm_pool": _rounds(0, 4),
    "refill_seconds": _SECONDS,
    "refill_rate": _RATES,
    "instant_claim": (ON,),
}
"""The stops of each slider. Options without stops take a text, or stops that depend on the recordings."""


class Field(NamedTuple):
    """One option of ``taxtui project``, as the form shows it."""

    name: str
    label: str
    help: str
    required: bool
    flag: bool
    stops: tuple[str, ...]


@cache
def fields() -> Mapping[str, Field]:
    """Every field by its name."""
    return {str(option.name): _field(option) for option in OPTIONS if option.name not in HIDDEN}


def _field(option: click.Option) -> Field:
    name, label = str(option.name), option.opts[-1].lstrip("-").replace("-", " ")
    return Field(name, label, option.help or "", name in USUAL, bool(option.is_flag), STOPS.get(name, ()))


@cache
def groups() -> Mapping[str, Sequence[Field]]:
    """Return the fields by heading, as the help has them; the most common fields under ""."""
    by_name = fields()
    collected: dict[str, Sequence[Field]] = {"": [by_name[name] for name in FIRST]}
    for table, group in GROUPS.items():
        rest = [by_name[str(item.name)] for item in group.options if item.name not in (*FIRST, *HIDDEN)]
        if rest:
            collected[MORE if table == "run" else group.heading] = rest
    return collected


@lru_cache(4)
def _file_values(path: str, stamp: tuple[int, int]) -> Mapping[str, str]:
    try:
        document = toml.Document(Path(path)).data
    except (OSError, toml.MalformedDocument):
        return {}  # ``parsed`` refuses the file with its reason
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
    """Return the values that the training file gives, by the options' names; nothing for tables of one substrate."""
    path = typed.get(FILE, "")
    return _file_values(path, stamp(Path(path))) if path else {}


def value_of(name: str, typed: Typed) -> str:
    """Return the value of an option: as typed, else of the training file, else the usual one, else ""."""
    return typed.get(name) or file_values(typed).get(name) or USUAL.get(name, "")


def in_use(heading: str, typed: Typed) -> int:
    """Return how many fields of a group differ from the usual."""
    return sum(value_of(field.name, typed) != USUAL.get(field.name, "") for field in groups()[heading])


def listed(typed: Typed, turned: Collection[str]) -> list[Field | str]:
    """Return the lines of the form: headings, and the fields of open groups.

    A group in use is open; ``turned`` are the headings that a person has opened or folded.
    """
    lines: list[Field | str] = []
    for heading, members in groups().items():
        lines += [heading] if heading else []
        if not heading or is_open(heading, typed, turned):
            lines += members
    return lines


def is_open(heading: str, typed: Typed, turned: Collection[str]) -> bool:
    """Whether the fields of a group are shown."""
    return (heading in turned) != bool(in_use(heading, typed))


def words(typed: Typed) -> list[str]:
    """Return the options of the command line that asks this."""
    collected: list[str] = []
    for option in OPTIONS:
        name = str(option.name)
        value = typed.get(name, "").strip()
        if value:
            typed_as = [option.opts[-1]] if option in TYPED else [SET.opts[-1], f"{field_of(option)}="]
            collected += _typed(typed_as, value, option)
    return collected


def _typed(typed_as: Sequence[str], value: str, option: click.Option) -> list[str]:
    """The words of one option: ``--gpus 8``, ``--partial-rollouts`` or ``--set nodes=125``."""
    flag, *key = typed_as
    collected: list[str] = []
    for item in value.split() if option.multiple else ["true" if option.is_flag else value]:
        if key:
            collected += [flag, f"{key[0]}{item}"]
        elif option.is_flag:
            collected.append(flag)
        else:  # a change may begin with a minus
            collected += [f"{flag}={item}"] if item.startswith("-") else [flag, item]
    return collected


def command(paths: Sequence[Path], typed: Typed = USUAL) -> str:
    """The command line that prints the same projection."""
    return shlex.join(["taxtui", "project", *map(shown, paths), *words(typed)])


class Question(NamedTuple):
    """A parsed form, for the cost model."""

    places: Sequence[PlaceAsked]  # that a training file tells apart, and then all others
    providers: Sequence[Provider] = ()  # that are composed

    @property
    def training_run(self) -> TrainingRun:
        return self.places[-1].training_run


def parsed(typed: Typed) -> Question:
    """Parse a form.

    Raises:
        UsageError: the command line would refuse it, in the same words.
        costmodel.errors.CostModelError: the options contradict each other, or cannot be answered.
    """
    try:
        context = click.Command("project", params=list(OPTIONS)).make_context("project", words(typed))
        return Question(places_of(context), providers_of(context, lambda name: load(Path(name))))
    except click.UsageError as error:
        raise UsageError(error.format_message()) from error


def next_stop(text: str, stops: Sequence[str], step: int, *, required: bool) -> str:
    """The stop ``step`` places from ``text``; numbers may lie between two. Left of the first is "": not asked for."""
    ladder = list(stops) if required else ["", *stops]
    place = position(text, ladder)
    if place is None:
        return ladder[0] if step < 0 else ladder[-1]
    low = math.floor(place)
    if step > 0 and place > len(ladder) - 1:  # beyond the last stop already
        return text
    # between two stops, the nearest one in that direction is the first step
    target = low + step if place == low or step > 0 else low + 1 + step
    return ladder[min(max(target, 0), len(ladder) - 1)]


def position(text: str, ladder: Sequence[str]) -> float | None:
    """Return the index of a text among stops, a half more between two stops; None for any other text."""
    if text in ladder:
        return float(ladder.index(text))
    try:
        value, stops = number(text), [float(stop) for stop in ladder if stop]
    except ValueError:
        return None
    offset = len(ladder) - len(stops)
    if not stops or value != value:
        return None
    place = bisect.bisect_left(stops, value)
    if place < len(stops) and stops[place] == value:
        return float(offset + place)
    return offset + place - 0.5


def number(text: str) -> float:
    """``0.5``, ``1,000,000`` or ``10k`` as a number. Raises ``ValueError``."""
    try:
        return float(text)
    except ValueError:
        try:
            return float(parse_count(text))
        except UsageError as error:
            raise ValueError(str(error)) from error
