"""How long a run still takes: a cell goes in rounds, each as long as a trial."""

from __future__ import annotations

from typing import Any

import pytest

from taxtui.plan.spec import CellPlan, Step, SubstrateRef, Tier
from taxtui.runner.progress import CellProgress, eta_s


def cell_of(cell: CellPlan, ended: int = 0, mean_s: float | None = None) -> CellProgress:
    progress = CellProgress(0, cell)
    progress.ended = ended
    if mean_s is not None:
        progress.took(mean_s)
    return progress


def plan(**fields: Any) -> CellPlan:
    tier = Tier(name="T", title="", cycle=(Step(name="one", run="true"),))
    return CellPlan(**{"substrate": SubstrateRef(name="local"), "tier": tier, "actions": 1} | fields)


@pytest.mark.parametrize(
    ("trials", "concurrency", "ended", "expected"),
    [(10, 1, 4, 42.0), (10, 4, 4, 14.0), (8, 16, 0, 7.0), (8, 16, 3, 7.0), (8, 8, 8, 0.0)],
)
def test_more_lanes_than_trials_take_as_long_as_one_trial(
    trials: int, concurrency: int, ended: int, expected: float
) -> None:
    cell = cell_of(plan(trials=trials, concurrency=concurrency), ended, 7.0)
    assert eta_s([cell], side_by_side=False) == expected


def test_nothing_is_said_before_a_trial_has_ended() -> None:
    assert eta_s([cell_of(plan())], side_by_side=False) is None


def test_cells_that_have_not_begun_are_as_slow_as_the_mean_of_the_others() -> None:
    """With four trials at once everywhere, three slow cells to come are not over in the time of the fast one."""
    known = [cell_of(plan(trials=4, concurrency=8), 4, 1.0), cell_of(plan(trials=4, concurrency=8), 4, 27.0)]
    assert eta_s([*known, cell_of(plan(trials=4, concurrency=8))], side_by_side=False) == 14.0


def test_of_substrates_side_by_side_the_slowest_counts() -> None:
    slow = cell_of(plan(trials=4), 0, 5.0)
    fast = cell_of(plan(trials=4, substrate=SubstrateRef(name="docker")), 0, 1.0)
    assert eta_s([slow, fast], side_by_side=True) == 20.0
    assert eta_s([slow, fast], side_by_side=False) == 24.0
