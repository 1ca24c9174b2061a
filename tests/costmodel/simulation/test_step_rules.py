"""The step model's rules one by one, on runs that can be worked out by hand: docs/simulation.md."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from costmodel import Images, Think, TrainingRun
from costmodel.simulation.rules import NodeSet
from costmodel.simulation.state import Nodes
from tests.support.cost_model.stepping import S, parts, stepped, training_run

TEN = [parts(create=2, ready=1, dispatch=1, work=6)]


def wall_s(asked: TrainingRun, *args: Any, **more: Any) -> list[float]:
    return [step.wall_ns / S for step in stepped(asked, *args, **more)]


def test_each_cause_is_taken_away_alone() -> None:
    trial = [parts(queued=1, create=2, ready=3, preload=4, dispatch=5, slowdown=6, contention=7, harness=8, work=9)]
    assert wall_s(training_run(), trial) == [45]
    for cause, less in (("throttle", 1), ("create", 2), ("dispatch", 5), ("contention", 7), ("harness", 8)):
        assert wall_s(training_run(), trial, without={cause}) == [45 - less]


def test_think_time_is_of_the_attempt_and_its_pauses() -> None:
    trial = [parts(work=1, pauses=3)]
    assert wall_s(training_run(think=Think(2 * S)), trial) == [7]
    assert wall_s(training_run(think=Think(2 * S)), trial, without={"think"}) == [1]


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


def test_workers_take_rollouts_in_order() -> None:
    assert wall_s(training_run(workers=8), TEN) == [20]
    assert wall_s(training_run(workers=16, quota=5), TEN) == [40]
    assert wall_s(training_run(workers=16, quota=5), TEN, without={"throttle"}) == [10]


def test_pods_are_a_quota_that_cleaning_up_takes_part_of() -> None:
    trial = [parts(work=10, cleanup=3)]
    assert wall_s(training_run(nodes=2, pods_per_node=4), trial) == [10 + 3 + 10]
    assert wall_s(training_run(nodes=2, pods_per_node=4), trial, without={"cleanup"}) == [20]
    assert wall_s(training_run(include_cleanup=True), trial) == [13]
    assert wall_s(training_run(), trial) == [10]


def test_a_node_pulls_one_image_after_another_and_each_once() -> None:
    asked = training_run(nodes=1, pods_per_node=16, images=Images.of([2.0] * 10**5), pull_gb_s=0.5)
    first = stepped(asked, TEN)[0]
    assert first.wall_ns / S == 4 * 4 + 10
    assert first.pulled_gb == 8
    assert first.held_ns / S == 4 * (4 + 8 + 12 + 16) + 16 * 10
    assert wall_s(asked, TEN, without={"image_pull"}) == [10]


def test_disks_keep_what_they_pulled_and_the_oldest_leaves_first() -> None:
    sizes = (2.0, 2.0, 2.0)
    nodes = Nodes(NodeSet(1, 99, pull_ns=(S, S, S), sizes_gb=sizes, disk_gb=4.0))
    assert [nodes.take(image, 0)[1] for image in (0, 1, 0)] == [S, 2 * S, S]
    assert nodes.take(2, 10 * S) == (0, 11 * S)
    assert nodes.disks() == [[0, 2]]
    assert nodes.take(1, 20 * S) == (0, 21 * S)
    assert (nodes.disks(), nodes.pulled_gb) == ([[2, 1]], 8.0)


def test_images_are_spread_or_kept_together() -> None:
    spread = Nodes(NodeSet(3, 2, pull_ns=(S,), sizes_gb=(1.0,)))
    assert [spread.take(0, 0)[0] for _ in range(6)] == [0, 1, 2, 0, 1, 2]
    assert spread.free == 0
    spread.let_go([1])
    assert spread.take(0, 0)[0] == 1
    near = Nodes(NodeSet(3, 2, near=True, pull_ns=(S, S), sizes_gb=(1.0, 1.0)))
    assert [near.take(image, 0)[0] for image in (0, 0, 1, 1, 0)] == [0, 0, 1, 1, 2]
    assert near.pulled_gb == 3


def test_each_step_waits_for_its_images_unless_they_are_there() -> None:
    images = Images.of([1.0] * 10**5)
    cold = training_run(nodes=4, pods_per_node=4, images=images, pull_gb_s=0.25, placement="colocated")
    assert wall_s(cold, TEN, steps=3) == [14, 14, 14]
    there = training_run(nodes=4, pods_per_node=4, images=Images.of([1.0] * 9), placement="prepulled")
    assert wall_s(there, TEN, steps=2) == [10, 10]


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


def test_a_failure_rate_strikes_at_any_moment_and_a_hazard_by_the_hour() -> None:
    rated = stepped(training_run(batch=16, failure_rate=0.5), TEN, steps=400)
    assert sum(step.attempts for step in rated) / 400 / 16 == pytest.approx(2, rel=0.05)
    assert sum(step.held_ns for step in rated) / 400 / 16 / S == pytest.approx(10 + 5, rel=0.05)
    hazard = stepped(training_run(batch=16, failure_hazard=360.0), TEN, steps=400)  # every 10 s
    assert sum(step.attempts for step in hazard) / 400 / 16 == pytest.approx(math.e, rel=0.06)
    assert sum(step.held_ns for step in hazard) / 400 / 16 / S == pytest.approx(10 * (math.e - 1), rel=0.06)


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
    some = [parts(unexplained=4, weight=1)]
    kept = stepped(training_run(batch=16, on_failure="keep", workers=4), [parts(create=10, weight=1)], some, steps=100)
    assert {(step.delivered, step.attempts) for step in kept} == {(16, 16)}
    assert sum(step.held_ns for step in kept) / 1600 / S == pytest.approx((10 + 4) / 2, rel=0.05)
    retried = stepped(training_run(batch=16, workers=4), [parts(create=10, weight=1)], some, steps=100)
    assert sum(step.wall_ns for step in kept) < sum(step.wall_ns for step in retried)
    none = [
        stepped(training_run(batch=16, on_failure=how, failure_rate=0.0), TEN, steps=5) for how in ("keep", "retry")
    ]
    assert none[0] == none[1]


def test_redoing_a_group_cuts_those_that_run_and_passes_over_those_that_wait() -> None:
    """Two workers, one prompt of 4: the second rollout fails at 4 s, so that the first is cut then."""
    asked = training_run(prompts=1, group_size=4, workers=2, on_failure="resample", max_attempts=1)
    found = stepped(asked, TEN, [parts(unexplained=4, weight=9)] * 1, steps=30)
    for step in found:
        assert step.wall_ns / S in (4, 10, 14, 20)
        assert (step.delivered, step.held_ns / S) in {(0, 8), (0, 28), (4, 40), (0, 20)}


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
    for more in ({}, {"failure_rate": 0.0}):
        found = stepped(replace(asked, **more), both, steps=200)
        assert sum(step.delivered for step in found) / 200 / 16 == pytest.approx(3 / 4, rel=0.04)
        assert sum(step.attempts for step in found) / 200 / 16 == pytest.approx(3 / 2, rel=0.04)
    failing = stepped(replace(asked, failure_rate=0.25), both, steps=200)
    assert sum(step.delivered for step in failing) / 200 / 16 == pytest.approx(1 - (5 / 8) ** 2, rel=0.04)


def test_the_time_limit_is_over_clean_up_that_the_worker_waits_for() -> None:
    trial = [parts(work=10, cleanup=4)]
    limit = {"timeout_s": 12.0, "max_attempts": 1}
    for include, delivered, held_s in ((False, 16, 10), (True, 0, 12)):
        (step,) = stepped(training_run(include_cleanup=include, **limit), trial)
        assert (step.delivered, step.held_ns / S) == (delivered, 16 * held_s)
        assert step.usd * 3600 == pytest.approx(16 * 14)
    (late,) = stepped(training_run(include_cleanup=True, **limit), [parts(work=15, cleanup=4)])
    assert (late.held_ns / S, late.usd * 3600) == (16 * 12, pytest.approx(16 * 16))


def test_a_group_is_redone_when_the_worker_that_failed_goes_on() -> None:
    """One of two fails at 4 s and is cleaned up until 7 s; the other, which takes 10 s, is cut then or never."""
    asked = training_run(prompts=1, group_size=2, workers=2, on_failure="resample", max_attempts=1)
    for include, until in ((False, 4), (True, 7)):
        found = stepped(
            replace(asked, include_cleanup=include),
            [parts(work=10, cleanup=3)],
            [parts(unexplained=4, cleanup=3)],
            steps=40,
        )
        assert {step.wall_ns / S for step in found} == {until, 10 + 3 * include}
        assert {step.held_ns / S for step in found if step.wall_ns / S == until} == {2 * until}


def test_tokens_are_let_through_at_their_rate() -> None:
    """ROCK's published creates: n / max is a constant rate (docs/prices of 4,000, 8,000 and 16,000 at once)."""
    for count, per_s in ((400, 25.8), (800, 23.5), (1600, 25.1)):
        asked = training_run(batch=count, workers=count, create_rate=per_s)
        (step,) = stepped(asked, [parts(create=1e-9)])
        assert count / (step.wall_ns / S) == pytest.approx(per_s, rel=0.01)


