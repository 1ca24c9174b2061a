"""The engine's special cases, each against what is known of it in closed form or from another algorithm."""

from __future__ import annotations

import math
from itertools import islice
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from costmodel import list_makespan
from costmodel.simulation.engine.estimate import SimulatedRun, simulate
from costmodel.simulation.engine.events import System
from costmodel.simulation.engine.rules import Rules, WarmPool
from costmodel.simulation.engine.tries import Source, Try
from costmodel.simulation.renewal import bounds, expected_max, renewal_makespan
from costmodel.statistics.distribution import Distribution
from costmodel.training.policies import POLICIES, Async, Sync

S = 10**9
few = settings(max_examples=40, deadline=None)
durations = st.lists(st.integers(1, 10**11), min_size=1, max_size=20)
laws = durations.map(Distribution.of)


def expect(source: Source, rollouts: int, rules: Rules, *, seed: int = 1, most: int = 40_000) -> SimulatedRun:
    return simulate(rules, source, rollouts, tolerance=1e-9, seed=seed, batch=None, most=most)


def ends(source: Source, rollouts: int, rules: Rules, seed: int = 0) -> int:
    return System(rules, source.draws(Random(seed))).phase(0, rollouts, rollouts)[0]


@few
@given(laws, st.integers(1, 200), st.integers(1, 30), st.integers(0, 5))
def test_without_policies_it_is_list_scheduling(law: Distribution, jobs: int, workers: int, seed: int) -> None:
    source = Source.of(law)
    drawn = [one.held_ns for one in islice(source.draws(Random(seed)), jobs)]
    assert ends(source, jobs, Rules(workers=workers, policy=Async()), seed) == list_makespan(drawn, workers)


@few
@given(laws, st.integers(1, 60), st.integers(1, 20), st.integers(1, 10**9), st.integers(1, 20))
def test_no_create_is_let_through_before_the_bucket_has_a_token(
    law: Distribution, jobs: int, workers: int, gap: int, burst: int
) -> None:
    source = Source.of(law)
    free = ends(source, jobs, Rules(workers=workers, policy=Async()))
    system = System(Rules(workers=workers, gap_ns=gap, burst=burst, policy=Async()), source.draws(Random(0)))
    end, _, _ = system.phase(0, jobs, jobs)
    assert end >= max(free, (jobs - burst) * gap + law.values[0])
    assert end <= free + jobs * gap  # the wait of all of them, one after another
    assert 0 <= system.counts.waited_ns <= min(workers, jobs) * end
    if burst >= jobs:
        assert end == free
        assert system.counts.waited_ns == 0


@pytest.mark.slow
@few
@given(laws, st.integers(1, 50))
def test_enough_workers_give_the_order_statistic(law: Distribution, jobs: int) -> None:
    found = expect(Source.of(law), jobs, Rules(workers=jobs, policy=Async()))
    slack = 1e-3 * expected_max(law, jobs)
    assert abs(found.wall_ns.value - expected_max(law, jobs)) <= 2 * found.wall_ns.error + slack
    assert found.held_ns.value == pytest.approx(jobs * law.mean, rel=1e-9)  # the control takes all noise out


@pytest.mark.parametrize("jobs", [400, 3_000, 10**6, 10**12])
@pytest.mark.parametrize("sigma", [0.3, 1.0])
def test_long_streams_end_where_the_renewal_form_says(jobs: int, sigma: float) -> None:
    rng = Random(5)
    law = Distribution.of([S * rng.lognormvariate(2, sigma) for _ in range(60)])
    found = expect(Source.of(law), jobs, Rules(workers=20, policy=Async()), most=100_000)
    low, high = bounds(law, jobs, 20)
    assert low - found.wall_ns.error <= found.wall_ns.value <= high + found.wall_ns.error
    known = renewal_makespan(law, jobs, 20)
    assert abs(found.wall_ns.value - known) <= found.wall_ns.error + 2e-3 * known
    assert found.wall_ns.error < 0.01 * known


def test_a_burst_at_a_barrier_hits_the_stock_and_nothing_more() -> None:
    source = Source([(Try(True, 9 * S, 9 * S, True, 6 * S, 9 * S), 1)])
    rules = Rules(workers=64, pool=WarmPool(8, refill_ns=20 * S), policy=Async())
    found = expect(source, 64, rules)
    assert (found.hits.value, found.hits.error) == (8, 0)  # an eighth, whatever the steady state is
    long = expect(source, 128, rules)
    assert long.hits.value == 8  # all slots are taken when the second wave begins


