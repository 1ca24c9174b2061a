"""What an attribution says that it rests on."""

from __future__ import annotations

from typing import Any

from costmodel import TrainingRun
from costmodel.attribution.assumptions import POISONED, REQUESTED, STEP_MODEL_RULES, assumptions
from costmodel.statistics.repetitions import Basis
from costmodel.training.run import Images

ASSUMED = Basis(1, 0.08, measured=False, source="as shipped")


def told(scale: int = 1, **asked: Any) -> dict[str, tuple[str, str]]:
    training_run = TrainingRun(**{"trajectories": 1000, "workers": 64, "prompts": 4, "group_size": 4} | asked)
    found = assumptions(training_run, ASSUMED, failures=3, trials=1200, scale=scale)
    assert len({one.name for one in found}) == len(found)
    return {one.name: (one.value, one.source) for one in found}


def test_what_is_asked_for_is_told_with_its_unit_and_what_is_usual_is_not() -> None:
    found = told(train_s=60.0, gpus=8, gpu_usd_hour=2.5, timeout_s=900.0, include_cleanup=True)
    assert found["train_s"] == ("60 s", REQUESTED)
    assert found["gpu_usd_hour"] == ("2.5 $ an hour", REQUESTED)
    assert found["timeout_s"] == ("900 s", REQUESTED)
    assert found["include_cleanup"] == ("yes", REQUESTED)
    assert "policy" not in found


def test_failures_are_measured() -> None:
    assert told()["failure_rate"] == ("3 of 1,200 attempts", "measured")


def test_the_share_of_groups_with_a_failed_attempt_is_told() -> None:
    assert told(failure_rate=0.05)[POISONED] == ("19%, 1 − (1 − 0.05)^4", REQUESTED)
    assert told(failure_rate=0.05, failure_burst=2)[POISONED] == ("10%, 1 − (1 − 0.05)^2", REQUESTED)
    assert told()[POISONED] == ("1%, 1 − (1 − 0.0025)^4", "measured")
    assert POISONED not in told(failure_rate=0.0)
    assert POISONED not in told(prompts=None, group_size=None, batch=16)


def test_images_bring_along_what_nobody_said_about_them() -> None:
    nodes = {"nodes": 4, "pods_per_node": 16, "images": Images.of([2.0, 4.0])}
    found = told(**nodes, pull_gb_s=0.1)
    assert found["placement"][1] == STEP_MODEL_RULES
    assert found["pull_gb_s"] == ("0.1 GB/s", REQUESTED)
    chosen = told(**nodes, placement="prepulled")
    assert chosen["placement"] == ("prepulled", REQUESTED)