def test_a_pool_gives_what_it_has() -> None:
    pool = {"warm_pool": 8, "refill_s": 1.0}
    trial = [parts(create=4, ready=1, work=5)]
    (plain,) = stepped(training_run(batch=16, **pool), trial)
    assert (plain.wall_ns / S, plain.hits, plain.held_ns / S) == (10, 8, 8 * 5 + 8 * 10)
    (images,) = stepped(training_run(warm_pool=3), trial)
    assert (images.hits, images.wall_ns / S) == (12, 10)


def test_async_rollouts_wait_for_training_only_if_they_would_run_ahead() -> None:
    trial = [parts(work=10)]
    ask = {"batch": 16, "policy": "async", "train_s": 30.0}
    assert wall_s(training_run(**ask), trial, steps=4) == [40, 30, 30, 30]
    assert wall_s(training_run(**ask, staleness=1), trial, steps=4) == [40, 40, 40, 40]
    assert wall_s(training_run(**ask, staleness=2), trial, steps=4) == [40, 30, 30, 30]
    assert wall_s(training_run(**ask | {"policy": "one-step-off"}), trial, steps=4) == [40, 30, 30, 30]
    assert wall_s(training_run(**ask | {"policy": "sync"}), trial, steps=4) == [40, 40, 40, 40]


