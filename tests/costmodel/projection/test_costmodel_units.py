"""Whoever reads a number of the cost model reads its unit with it."""

from __future__ import annotations

import inspect
import re
from typing import get_type_hints

import pytest

from costmodel.analysis import baseline, questions
from costmodel.projection import row
from costmodel.simulation import makespan
from costmodel.statistics.distribution import Distribution
from costmodel.statistics.intervals import Interval

UNITS = re.compile(r"(^|_)(ns|s|s2|usd|hours|usd_hour|percent|actions|workers|sandboxes|successes|attempts)$")
SHARES = {
    "delivered",
    "failure",
    "ratio",
    "ratio_low",
    "ratio_high",
    "billed_ratio",
    "hit",
    "cleanup_share_left_out",
    "beyond",
}
HOLDERS = {
    row.Trajectory: "trajectory_s",
    row.ByCause: "by_cause_worker_hours",
    row.WallClock: "wall_clock_hours",
}
"""What is in these has the unit that the name of the field says which holds them."""
IN_ACTIONS = {row.BreakEven}
CLASSES = [
    found
    for module in (row, makespan, baseline, questions)
    for found in vars(module).values()
    if inspect.isclass(found) and found.__module__ == module.__name__ and found not in HOLDERS.keys() | IN_ACTIONS
]


@pytest.mark.parametrize("found", CLASSES, ids=lambda found: found.__name__)
def test_the_name_of_a_quantity_ends_with_its_unit(found: type) -> None:
    for name, hint in get_type_hints(found).items():
        parts = {hint, *getattr(hint, "__args__", ())}
        if parts & {float, Interval, Distribution, *HOLDERS} and name not in SHARES:
            assert UNITS.search(name) or name.startswith("usd_per_"), name


def test_what_holds_several_quantities_says_their_unit() -> None:
    hints = get_type_hints(row.Row)
    assert {hints[name] for name in HOLDERS.values()} == {holder | None for holder in HOLDERS}
