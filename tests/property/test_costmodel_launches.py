"""Training steps: no interval ends below the training, and every over-provisioned launch is accounted for."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.demand import Demand
from costmodel.distribution import Distribution
from costmodel.overprovision import Rollouts, TrainingStep, Try, over_provisioned, total
from costmodel.policies import POLICIES
from costmodel.uncertainty import Interval
from costmodel.wallclock import limits, run_in_time

many = settings(max_examples=60, deadline=None)
laws = st.lists(st.integers(1, 10**11), min_size=1, max_size=20).map(Distribution.of)
trials = st.sampled_from([20, 400])
"""Too few for an upper limit, and enough for one."""


@many
@given(
    laws,
    trials,
    st.sampled_from(list(POLICIES)),
    st.integers(1, 40),
    st.integers(1, 9),
    st.floats(0, 1e4),
    st.floats(0.01, 1),
)
def test_no_limit_is_below_the_training_alone(
    law: Distribution, count: int, policy: str, batch: int, steps: int, train_s: float, doubt: float
) -> None:
    law.trials = count
    demand = Demand(trajectories=batch * steps, workers=7, batch=batch, policy=policy, train_s=train_s)
    run = run_in_time(law, demand, 1.0)
    low, high, tail = limits(run, demand, Interval(1.0, 1 - doubt, 1 + doubt)).run
    assert low is not None
    assert (high is None) == (tail.needs_trials is not None)
    assert steps * train_s / 3600 <= low * (1 + 1e-9)
    assert low <= run.wall.value_ns / 3.6e12 * (1 + 1e-9)
    assert high is None or run.wall.value_ns / 3.6e12 <= high * (1 + 1e-9)


def step(
    law: Distribution, launched: int, *, batch: int = 20, workers: int = 1000, partial: bool = False
) -> TrainingStep:
    return over_provisioned(Rollouts.of(law), batch, launched, workers, partial=partial, seed=3)


@many
@given(laws, st.integers(1, 30), st.integers(0, 30), st.integers(1, 50), st.booleans())
def test_what_is_launched_is_kept_or_wasted(
    law: Distribution, batch: int, extra: int, workers: int, partial: bool
) -> None:
    one = step(law, batch + extra, batch=batch, workers=workers, partial=partial)
    usage = total([(1, one.usage), (1, one.left)])
    launched = sum(usage.sandboxes.values())
    assert batch * (1 - 1e-9) <= launched <= (batch + extra) * (1 + partial) * (1 + 1e-9)
    assert 0 <= usage.wasted_ns <= usage.busy_ns <= workers * one.makespan.value_ns * (1 + 1e-9) + one.left.busy_ns
    if not partial:  # a sandbox's clock is its worker's here, so all that is held is billed
        assert sum(ns * count for ns, count in usage.sandboxes.items()) == pytest.approx(usage.busy_ns)


@many
@given(st.integers(1, 10**11), st.integers(1, 30), st.integers(0, 30), st.integers(1, 50))
def test_where_all_last_equally_long_launches_never_cost_less(ns: int, batch: int, extra: int, workers: int) -> None:
    law = Distribution.of([ns])
    less, more = (step(law, batch + n, batch=batch, workers=workers) for n in (extra, extra + 1))
    assert more.makespan.value_ns == less.makespan.value_ns
    assert more.usage.busy_ns >= less.usage.busy_ns >= batch * ns
    assert more.usage.wasted_ns >= less.usage.wasted_ns
    assert sum(more.usage.sandboxes.values()) >= sum(less.usage.sandboxes.values())


def test_more_launches_cost_more_and_end_sooner_where_durations_vary_little() -> None:
    law = Distribution.of([10**9 * n for n in range(60, 140)])
    found = [step(law, launched) for launched in (20, 24, 30, 40, 60)]
    ends = [one.makespan.value_ns for one in found]
    assert ends == sorted(ends, reverse=True)
    for amounts in ([one.usage.busy_ns for one in found], [one.usage.wasted_ns for one in found]):
        assert amounts == sorted(amounts)
    sandboxes = [sum(one.usage.sandboxes.values()) for one in found]
    assert sandboxes == pytest.approx([20, 24, 30, 40, 60])


def test_cutting_a_long_straggler_may_save_more_than_the_launches_cost() -> None:
    law = Distribution({10**9: 9, 10**12: 1})
    plain, extra = step(law, 20), step(law, 30)
    assert extra.usage.busy_ns < plain.usage.busy_ns / 10


def brute_force(tries: list[Try], batch: int, launched: int, workers: int, cap: int, steps: int) -> tuple[float, ...]:
    """Worker ns, wasted ns, sandboxes and their ns per step, by walking from one event to the next."""
    rng = Random(99)
    weights = [one.weight for one in tries]
    busy = wasted = sandboxes = clock = 0
    for _ in range(steps):
        queue = []
        for _ in range(launched):
            rollout = [rng.choices(tries, weights)[0]]
            while not rollout[-1].ok and len(rollout) < cap:
                rollout.append(rng.choices(tries, weights)[0])
            queue.append(rollout)
        now, done = 0, 0
        running: list[tuple[int, int, list[Try]]] = []  # when it ends, when it began
        while done < batch:
            while queue and len(running) < workers:
                rollout = queue.pop(0)
                running.append((now + sum(one.held_ns for one in rollout), now, rollout))
            first = min(running, key=lambda one: one[0])
            running.remove(first)
            now, began, rollout = first
            done += 1
            busy += now - began
            sandboxes += len(rollout)
            clock += sum(one.clock_ns for one in rollout)
        for _, began, rollout in running:
            left = now - began
            busy += left
            wasted += left
            for one in rollout:
                if left > 0:
                    sandboxes += 1
                    clock += max(0, one.clock_ns - max(0, one.held_ns - left))
                left -= one.held_ns
    return busy / steps, wasted / steps, sandboxes / steps, clock / steps


@pytest.mark.parametrize(("launched", "workers"), [(12, 20), (20, 20), (20, 7), (20, 1)])
def test_a_simulation_event_by_event_finds_the_same(launched: int, workers: int) -> None:
    rng = Random(5)
    tries = [Try(1 + n % 3, n % 4 > 0, held := rng.randrange(10**9, 10**11), held + 10**9) for n in range(40)]
    runs = [
        over_provisioned(Rollouts(tries, cap=3), 10, launched, workers, partial=False, seed=seed) for seed in range(30)
    ]
    usage = [total([(1, one.usage)]) for one in runs]
    found = (
        sum(one.busy_ns for one in usage) / 30,
        sum(one.wasted_ns for one in usage) / 30,
        sum(sum(one.sandboxes.values()) for one in usage) / 30,
        sum(sum(ns * count for ns, count in one.sandboxes.items()) for one in usage) / 30,
    )
    expected = brute_force(tries, 10, launched, workers, 3, 1500)
    assert found == pytest.approx(expected, rel=0.05, abs=1e9)
