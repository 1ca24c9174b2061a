"""Repetitions of a run: the seed, the budget and the end of each."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec

from costmodel import CostModelError, TrainingRun, project, read_recording
from taxtui.plan.repeating import MIN_RUNS
from taxtui.plan.spec import Plan


def plan_of(plan: Plan, repetition: int) -> Plan:
    """Return the plan of one repetition, with the repetition's seed: the plan's own for the first."""
    seed = random.Random(f"{plan.seed}:{repetition}").getrandbits(32) if repetition else plan.seed
    return msgspec.structs.replace(plan, seed=seed)


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
