"""A few combinations of policies against the SimPy twin; all of them are in tests/studies/study_policies.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cost_model.policy_cases import POLICIES, a_case, compared

SEEDS = (4, 8, 16, 21, 22)
"""Together they have every policy; every kind of pool is in tests/studies/study_policies.py."""


def test_the_seeds_cover_every_policy() -> None:
    assert {policy for seed in SEEDS for policy in a_case(seed).policies} == set(POLICIES)


@pytest.mark.parametrize("seed", SEEDS)
def test_project_and_the_twin_tell_the_same_story(seed: int, tmp_path: Path) -> None:
    found = list(compared(a_case(seed), tmp_path, 25))
    assert {one.name for one in found} >= {"wall-clock", "worker-hours"}
    assert [one for one in found if not one.inside] == []
