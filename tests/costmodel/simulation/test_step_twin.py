"""Runs against the SimPy twin of docs/simulation.md and against properties of every run."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import Think, TrainingRun, load, project
from costmodel.simulation.attempts import Parts
from tests.support.cost_model.costmodel_files import trial, write
from tests.support.cost_model.step_cases import (
    KINDS,
    LIFE,
    LIMITS,
    Compared,
    Question,
    StepCase,
    a_life_case,
    a_limits_case,
    a_step_case,
    a_trial,
    compared,
    limits_compared,
)
from tests.support.cost_model.stepping import S, parts, stepped, training_run

SEEDS = (1, 5, 11, 23, 38, 44, 45, 46, 47, 48, 50, 55, 61, 62, 65, 69, 71, 75, 79, 89, 101, 104, 106, 158)
OF_CAUSES = (46, 48, 55, 62)
OF_LIMITS = (4, 8, 9, 21, 27)
CAUSES = ("create", "image_pull", "throttle", "failures", "cleanup")


def test_the_seeds_combine_everything() -> None:
    cases = [a_step_case(seed) for seed in SEEDS]
    assert {kind for case in cases for kind in case.kinds} == set(KINDS)
    asked = [case.asked for case in cases]
    assert {one.on_failure for one in asked} == {"retry", "mask", "resample", "keep"}
    assert {one.placement for one in asked if one.images} == {"spread", "colocated", "prepulled"}
    assert {one.policy for one in asked} == {"sync", "one-step-off", "async"}
    for one_of in ("failure_hazard", "think_correlation", "staleness"):
        assert any(getattr(one, one_of) for one in asked)
    assert any(one.disk_gb < 100 for one in asked)
    limited = [a_limits_case(seed) for seed in OF_LIMITS]
    assert {kind for case in limited for kind in case.kinds[1:]} == set(LIMITS)
    pooled = [case.asked for case in limited if case.asked.warm_pool]
    refills = {(bool(one.refill_s), bool(one.refill_rate)) for one in pooled}
    assert refills == {(True, False), (False, True), (False, False)}


def mostly_inside(found: list[Compared]) -> None:
    outside = [one for one in found if not one.inside]
    assert len(outside) <= 0.05 * len(found), "\n".join(map(str, outside))


@pytest.mark.slow
def test_the_model_and_the_twin_tell_the_same_story(tmp_path: Path) -> None:
    mostly_inside([one for seed in SEEDS for one in compared(a_step_case(seed), tmp_path, 10)])


@pytest.mark.slow
@pytest.mark.parametrize("kind", LIFE)
def test_the_life_cycle_is_the_twins(tmp_path: Path, kind: str) -> None:
    mostly_inside([one for seed in range(4) for one in compared(a_life_case(kind, seed), tmp_path, 12)])


@pytest.mark.slow
def test_what_a_cause_costs_is_the_same_without_it(tmp_path: Path) -> None:
    whole = [one for seed in OF_CAUSES for one in compared(a_step_case(seed), tmp_path, 10, CAUSES)]
    found = [one for one in whole if ":" in one.name]
    assert {one.name.partition(":")[0] for one in found} == set(CAUSES)
    mostly_inside(found)


@pytest.mark.parametrize("seed", OF_LIMITS)
def test_project_and_the_twin_tell_the_same_story(seed: int, tmp_path: Path) -> None:
    """A few combinations of limits; all of them are in tests/studies/study_policies.py."""
    found = list(limits_compared(a_limits_case(seed), tmp_path, 12))
    assert {one.name for one in found} >= {"wall-clock", "worker-hours"}
    assert [one for one in found if not one.inside] == []


SECONDS = st.integers(0, 20)
PARTS = st.builds(
    lambda create, ready, dispatch, harness, work, cleanup: parts(
        create=create, ready=ready, dispatch=dispatch, harness=harness, work=work, cleanup=cleanup, pauses=3
    ),
    *[SECONDS] * 6,
)
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


NODES = {"nodes": 8, "pods_per_node": 8}


def a_stream(batch: int, rollouts: int, *, images: bool = False, staleness: int | None = None) -> StepCase:
    """A stream of ``rollouts`` on 64 workers, each rollout a prompt of its own."""
    found = Question([a_trial(Random(n)) for n in range(12)], trajectories=rollouts, workers=64, batch=batch)
    found.both |= {"group_size": 1, "policy": "async", "train_s": 0.05, "staleness": staleness}
    found.ours["run_sd"] = 0.0
    if images:
        found.images((1.0, 2.0, 4.0))
        found.both |= NODES | {"pull_gb_s": 0.5}
    return found.case("stream")


@pytest.mark.slow
@pytest.mark.parametrize(
    "stream",
    [a_stream(64, 64 * 40), a_stream(1, 500), a_stream(4, 4 * 240, images=True), a_stream(16, 16 * 120, staleness=2)],
    ids=["64 on 64", "64 on 1", "images", "staleness"],
)
def test_a_long_stream_is_told_as_its_twin_tells_it(stream: StepCase, tmp_path: Path) -> None:
    """The drain of what is simulated, times the rest of the run, was up to twelve times too long."""
    for one in compared(stream, tmp_path, 8):
        assert one.inside or abs(one.model - one.twin) < 0.02 * one.twin, str(one)


@pytest.mark.parametrize("policy", ["async", "sync"])
def test_the_attribution_of_a_run_has_the_wall_clock_of_its_row(tmp_path: Path, policy: str) -> None:
    rng = Random(2)
    trials = [trial(n, create=round(rng.lognormvariate(0, 0.6) * S), runs=[S] * 3) for n in range(40)]
    gpus = {"gpus": 8, "gpu_usd_hour": 2.0, "train_s": 1.0}
    asked = TrainingRun(trajectories=2_048, workers=64, batch=16, policy=policy, **gpus)
    (row,) = project([load(write(tmp_path / "a.msgpack", trials))], asked, effort=0.02)
    found, wall = row.attribution, row.wall_clock_hours
    assert found.run.step_s.value * found.steps / 3600 == pytest.approx(wall.value)
    assert found.run.worker_hours.value == pytest.approx(row.worker_hours.value)
    assert found.run.usd.value == pytest.approx(wall.value * 16)
    waiting = found.waiting
    assert waiting.wall_clock_hours == pytest.approx(wall.value)
    parts = (waiting.generation_gpu_hours, waiting.commands_gpu_hours, waiting.stalled_gpu_hours)
    assert sum(part or 0.0 for part in parts) == pytest.approx(waiting.waiting_gpu_hours)