def test_pool_in_the_steady_state_of_many_workers_is_erlangs_loss() -> None:
    rng = Random(3)
    law = [round(S * rng.expovariate(1 / 40)) + 1 for _ in range(400)]
    source = Source((Try.plain(one), 1) for one in law)
    workers, slots, refill_s = 400, 30, 4.0
    rules = Rules(workers=workers, pool=WarmPool(slots, refill_ns=round(refill_s * S)), policy=Async())
    found = expect(source, 10**7, rules, most=120_000)
    load = workers / (source.mean_ns / S) * refill_s
    lost = 1.0
    for server in range(1, slots + 1):
        lost = load * lost / (server + load * lost)
    assert found.hits.value / found.attempts.value == pytest.approx(1 - lost, abs=0.01)


@few
@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 12))
def test_groups_hit_what_is_kept_for_their_image(rollouts: int, group: int, size: int) -> None:
    rules = Rules(workers=7, pool=WarmPool(size, group=group), policy=Async())
    found = expect(Source.of(Distribution.of([S, 2 * S])), rollouts, rules, most=2_000)
    full, rest = divmod(rollouts, group)
    assert found.hits.value == full * min(size, group) + min(size, rest)


def test_a_pool_made_at_a_rate_hits_what_the_rate_gives() -> None:
    source = Source([(Try(True, 20 * S + n, 20 * S, True, 10 * S + n, 20 * S), 1) for n in range(0, 10**9, 10**8)])
    rate, workers = 1.0, 40
    found = expect(source, 10**7, Rules(workers=workers, pool=WarmPool(50, gap_ns=S), policy=Async()), most=60_000)
    cold, saved = source.mean_ns / S, (source.mean_ns - source.warm_mean_ns) / S
    assert found.hits.value / found.attempts.value == pytest.approx(rate * cold / (workers + rate * saved), rel=0.01)


@few
@given(durations, durations, st.integers(1, 5), st.integers(0, 10**10), st.integers(1, 60))
@example([1, 1, 1], [2], 5, 0, 1)  # none of the runs gives its rollout up, and all else is told by its time
def test_retries_are_walds_identity(good: list[int], bad: list[int], cap: int, backoff: int, jobs: int) -> None:
    pairs = [(Try.plain(one), 1) for one in good] + [(Try.plain(one, ok=False), 1) for one in bad]
    source = Source(pairs)
    found = expect(source, jobs, Rules(workers=5, cap=cap, backoff_ns=backoff, policy=Async()), most=4_000)
    failure = len(bad) / len(pairs)
    attempts = jobs * (1 - failure**cap) / (1 - failure)
    assert abs(found.attempts.value - attempts) <= 2 * found.attempts.error + 1e-6 * attempts
    assert found.held_ns.value == pytest.approx(found.attempts.value * source.mean_ns, rel=1e-6)


@few
@given(laws, st.integers(1, 30), st.integers(0, 30), st.integers(1, 50), st.booleans())
@example(Distribution.of([1, 4]), 26, 1, 1, False)
def test_what_is_launched_is_kept_or_wasted(
    law: Distribution, batch: int, extra: int, workers: int, partial: bool
) -> None:
    rules = Rules(workers=workers, batch=batch, over_provision=extra / batch, partial=partial, policy=Sync())
    found = expect(Source.of(law), 3 * batch, rules, most=1_500)
    if not extra:
        assert not found.clocks
        return
    assert sum(found.clocks.values()) == pytest.approx(found.attempts.value)
    assert sum(ns * often for ns, often in found.clocks.items()) == pytest.approx(found.held_ns.value)  # no training
    assert 0 <= found.wasted_ns.value <= found.held_ns.value
    rounded_ns = 3 / 2  # what a long step is not simulated of takes whole ns
    assert found.held_ns.value <= workers * (found.wall_ns.value * (1 + 1e-9) + rounded_ns)


def test_more_launches_end_sooner_and_cutting_a_straggler_may_save_more_than_they_cost() -> None:
    def steps(law: Distribution, over: float) -> SimulatedRun:
        rules = Rules(workers=1000, batch=20, over_provision=over, policy=Sync())
        return expect(Source.of(law), 200, rules)

    even = [steps(Distribution.of([S * n for n in range(60, 140)]), over) for over in (0.0, 0.2, 0.5, 1.0)]
    assert [one.wall_ns.value for one in even] == sorted((one.wall_ns.value for one in even), reverse=True)
    assert [one.wasted_ns.value for one in even] == sorted(one.wasted_ns.value for one in even)
    straggling = Distribution({S: 9, 1000 * S: 1})
    assert steps(straggling, 0.5).held_ns.value < steps(straggling, 0.0).held_ns.value / 10


