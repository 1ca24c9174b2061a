"""Runs in steps against the SimPy twin of docs/simulation.md; tests/studies/study_step_twin.py has many more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.cost_model.step_cases import KINDS, LIFE, StepCompared, a_life_case, a_step_case, compared

SEEDS = (1, 5, 11, 23, 38, 44, 45, 46, 47, 48, 50, 55, 61, 62, 65, 69, 71, 75, 79, 89, 101, 104, 106, 158)
OF_CAUSES = (46, 48, 55, 62)
CAUSES = ("create", "image_pull", "throttle", "failures", "cleanup")


def answered(seeds: Sequence[int], folder: Path, runs: int, causes: tuple[str, ...] = ()) -> list[StepCompared]:
    return [one for seed in seeds for one in compared(a_step_case(seed), folder, runs, causes)]


def test_the_seeds_combine_everything() -> None:
    cases = [a_step_case(seed) for seed in SEEDS]
    assert {kind for case in cases for kind in case.kinds} == set(KINDS)
    asked = [case.asked for case in cases]
    assert {one.on_failure for one in asked} == {"retry", "mask", "resample", "keep"}
    assert {one.placement for one in asked if one.images} == {"spread", "colocated", "prepulled", "prefetched"}
    assert {one.policy for one in asked} == {"sync", "one-step-off", "async"}
    assert any(one.failure_hazard for one in asked)
    assert any(one.correlation for one in asked)
    assert any(one.staleness for one in asked)
    assert any(one.disk_gb < 100 for one in asked)


@pytest.mark.slow
def test_the_model_and_the_twin_tell_the_same_story(tmp_path: Path) -> None:
    found = answered(SEEDS, tmp_path, 20)
    outside = [one for one in found if not one.inside]
    assert len(outside) <= 0.05 * len(found), "\n".join(map(str, outside))


@pytest.mark.slow
@pytest.mark.parametrize("kind", LIFE)
def test_the_life_cycle_is_the_twins(tmp_path: Path, kind: str) -> None:
    found = [one for seed in range(6) for one in compared(a_life_case(kind, seed), tmp_path, 20)]
    outside = [one for one in found if not one.inside]
    assert len(outside) <= 0.05 * len(found), "\n".join(map(str, outside))


@pytest.mark.slow
def test_what_a_cause_costs_is_the_same_without_it(tmp_path: Path) -> None:
    found = [one for one in answered(OF_CAUSES, tmp_path, 20, CAUSES) if ":" in one.name]
    assert {one.name.partition(":")[0] for one in found} == set(CAUSES)
    outside = [one for one in found if not one.inside]
    assert len(outside) <= 0.05 * len(found), "\n".join(map(str, outside))
