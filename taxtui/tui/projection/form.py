"""The form of the Projection screen: the options of ``taxtui project``, and a command line made of what is typed."""

from __future__ import annotations

import bisect
import math
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from costmodel.policies import POLICIES
from taxtui.errors import UsageError
from taxtui.report.projected.options import OPTIONS, demand_of
from taxtui.tui.recordings.catalogue import shown

if TYPE_CHECKING:
    from costmodel import Demand

TRAJECTORIES: Final = 1_000_000
WORKERS: Final = 500
USUAL: Final[Mapping[str, str]] = {"trajectories": str(TRAJECTORIES), "workers": str(WORKERS)}
ON: Final = "yes"

Typed = Mapping[str, str]
"""An option's name → its text as typed; what is not in it is not asked for."""


def _rounds(low: int, high: int) -> tuple[str, ...]:
    """1, 2, 5, 10 … from 10**low to 10**high."""
    return (*(f"{step}{'0' * power}" for power in range(low, high) for step in (1, 2, 5)), f"1{'0' * high}")


_RATES: Final = ("0.1", "0.2", "0.5", *_rounds(0, 3))
_SECONDS: Final = ("0.5", "1", "2", "5", "10", "20", "30", "60", "120", "300", "600", "1800", "3600")
_SMALL: Final = tuple(map(str, range(1, 11)))
_POWERS: Final = tuple(str(2**power) for power in range(1, 13))

GROUPS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "Training run": {
        "trajectories": _rounds(3, 9),
        "workers": _rounds(0, 6),
        "actions": ("1", "5", "10", "20", "30", "50", "75", "100", "150", "200", "300", "500", "1000"),
    },
    "Compare with": {"baseline": (), "full_speed": ()},
    "Failed attempts": {"max_attempts": _SMALL, "backoff_seconds": _SECONDS, "timeout_seconds": _SECONDS},
    "Actions": {
        "think": ("1s", "2s", "5s", "8s", "15s", "30s", "60s", "lognormal:8s,0.6"),
        "include_cleanup": (ON,),
    },
    "Provider's limits": {"quota": _rounds(0, 5), "create_rate": _RATES, "create_burst": _rounds(0, 3)},
    "Warm pool": {
        "warm_pool": _rounds(0, 4),
        "refill_seconds": _SECONDS,
        "refill_rate": _RATES,
        "group_size": _POWERS,
    },
    "Training steps": {
        "batch": _POWERS,
        "train_seconds": _SECONDS,
        "policy": tuple(POLICIES),
        "over_provision": tuple(f"{percent / 100:g}" for percent in (5, 10, 15, 20, 25, 30, 40, 50, 75, 100)),
        "partial_rollouts": (ON,),
    },
    "GPUs": {"gpus": _POWERS, "gpu_usd_hour": ("0.5", "1", "1.5", "2", "2.5", "3", "4", "5", "7.5", "10")},
    "Money, changes, seed": {
        "prices": (),
        "deltas": ("-10ms/action", "-100ms/action", "-1s/rollout", "+10ms/action", "+100ms/action", "+1s/rollout"),
        "seed": tuple(map(str, range(1, 11))),
    },
}
"""Group → option → the values that a slider stops at; () where the recordings or the shipped sheets say which."""


class Field(NamedTuple):
    """One option of ``taxtui project``, as the panel shows it."""

    name: str
    label: str
    help: str
    required: bool
    flag: bool
    stops: tuple[str, ...]


@cache
def fields() -> Mapping[str, Field]:
    """Every field by its name, in the order of the panel."""
    options = {option.name: option for option in OPTIONS}
    found = {}
    for group in GROUPS.values():
        for name, stops in group.items():
            option = options[name]
            label = option.opts[-1].lstrip("-").replace("-", " ")
            found[name] = Field(name, label, option.help or "", option.required, bool(option.is_flag), stops)
    return found


def words(typed: Typed) -> list[str]:
    """The options of a command line that asks this."""
    found: list[str] = []
    for option in OPTIONS:
        if value := typed.get(str(option.name), "").strip():
            if option.is_flag:
                found.append(option.opts[-1])
            else:
                for one in value.split() if option.multiple else [value]:  # a change may begin with a minus
                    found += [f"{option.opts[-1]}={one}"] if one.startswith("-") else [option.opts[-1], one]
    return found


def command(paths: Sequence[Path], typed: Typed = USUAL) -> str:
    """The command line that prints the same projection."""
    return shlex.join(["taxtui", "project", *map(shown, paths), *words(typed)])


def parsed(typed: Typed) -> tuple[Demand, str | None]:
    """The demand that was typed, and the price sheet that it names.

    Raises:
        UsageError: the command line would refuse it, in the same words.
        costmodel.errors.DemandError: the options contradict each other, or cannot be answered.
    """
    try:
        params = click.Command("project", params=list(OPTIONS)).make_context("project", words(typed)).params
    except click.UsageError as error:
        raise UsageError(error.format_message()) from error
    sheet = params.pop("prices")
    return demand_of(params), sheet


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
    """Where a text stands among stops: an index, a half beyond one where it is a number in between; None elsewhere."""
    if text in ladder:
        return float(ladder.index(text))
    try:
        value, stops = float(text), [float(stop) for stop in ladder if stop]
    except ValueError:
        return None
    offset = len(ladder) - len(stops)
    if not stops or value != value:
        return None
    place = bisect.bisect_left(stops, value)
    if place < len(stops) and stops[place] == value:
        return float(offset + place)
    return offset + place - 0.5