@few
@given(laws, st.integers(1, 20), st.integers(1, 6), st.integers(0, 10**11), st.sampled_from(list(POLICIES)))
def test_a_run_is_never_shorter_than_its_training_or_its_rollouts(
    law: Distribution, batch: int, steps: int, train: int, policy: str
) -> None:
    rules = Rules(workers=5, batch=None if policy == "async" else batch, train_ns=train, policy=POLICIES[policy])
    found = simulate(rules, Source.of(law), batch * steps, tolerance=1, seed=0, batch=batch, most=500)
    assert found.wall_ns.value >= max(steps * train, found.steps_ns.value) * (1 - 1e-9)
    if policy == "sync":
        assert found.wall_ns.value == pytest.approx(steps * train + found.steps_ns.value)


def test_one_step_off_is_the_mean_of_maxima() -> None:
    law, train = Distribution({10 * S: 1, 30 * S: 1}), 20 * S
    rules = Rules(workers=1, batch=1, train_ns=train, policy=POLICIES["one-step-off"])
    found = expect(Source.of(law), 100, rules)
    exact = 20 + 99 * (20 + 30) / 2 + 20  # the mean of both is 20 s: the maximum of the means says 20 for each step
    assert found.wall_ns.value / S == pytest.approx(exact, abs=found.wall_ns.error / S + 0.1)


def test_a_cut_gives_back_the_creates_that_it_had_promised() -> None:
    rules = Rules(workers=10, gap_ns=S, batch=2, over_provision=4.0, policy=Sync())
    system = System(rules, Source.of(Distribution.of([3 * S])).draws(Random(0)))
    end, _, _ = system.phase(0, 10, 2)
    assert end == 4 * S  # begun at 0 and 1 s, done at 3 and 4 s
    assert system.counts.attempts in (4, 5)  # at 2, 3, and perhaps at 4 s, which is when the step ends
    again, _, _ = system.phase(100 * S, 10, 2)
    assert again == 104 * S  # nothing that was promised to the first step is still owed
    assert math.isclose(system.counts.waited_ns, 2 * sum((1, 2, 3, *[4] * 6)) * S, rel_tol=0.1)


@pytest.mark.parametrize(("rollouts", "hits"), [(10**5, 100), (10**6, 200), (10**7, 1200)])
def test_a_pool_that_is_refilled_too_slowly_to_settle_gives_its_stock_once_per_refill(rollouts: int, hits: int) -> None:
    source = Source([(Try(True, 20 * S + n, 20 * S, True, 18 * S + n, 18 * S), 1) for n in range(0, 10**9, 10**8)])
    rules = Rules(workers=500, pool=WarmPool(100, refill_ns=36_000 * S), policy=Async())
    found = expect(source, rollouts, rules, most=60_000)  # of 20.45 s: 1.1, 11.4 and 113.6 hours
    assert found.hits.value == pytest.approx(hits, rel=0.05)


def test_a_step_too_long_to_simulate_is_its_rate_and_wastes_only_what_is_in_flight() -> None:
    source = Source.of(Distribution.of([S * n for n in range(10, 30)]))
    rules = Rules(workers=500, batch=10**9, over_provision=0.1, policy=Sync())
    found = simulate(rules, source, 10**12, tolerance=1e-9, seed=1, batch=10**9, most=16_000)
    even = 10**12 * source.mean_ns / 500
    assert abs(found.wall_ns.value - even) <= found.wall_ns.error + 1e-3 * even
    assert found.attempts.value == pytest.approx(10**12, rel=1e-5)
    assert sum(found.clocks.values()) == pytest.approx(found.attempts.value, rel=1e-6)
    assert found.wasted_ns.value <= 1000 * 500 * source.longest_ns


def test_a_pool_larger_than_any_run_is_a_number() -> None:
    rules = Rules(workers=50, pool=WarmPool(10**12, refill_ns=S), policy=Async())
    found = expect(Source.of(Distribution.of([S])), 10**4, rules, most=4_000)
    assert found.hits.value == pytest.approx(10**4)