def test_what_a_step_no_longer_needs_is_cleaned_up_before_its_pod_is_free() -> None:
    """One token a second: 8 of 12 are done by 17 s, and the others, which run for 6 to 9 s then, are cut."""
    asked = training_run(batch=8, over_provision=0.5, workers=12, nodes=1, pods_per_node=12, create_rate=1.0)
    first, second = stepped(asked, [parts(work=10, cleanup=3)], steps=2)
    assert (first.wall_ns / S, first.held_ns / S) == (17, 8 * 10 + sum(range(12)) + 9 + 8 + 7 + 6)
    assert first.usd * 3600 == pytest.approx(8 * 13 + 9 + 8 + 7 + 6 + 4 * 3)
    assert second.wall_ns / S == 17  # the pods of the first four that were done are free


def test_workers_that_wait_for_pods_are_repairmen_of_machines() -> None:
    """Pods are machines that run while they are cleaned up, and workers repair them: Palm's birth and death chain."""
    pods, workers, work_s, cleanup_s = 8, 6, 10.0, 10.0
    law = [-math.log(1 - (number + 0.5) / 2000) for number in range(2000)]  # quantiles of an exponential of mean 1
    mixed = Random(3).sample(law, len(law))
    trials = [parts(work=work_s * own, cleanup=cleanup_s * other) for own, other in zip(law, mixed, strict=True)]
    asked = training_run(batch=40_000, workers=workers, nodes=1, pods_per_node=pods)
    (found,) = stepped(asked, trials)
    chances = [1.0]  # of so many pods being cleaned up
    for cleaned in range(pods):
        chances.append(chances[-1] * min(workers, pods - cleaned) / work_s * cleanup_s / (cleaned + 1))
    busy = sum(chance * min(workers, pods - cleaned) for cleaned, chance in enumerate(chances)) / sum(chances)
    assert busy < 0.8 * workers  # they do wait
    assert 40_000 * work_s / (found.wall_ns / S) == pytest.approx(busy, rel=0.02)


def test_a_resample_without_a_failure_still_draws_second_attempts() -> None:
    """A time limit ends an attempt, and the only recorded failure is not in this resample of the trials."""
    failed = parts(create=1, work=1, pauses=1)._replace(weight=0)
    trial = [parts(create=1, work=4, pauses=2), parts(create=1, work=1, pauses=2)._replace(trial=1)]
    asked = training_run(think=Think(S, 1.5), timeout_s=12.0)
    found = stepped(asked, trial, [failed], steps=20)
    assert sum(step.attempts for step in found) > 20 * 16
    assert sum(step.delivered for step in found) == 20 * 16
