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
from taxtui.runner.fanout.repetition import budget_share_s, plan_of, widest_interval
from taxtui.runner.identity import describe
from tests.support.cost_model.costmodel_files import trial, write

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


@pytest.mark.parametrize(
    ("top", "repetition", "elapsed_s", "share_s"),
    [
        ({"repeat": 3}, 0, 0.0, None),
        ({"repeat": 3, "budget": "90s"}, 0, 0.0, 30.0),
        ({"repeat": 3, "budget": "90s"}, 2, 50.0, 40.0),
        ({"repeat": 3, "budget": "90s", "gap": "10s"}, 1, 40.0, 20.0),
        ({"until": "5%", "budget": "90s"}, 5, 80.0, 10.0),
    ],
)
def test_repetitions_share_the_rest_of_the_budget(
    top: dict[str, Any], repetition: int, elapsed_s: float, share_s: float | None
) -> None:
    assert budget_share_s(planned(**top), repetition, elapsed_s) == share_s


def test_the_widest_interval_of_a_recording_is_a_share_of_the_mean(tmp_path: Path) -> None:
    def of(*durations_s: int) -> float | None:
        trials = [
            trial(number, actions=[seconds * 10**9] * 3, block=number) for number, seconds in enumerate(durations_s)
        ]
        return widest_interval(write(tmp_path / f"{len(durations_s)}.msgpack", trials))

    wide = of(1, 2, 3, 4, 5, 6)
    assert wide is not None
    assert 0 < wide < 1
    assert of(1) is None
    assert widest_interval(tmp_path / "missing") is None
