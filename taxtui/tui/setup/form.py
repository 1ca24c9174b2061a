"""The Setup form as data: scenario and command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import msgspec

from taxtui.errors import ScenarioError, TaxtuiError, UsageError
from taxtui.plan import scenario
from taxtui.plan.durations import parse_duration_ns
from taxtui.plan.notation import parse_count
from taxtui.plan.scenario import ScenarioFile
from taxtui.plan.spec import Plan

NAME = "setup"
"""Name of the form's scenario."""


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """The form's fields."""

    substrates: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ("T1",)
    actions: str = "50"  # as typed: any numbers
    modes: tuple[str, ...] = ("exec", "session")
    trials: str = "20"  # as typed
    warmup: str = "1"
    concurrency: str = "1"
    arrival: str = ""  # for ``--arrival``; "" = the usual arrival
    budget: str = "120s"  # start no more trials after this time; "" = never
    repeat: str = "1"  # complete runs, as typed

    @property
    def missing(self) -> str:
        for field, picked in (
            ("a substrate", self.substrates),
            ("a tier", self.tiers),
            ("a mode", self.modes),
        ):
            if not picked:
                return f"pick {field}"
        for field, text, minimum in (
            ("trials", self.trials, 1),
            ("warm-up", self.warmup, 0),
            ("concurrency", self.concurrency, 1),
            ("runs", self.repeat, 1),
        ):
            if not (text.isascii() and text.isdigit() and int(text) >= minimum):
                return f"{field} must be a whole number from {minimum} up"
        if not self.lengths:
            return "actions must be whole numbers from 1 up, such as 10, 50"
        if self.budget:
            try:
                parse_duration_ns(self.budget)
            except UsageError as error:
                return f"budget: {error}"
        try:
            self.plan()
        except ScenarioError as error:
            return str(error).removeprefix(f"{NAME}: ")
        return ""

    @property
    def lengths(self) -> tuple[int, ...]:
        """The typed numbers of actions; () if a text is no number."""
        try:
            numbers = [parse_count(text) for text in re.split(r"[,\s]+", self.actions.strip(", "))]
        except UsageError:
            return ()
        return tuple(dict.fromkeys(numbers)) if min(numbers) >= 1 else ()

    def plan(self) -> Plan:
        """Return the plan. Raises ``ScenarioError`` in the words of ``taxtui run``; ask ``missing`` first."""
        return _plan(self)

    def scenario(self) -> dict[str, Any]:
        """Return the equivalent scenario file, as a mapping."""
        block = {
            "substrates": list(self.substrates),
            "tiers": list(self.tiers),
            "actions": list(self.lengths),
            "modes": list(self.modes),
            "trials": int(self.trials),
            "warmup": int(self.warmup),
            "concurrency": int(self.concurrency),
            "arrival": self.arrival,
        }
        repeat = {"repeat": int(self.repeat)} if int(self.repeat) > 1 else {}
        return {"name": NAME, "budget": self.budget, **repeat, "cells": [block]}

    def command(self, limits: Sequence[str] = ()) -> str:
        """Return the command line of this measurement; ``limits`` are options against cost."""
        words = ["taxtui", "run"]
        for option, values in (
            ("-s", self.substrates),
            ("-t", self.tiers),
            ("-n", self.lengths),
            ("--mode", self.modes),
        ):
            for value in values:
                words += [option, str(value)]
        words += ["--trials", self.trials, "--warmup", self.warmup, "--concurrency", self.concurrency]
        words += ["--arrival", self.arrival] if self.arrival else []
        words += ["--budget", self.budget] if self.budget else []
        words += ["--repeat", self.repeat] if int(self.repeat) > 1 else []
        return shlex.join([*words, *limits])

    def summary(self) -> str:
        """``2 substrates × 2 tiers × 2 lengths × 1 mode × 100 = 800 trials``."""
        parts = [
            counted(len(self.substrates), "substrate"),
            counted(len(self.tiers), "tier"),
            counted(len(self.lengths), "length"),
            counted(len(self.modes), "mode"),
        ]
        cells = len(self.substrates) * len(self.tiers) * len(self.lengths) * len(self.modes)
        trials = cells * int(self.trials) * int(self.repeat)
        runs = f" × {counted(int(self.repeat), 'run')}" if int(self.repeat) > 1 else ""
        return f"{' × '.join(parts)} × {self.trials}{runs} = {counted(trials, 'trial')}"


@lru_cache(8)
def _plan(choices: Choices) -> Plan:
    return scenario.plan(msgspec.convert(choices.scenario(), ScenarioFile), Path())


def counted(number: int, thing: str) -> str:
    """``1 tier``, ``2 tiers``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def shipped_tiers() -> list[str]:
    """Return the names of the shipped tiers."""
    root = scenario.CHECKOUT if scenario.CHECKOUT.is_dir() else scenario.BUNDLE
    return sorted(path.stem for path in root.glob("tiers/*.toml"))


@cache
def about_tier(name: str) -> str:
    """``T2  attrs, a bug fixed · 7 steps before the first action, then a cycle of 10: ls, cat …``."""
    try:
        tier = scenario.load_tier(name)
    except TaxtuiError as error:
        return f"{name}  {error}"
    before = f"{counted(len(tier.setup), 'step')} before the first action, then " if tier.setup else ""
    return f"{tier.name}  {tier.title} · {before}a cycle of {len(tier.cycle)}: {', '.join(s.name for s in tier.cycle)}"
