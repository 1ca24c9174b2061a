"""Runs in steps against the SimPy twin of docs/simulation.md and against properties of every run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import Think
from costmodel.simulation.attempts import Parts
from tests.support.cost_model.step_cases import KINDS, LIFE, StepCompared, a_life_case, a_step_case, compared
from tests.support.cost_model.stepping import S, parts, stepped, training_run

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
    assert {one.placement for one in asked if one.images} == {"spread", "colocated", "prepulled"}
    assert {one.policy for one in asked} == {"sync", "one-step-off", "async"}
    assert any(one.failure_hazard for one in asked)
    assert any(one.correlation for one in asked)
    assert any(one.staleness for one in asked)
    assert any(one.disk_gb < 100 for one in asked)


@pytest.mark.slow
def test_the_model_and_the_twin_tell_the_same_story(tmp_path: Path) -> None:
    found = answered(SEEDS, tmp_path, 10)
    outside = [one for one in found if not one.inside]
    assert len(outside) <= 0.05 * len(found), "\n".join(map(str, outside))


@pytest.mark.slow
@pytest.mark.parametrize("kind", LIFE)
def test_the_life_cycle_is_the_twins(tmp_path: Path, kind: str) -> None:
    found = [one for seed in range(4) for one in compared(a_life_case(kind, seed), tmp_path, 12)]
    outside = [one for one in found if not one.inside]
    assert len(outside) <= 0.05 * len(found), "\n".join(map(str, outside))


@pytest.mark.slow
def test_what_a_cause_costs_is_the_same_without_it(tmp_path: Path) -> None:
    found = [one for one in answered(OF_CAUSES, tmp_path, 10, CAUSES) if ":" in one.name]
    assert {one.name.partition(":")[0] for one in found} == set(CAUSES)
    outside = [one for one in found if not one.inside]
    assert len(outside) <= 0.05 * len(found), "\n".join(map(str, outside))


SECONDS = st.integers(0, 20)
PARTS = st.builds(
    lambda create, ready, dispatch, harness, work, cleanup: parts(
        create=create, ready=ready, dispatch=dispatch, harness=harness, work=work, cleanup=cleanup, pauses=3
    ),
    *[SECONDS] * 6,
)
THINK = Think(S, 0.5)
ALL_CAUSES = ("create", "ready", "dispatch", "harness", "failures", "cleanup", "throttle")


@settings(max_examples=15, deadline=None)
@given(
    trials=st.lists(PARTS, min_size=1, max_size=4),
    workers=st.integers(1, 20),
    rate=st.sampled_from([None, 0.5, 5.0]),
    failing=st.sampled_from([0.0, 0.3]),
    include=st.booleans(),
    seed=st.integers(0, 99),
)
def test_a_cause_never_shortens_a_step(
    trials: list[Parts], workers: int, rate: float | None, failing: float, include: bool, seed: int
) -> None:
    asked = training_run(
        workers=workers, create_rate=rate, failure_rate=failing, include_cleanup=include, think=Think(S, 0.5)
    )
    (full,) = stepped(asked, trials, seed=seed)
    ideal = full
    for count in range(len(ALL_CAUSES)):
        (without,) = stepped(asked, trials, without={ALL_CAUSES[count]}, seed=seed)
        assert without.wall_ns <= full.wall_ns
        assert without.held_ns <= full.held_ns
        (less,) = stepped(asked, trials, without=set(ALL_CAUSES[: count + 1]), seed=seed)
        assert less.wall_ns <= ideal.wall_ns
        ideal = less


@settings(max_examples=15, deadline=None)
@given(
    trials=st.lists(PARTS, min_size=1, max_size=4),
    workers=st.integers(1, 20),
    backoff=st.integers(0, 5),
    include=st.booleans(),
    seed=st.integers(0, 99),
)
def test_nodes_that_never_fill_and_throttles_that_never_bind_change_nothing(
    trials: list[Parts], workers: int, backoff: int, include: bool, seed: int
) -> None:
    """Two ways through the simulator: workers only, and event by event."""
    usual = {"workers": workers, "include_cleanup": include, "failure_rate": 0.3, "backoff_s": float(backoff)}
    plain = stepped(training_run(**usual), trials, steps=3, seed=seed)
    for more in (
        {"nodes": 1000, "pods_per_node": 1000},
        {"create_rate": 1e-3, "create_burst": 10**6},
        {"timeout_s": 1e9},
        {"nodes": 1000, "pods_per_node": 1000, "timeout_s": 1e9},
    ):
        other = stepped(training_run(**usual | more), trials, steps=3, seed=seed)
        for one, another in zip(plain, other, strict=True):
            assert one == pytest.approx(another)


def test_the_last_of_a_step_is_the_order_statistic() -> None:
    """Of n exponentials the longest has the mean Hₙ, the n-th harmonic number; as quantiles, well above the trials."""
    quantiles = [parts(work=-math.log(1 - (n + 0.5) / 500)) for n in range(500)]
    steps = stepped(training_run(batch=16), quantiles, steps=2000)
    found = [step.wall_ns / S for step in steps]
    mean = sum(found) / len(found)
    exact = sum(1 / k for k in range(1, 17))
    assert mean == pytest.approx(exact, rel=0.03)
