"""A few combinations of limits against the SimPy twin; all of them are in tests/studies/study_policies.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cost_model.policy_cases import POLICIES, a_case, compared

SEEDS = (4, 8, 9, 21, 27)
"""Together they have every limit and every kind of pool."""


def test_the_seeds_cover_every_limit() -> None:
    cases = [a_case(seed) for seed in SEEDS]
    assert {limit for case in cases for limit in case.policies} == set(POLICIES)
    pooled = [case.training_run for case in cases if case.training_run.warm_pool]
    assert {(run.refill_s and "refill_s") or (run.refill_rate and "refill_rate") for run in pooled} == {
        "refill_s", "refill_rate", None,
    }  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_project_and_the_twin_tell_the_same_story(seed: int, tmp_path: Path) -> None:
    found = list(compared(a_case(seed), tmp_path, 12))
    assert {one.name for one in found} >= {"wall-clock", "worker-hours"}
    assert [one for one in found if not one.inside] == []
