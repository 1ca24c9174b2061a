"""Repetitions of a plan, within the plan's limits."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from taxtui.errors import UsageError
from taxtui.plan.spec import Plan

MIN_RUNS: Final = 3
"""Fewer repetitions do not show the difference between repetitions."""
MOST_RUNS: Final = 100
"""Most repetitions of a plan with ``until`` and without ``repeat``."""


def parse_share(text: str) -> float:
    """``5%`` or ``0.05``: above 0, below 1. Raises ``UsageError``."""
    try:
        share = float(text.strip().removesuffix("%")) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        raise UsageError(f"{text!r} is no share above 0 and below 1", fix="write 5% or 0.05")
    return share


def repeating(plan: Plan, repeat: int | None) -> Plan:
    """Return the plan with a number of repetitions; None: one, or as many as needed for ``until``.

    Raises:
        UsageError: the plan's limits are too low for the repetitions, or the plan would never end.
    """
    if repeat is not None and repeat < 1:
        raise UsageError(f"repeat must be 1 or more, not {repeat}")
    if plan.until is not None:
        if repeat is not None and repeat < MIN_RUNS:
            raise UsageError(
                f"until needs {MIN_RUNS} runs to see how much they differ, and repeat is {repeat}",
                fix=f"raise it to {MIN_RUNS} or more, or leave one of them out",
            )
        if repeat is None and plan.budget_s is None and plan.max_cost_usd is None and plan.max_sandboxes is None:
            raise UsageError(
                "until without a limit may never end", fix="add a limit: repeat, budget, max_sandboxes or max_cost_usd"
            )
    highest = repeat or (1 if plan.until is None else MOST_RUNS)
    if highest == 1 and plan.gap_s:
        raise UsageError("gap needs at least two runs", fix="add repeat, or leave gap out")
    fewest = highest if plan.until is None else MIN_RUNS
    if fewest > 1:
        _affordable(plan, fewest)
    return msgspec.structs.replace(plan, repeat=highest)


def _affordable(plan: Plan, runs: int) -> None:
    gaps_s = (runs - 1) * plan.gap_s
    if plan.budget_s is not None and gaps_s >= plan.budget_s:
        raise UsageError(
            f"{runs} runs with gaps of {plan.gap_s:g} s wait {runs - 1} x {plan.gap_s:g} = {gaps_s:g} s, "
            f"and the budget is {plan.budget_s:g} s",
            fix="raise the budget, shorten the gap or repeat less",
        )
    needed = runs * plan.sandboxes
    if plan.max_sandboxes is not None and needed > plan.max_sandboxes:
        raise UsageError(
            f"{runs} runs of {plan.sandboxes:,} sandboxes make {needed:,}, and max_sandboxes is {plan.max_sandboxes:,}",
            fix="raise max_sandboxes, plan fewer trials or repeat less",
        )
