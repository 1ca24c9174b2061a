"""Repetitions of a run: the seed, the budget and the end of each."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec

from costmodel import CostModelError, TrainingRun, project, read_recording
from taxtui.plan.repeating import MIN_RUNS
from taxtui.plan.spec import Plan


def seed_of(seed: int, repetition: int) -> int:
    """Return the seed of a repetition: the plan's own for the first."""
    return seed if repetition == 0 else random.Random(f"{seed}:{repetition}").getrandbits(32)


def plan_of(plan: Plan, repetition: int) -> Plan:
    """Return the plan of one repetition, with the repetition's seed."""
    return msgspec.structs.replace(plan, seed=seed_of(plan.seed, repetition))


def remaining_s(plan: Plan, repetition: int, elapsed_s: float, left_s: float | None) -> float | None:
    """Return the remaining time of the whole run, with ``left_s`` left of this repetition after ``elapsed_s``.

    Each repetition to come takes as long as this one. With ``until`` the number is unknown, and none is counted.
    """
    if left_s is None or plan.until is not None:
        return left_s
    return left_s + (plan.repeat - 1 - repetition) * (elapsed_s + left_s + plan.gap_s)


def budget_share_s(plan: Plan, repetition: int, elapsed_s: float) -> float | None:
    """Return an equal share of the remaining budget for this repetition. None: the plan has no budget."""
    if plan.budget_s is None:
        return None
    to_come = (MIN_RUNS if plan.until is not None else plan.repeat) - repetition
    left_s = plan.budget_s - elapsed_s - max(0, to_come - 1) * plan.gap_s
    return left_s / max(1, to_come)


def widest_interval(path: Path) -> float | None:
    """Return half of the widest relative 95 % interval among cells, of the occupied time per success.

    The difference between repetitions is part of the interval. None where a cell has no interval yet.
    """
    try:
        rows = project([read_recording(path)], TrainingRun(trajectories=1, workers=1), each_level=True)
    except CostModelError:
        return None
    widths = []
    for row in rows:
        held = row.held_per_success_s
        if held is None or held.low is None or held.high is None or not held.value:
            return None
        widths.append((held.high - held.low) / 2 / held.value)
    return max(widths, default=None)
