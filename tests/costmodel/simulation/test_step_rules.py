"""The step model's rules one by one, on runs that can be worked out by hand: docs/simulation.md."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import accumulate
from typing import Any

import pytest

from costmodel import Images, Think, TrainingRun
from costmodel.simulation.attempts import Parts, timed
from costmodel.simulation.random_streams import AttemptStream, RandomStream
from costmodel.simulation.rules import StepRules
from costmodel.simulation.simulator import simulate_steps
from costmodel.simulation.step_sampling import sample_steps
from tests.studies.study_staleness import MEAN_S, STEPS, SYSTEMS, asynchronous, mean_period_s, mean_staleness
from tests.support.cost_model.stepping import S, parts, stepped, training_run, trials_of

TEN = [parts(create=2, ready=1, dispatch=1, work=6)]


def wall_s(asked: TrainingRun, *args: Any, **more: Any) -> list[float]:
    return [step.wall_ns / S for step in stepped(asked, *args, **more)]


PARTED = [parts(queued=1, create=2, ready=3, preload=4, dispatch=5, slowdown=6, contention=7, harness=8, work=9)]
PAUSED = [parts(work=1, pauses=3)]
CLEANED = [parts(work=10, cleanup=3)]
COLD: dict[str, Any] = {"nodes": 4, "pods_per_node": 4, "images": Images.of([1.0] * 10**5), "pull_gb_s": 0.25}
THERE: dict[str, Any] = COLD | {"images": Images.of([1.0] * 9), "pull_gb_s": None, "placement": "prepulled"}
AHEAD: dict[str, Any] = {"batch": 16, "policy": "async", "train_s": 30.0}


@pytest.mark.parametrize(
    ("trial", "asked", "without", "walls"),
    [
        (PARTED, {}, "", [45]),
        (PARTED, {}, "throttle", [44]),
        (PARTED, {}, "create", [43]),
        (PARTED, {}, "dispatch", [40]),
        (PARTED, {}, "slowdown", [39]),
        (PARTED, {}, "contention", [38]),
        (PARTED, {}, "harness", [37]),
        # think time is of the attempt and its pauses
        (PAUSED, {"think": Think(2 * S)}, "", [7]),
        (PAUSED, {"think": Think(2 * S)}, "think", [1]),
        # workers take rollouts in order
        (TEN, {"workers": 8}, "", [20]),
        (TEN, {"workers": 16, "quota": 5}, "", [40]),
        (TEN, {"workers": 16, "quota": 5}, "throttle", [10]),
        # pods are a quota that cleaning up takes part of
        (CLEANED, {"nodes": 2, "pods_per_node": 4}, "", [10 + 3 + 10]),
        (CLEANED, {"nodes": 2, "pods_per_node": 4}, "cleanup", [20]),
        (CLEANED, {"include_cleanup": True}, "", [13]),
        (CLEANED, {}, "", [10]),
        # each step waits for its images unless they are there
        (TEN, COLD | {"placement": "colocated"}, "", [14, 14, 14]),
        (TEN, THERE, "", [10, 10]),
        # rollouts wait for training only if they would run ahead
        (TEN, AHEAD, "", [40, 30, 30, 30]),
        (TEN, AHEAD | {"staleness": 1}, "", [40, 40, 40, 40]),
        (TEN, AHEAD | {"staleness": 2}, "", [40, 30, 30, 30]),
        (TEN, AHEAD | {"policy": "one-step-off"}, "", [40, 30, 30, 30]),
        (TEN, AHEAD | {"policy": "sync"}, "", [40, 40, 40, 40]),
    ],
)
def test_steps_of_equal_trials_by_hand(
    trial: list[Parts], asked: dict[str, Any], without: str, walls: list[float]
) -> None:
    assert wall_s(training_run(**asked), trial, steps=len(walls), without={without}) == walls


def test_rollouts_of_one_prompt_think_alike_if_they_are_correlated() -> None:
    trial = [parts(work=1, pauses=10)]
    apart, together = (
        stepped(training_run(think=Think(S, 1.0), think_correlation=rho, batch=16, group_size=16), trial, steps=200)
        for rho in (0.0, 1.0)
    )
    assert all(step.held_ns / 16 == pytest.approx(step.wall_ns) for step in together)
    assert sum(step.wall_ns for step in together) < 0.8 * sum(step.wall_ns for step in apart)
    means = [sum(step.held_ns for step in one) / 16 / 200 / S for one in (apart, together)]
    assert means == pytest.approx([1 + 10 * math.exp(0.5)] * 2, rel=0.08)


def test_a_node_pulls_one_image_after_another_and_each_once() -> None:
    asked = training_run(nodes=1, pods_per_node=16, images=Images.of([2.0] * 10**5), pull_gb_s=0.5)
    first = stepped(asked, TEN)[0]
    assert first.wall_ns / S == 4 * 4 + 10
    assert first.pulled_gb == 8
    assert first.held_ns / S == 4 * (4 + 8 + 12 + 16) + 16 * 10
    assert wall_s(asked, TEN, without={"image_pull"}) == [10]


@pytest.mark.parametrize("policy", ["sync", "async"])
@pytest.mark.parametrize("placement", ["spread", "colocated"])
def test_the_simulated_steps_pull_what_a_run_that_fills_its_disks_pulls(policy: str, placement: str) -> None:
    size = {"prompts": 16, "trajectories": 64 * 300, "workers": 64, "nodes": 16, "pods_per_node": 4}
    images = {"images": Images.between(2, 8, 100), "pull_gb_s": 1.0, "placement": placement}
    asked = training_run(policy=policy, train_s=1.0, **size, **images)
    whole = sum(step.pulled_gb for step in stepped(asked, TEN, steps=300))
    rules, stream = StepRules(asked), RandomStream(asked, trials_of(TEN), None, 1)
    sample, source = sample_steps(asked, rules, stream, 3), AttemptStream(stream, timed(TEN, (), 1.0), ())
    segments = [segment for number in range(4) for segment in sample.of(number)]
    steps = [step for segment in segments for step in simulate_steps(rules, source, segment, lambda ns, _: sum(ns))]
    weights = sample._replace(rounds=4).stands_for
    assert sum(w * step.pulled_gb for w, step in zip(weights, steps, strict=True)) == pytest.approx(whole, rel=0.15)


def test_failures_take_as_long_as_they_took() -> None:
    """Two in three attempts of 3 s fail; the rest take 10 s. What a rollout holds is 10 + 2 · 3."""
    failed = [parts(unexplained=3), parts(unexplained=3)]
    found = stepped(training_run(batch=16), TEN, failed, steps=400)
    assert sum(step.held_ns for step in found) / 400 / 16 / S == pytest.approx(16, rel=0.05)
    assert all(step.delivered == 16 for step in found)
    assert wall_s(training_run(batch=16), TEN, failed, without={"failures"}) == [10]
    capped = stepped(training_run(batch=16, max_attempts=2), TEN, failed, steps=400)
    assert sum(step.delivered for step in capped) / 400 / 16 == pytest.approx(1 - 4 / 9, rel=0.05)
    assert max(step.attempts for step in capped) <= 32


def test_what_fails_is_dropped_or_redone_with_its_group() -> None:
    failed = [parts(unexplained=4)] * 2  # at 4 s
    masked = stepped(training_run(batch=16, on_failure="mask"), TEN, failed, steps=200)
    assert sum(step.delivered for step in masked) / 200 == pytest.approx(16 / 3, rel=0.1)
    assert {step.wall_ns / S for step in masked} <= {4, 10}
    some = [parts(unexplained=4, weight=1e-9)]
    redone = stepped(training_run(on_failure="resample"), [parts(create=10, weight=15e-9)], some, steps=200)
    assert all(step.delivered == 16 for step in redone)
    assert {step.wall_ns / S % 4 for step in redone} == {2}  # 10 s after the last group was begun anew
    assert any(step.wall_ns / S > 10 for step in redone)
    once = stepped(training_run(on_failure="resample", max_attempts=1), TEN, failed, steps=20)
    assert all(step.delivered % 4 == 0 for step in once)


def test_a_failure_that_is_kept_is_delivered_once_as_it_ended() -> None:
    good, some = [parts(create=10, weight=1)], [parts(unexplained=4, weight=1)]
    kept, retried = (
        stepped(training_run(batch=16, on_failure=how, workers=4), good, some, steps=100) for how in ("keep", "retry")
    )
    assert {(step.delivered, step.attempts) for step in kept} == {(16, 16)}
    assert sum(step.held_ns for step in kept) / 1600 / S == pytest.approx((10 + 4) / 2, rel=0.05)
    assert sum(step.wall_ns for step in kept) < sum(step.wall_ns for step in retried)
    never = (training_run(batch=16, on_failure=how, failure_rate=0.0) for how in ("keep", "retry"))
    assert [stepped(one, TEN, steps=5) for one in never] == [stepped(training_run(batch=16), TEN, steps=5)] * 2


def test_redoing_a_group_cuts_those_that_run_and_passes_over_those_that_wait() -> None:
    """Two workers, one prompt of 4: the second rollout fails at 4 s, so that the first is cut then."""
    asked = training_run(prompts=1, group_size=4, workers=2, on_failure="resample", max_attempts=1)
    for step in stepped(asked, TEN, [parts(unexplained=4, weight=9)], steps=30):
        assert step.wall_ns / S in (4, 10, 14, 20)
        assert (step.delivered, step.held_ns / S) in {(0, 8), (0, 28), (4, 40), (0, 20)}


def test_a_group_is_redone_when_the_worker_that_failed_goes_on() -> None:
    """One of two fails at 4 s and is cleaned up until 7 s; the other, which takes 10 s, is cut then or never."""
    trials = [parts(work=10, cleanup=3)], [parts(unexplained=4, cleanup=3)]
    for include, until in ((False, 4), (True, 7)):
        asked = training_run(prompts=1, group_size=2, workers=2, on_failure="resample", max_attempts=1)
        found = stepped(replace(asked, include_cleanup=include), *trials, steps=40)
        assert {step.wall_ns / S for step in found} == {until, 10 + 3 * include}
        assert {step.held_ns / S for step in found if step.wall_ns / S == until} == {2 * until}


def test_the_time_limit_is_over_clean_up_that_the_worker_waits_for() -> None:
    limit = {"timeout_s": 12.0, "max_attempts": 1}
    for include, delivered, held_s in ((False, 16, 10), (True, 0, 12)):
        (step,) = stepped(training_run(include_cleanup=include, **limit), [parts(work=10, cleanup=4)])
        assert (step.delivered, step.held_ns / S) == (delivered, 16 * held_s)
        assert step.usd * 3600 == pytest.approx(16 * 14)
    (late,) = stepped(training_run(include_cleanup=True, **limit), [parts(work=15, cleanup=4)])
    assert (late.held_ns / S, late.usd * 3600) == (16 * 12, pytest.approx(16 * 16))


def test_a_cut_gives_back_the_creates_that_it_had_promised() -> None:
    asked = training_run(workers=10, batch=2, over_provision=4.0, create_rate=1.0, train_s=96.0)
    first, second = stepped(asked, [parts(work=3)], steps=2)
    assert first.wall_ns == 100 * S  # begun at 0 and 1 s, done at 3 and 4 s
    assert first.attempts in (4, 5)  # at 2, 3, and perhaps at 4 s, which is when the step ends
    assert second.wall_ns == 100 * S  # nothing that was promised to the first step is still owed
    assert first.waited_ns == pytest.approx(sum((1, 2, 3, *[4] * 6)) * S, rel=0.1)


def test_the_last_of_a_step_is_the_order_statistic() -> None:
    """Of n exponentials the longest has the mean Hₙ, the n-th harmonic number; as quantiles, well above the trials."""
    quantiles = [parts(work=-math.log(1 - (n + 0.5) / 500)) for n in range(500)]
    walls = wall_s(training_run(batch=16), quantiles, steps=2000)
    assert sum(walls) / 2000 == pytest.approx(sum(1 / k for k in range(1, 17)), rel=0.03)


def test_a_time_limit_ends_an_attempt_wherever_it_is() -> None:
    limit = {"timeout_s": 6.0, "max_attempts": 1}
    assert wall_s(training_run(**limit), TEN) == [6]
    assert wall_s(training_run(**limit), TEN, without={"failures"}) == [6]
    pulled = training_run(nodes=1, pods_per_node=16, images=Images.of([9.0] * 10**5), pull_gb_s=1.0, **limit)
    assert [(step.wall_ns / S, step.usd) for step in stepped(pulled, TEN)] == [(6, 0)]
    lined = training_run(nodes=1, pods_per_node=8, workers=16, timeout_s=12.0, max_attempts=1)
    slow = [parts(work=10, cleanup=20)]
    assert [(step.wall_ns / S, step.delivered) for step in stepped(lined, slow)] == [(22, 8)]


def test_what_the_time_limit_ended_is_drawn_anew() -> None:
    """Every other trial is too long; with another attempt a quarter of the rollouts are, not still half of them."""
    asked = training_run(batch=16, timeout_s=12.0, max_attempts=2)
    both = [parts(work=10), parts(work=20)]
    for more, delivered, attempts in (
        ({}, 3 / 4, 3 / 2),
        ({"failure_rate": 0.0}, 3 / 4, 3 / 2),
        ({"failure_rate": 0.25}, 1 - (5 / 8) ** 2, 1 + 5 / 8),
    ):
        found = stepped(replace(asked, **more), both, steps=150)
        assert sum(step.delivered for step in found) / 150 / 16 == pytest.approx(delivered, rel=0.04)
        assert sum(step.attempts for step in found) / 150 / 16 == pytest.approx(attempts, rel=0.04)


def test_what_a_step_no_longer_needs_is_cleaned_up_before_its_pod_is_free() -> None:
    """One token a second: 8 of 12 are done by 17 s, and the others, which run for 6 to 9 s then, are cut."""
    asked = training_run(batch=8, over_provision=0.5, workers=12, nodes=1, pods_per_node=12, create_rate=1.0)
    first, second = stepped(asked, [parts(work=10, cleanup=3)], steps=2)
    assert (first.wall_ns / S, first.held_ns / S) == (17, 8 * 10 + sum(range(12)) + 9 + 8 + 7 + 6)
    assert first.usd * 3600 == pytest.approx(8 * 13 + 9 + 8 + 7 + 6 + 4 * 3)
    assert second.wall_ns / S == 17  # the pods of the first four that were done are free


def test_a_resample_without_a_failure_still_draws_second_attempts() -> None:
    """A time limit ends an attempt, and the only recorded failure is not in this resample of the trials."""
    failed = parts(create=1, work=1, pauses=1)._replace(weight=0)
    trial = [parts(create=1, work=4, pauses=2), parts(create=1, work=1, pauses=2)._replace(trial=1)]
    asked = training_run(think=Think(S, 1.5), timeout_s=12.0)
    found = stepped(asked, trial, [failed], steps=20)
    assert sum(step.attempts for step in found) > 20 * 16
    assert sum(step.delivered for step in found) == 20 * 16


@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize(("in_flight", "batch", "busy"), SYSTEMS[::2])
def test_mean_staleness_is_what_is_in_flight_over_the_batch_and_the_trainers_share(
    in_flight: int, batch: int, busy: float, spread: float
) -> None:
    """tests/studies/study_staleness.py has all systems."""
    period_s = MEAN_S * batch / in_flight
    steps = asynchronous(in_flight, batch, busy * period_s, spread)
    assert len(steps) == STEPS
    assert mean_period_s(steps) == pytest.approx(period_s, rel=0.03), "as fast as its rollouts"
    assert mean_staleness(steps, batch, busy * period_s) == pytest.approx(in_flight / batch + busy, abs=0.06)


def test_a_run_that_is_bound_by_its_trainer_has_its_period_and_a_bound_on_staleness_bounds_what_runs_ahead() -> None:
    """With at most k steps ahead of the trainer, no more than k batches are launched and not yet trained."""
    assert mean_period_s(asynchronous(128, 128, 1.14 * MEAN_S, 0.4)) == pytest.approx(1.14 * MEAN_S)
    asked = training_run(batch=64, workers=128, policy="async", train_s=2 * MEAN_S, staleness=3)
    steps = stepped(asked, [parts(unexplained=MEAN_S, weight=1)], steps=40)
    launched = accumulate(step.attempts for step in steps)
    assert all(count <= (number + 1 + 3) * 64 for number, count in enumerate(launched))
