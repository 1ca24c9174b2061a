"""How often a plan may be run: what is refused, with its arithmetic, before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from taxtui.errors import ScenarioError
from taxtui.plan import scenario
from taxtui.plan.repeating import MOST_RUNS
from taxtui.plan.spec import Plan
from taxtui.runner.fanout.repetition import plan_of
from taxtui.runner.identity import describe

CELL = {"substrates": ["local"], "tiers": ["T0"], "actions": [2], "trials": 20, "warmup": 1}


def planned(**top: Any) -> Plan:
    return scenario.plan(msgspec.convert({"cells": [CELL], **top}, scenario.ScenarioFile), Path())


@pytest.mark.parametrize(
    ("top", "words"),
    [
        ({"repeat": 0}, "repeat must be 1 or more, not 0"),
        ({"repeat": 3, "max_sandboxes": 60}, "3 runs of 21 sandboxes make 63, and max_sandboxes is 60"),
        ({"repeat": 3, "gap": "10m", "budget": "20m"}, r"wait 2 x 600 = 1200 s, and the budget is 1200 s"),
        ({"gap": "10m"}, "gap needs at least two runs"),
        ({"until": "5%"}, "until without a limit may never end; add a limit"),
        ({"until": "5%", "repeat": 2}, "until needs 3 runs to see how much they differ, and repeat is 2"),
        ({"until": "5%", "max_sandboxes": 50}, "3 runs of 21 sandboxes make 63"),
        ({"until": "150%", "repeat": 5}, "'150%' is no share above 0 and below 1; write 5% or 0.05"),
    ],
)
def test_what_cannot_be_is_refused_with_its_arithmetic(top: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        planned(**top)


def test_what_is_enough_is_planned() -> None:
    assert planned().repeat == 1
    assert "repeat" not in describe(planned())
    plan = planned(repeat=3, gap="1m", max_sandboxes=63, budget="3m")
    assert (plan.repeat, plan.gap_s, plan.until) == (3, 60.0, None)
    assert describe(plan)["repeat"] == 3
    plan = planned(until="5%", budget="1h")
    assert (plan.repeat, plan.until) == (MOST_RUNS, 0.05)


def test_every_repetition_has_a_seed_of_its_own() -> None:
    plan = planned(seed=7)
    assert plan_of(plan, 0) == plan
    assert len({plan_of(plan, repetition).seed for repetition in range(50)}) == 50
