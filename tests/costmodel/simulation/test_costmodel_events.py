"""Special cases of a simulated run, each against what is known in closed form or from another algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from costmodel import Precision, TrainingRun, expected_max, makespan_bounds
from costmodel.simulation.makespan import renewal_makespan
from costmodel.simulation.run import SimulatedRun, simulate_run
from costmodel.statistics.distribution import Distribution
from tests.support.cost_model.stepping import parts, parts_of, stepped, trials_of

S = 10**9
few = settings(max_examples=25, deadline=None)
durations = st.lists(st.integers(1, 10**11), min_size=1, max_size=20)
laws = durations.map(Distribution.of)


def expect(law: Distribution, jobs: int, workers: int, effort: float = 0.03) -> SimulatedRun:
    precision = Precision(effort=effort, seed=1, tolerance=1e-6)
    training_run = TrainingRun(trajectories=jobs, workers=workers, precision=precision)
    return simulate_run(trials_of(parts_of(law)), training_run, law)


def retried(
    good: Sequence[int], bad: Sequence[int], *, startup: int = 0, effort: float = 0.05, **asked: Any
) -> SimulatedRun:
    """Attempts of these ns, of which the second fail and ``startup`` is saved by a ready sandbox."""
    attempts = ([parts(create=startup / S, work=(ns - startup) / S) for ns in each] for each in (good, bad))
    precision = Precision(effort=effort, seed=1, tolerance=1e-6)
    training_run = TrainingRun(precision=precision, **asked)
    return simulate_run(trials_of(*attempts), training_run, Distribution.of([*good, *bad]))


@few
@given(laws, st.integers(1, 60), st.integers(1, 20), st.integers(1, 10**9), st.integers(1, 20))
def test_no_create_is_let_through_before_the_bucket_has_a_token(
    law: Distribution, jobs: int, workers: int, gap: int, burst: int
) -> None:
    trials = parts_of(law)
    ask: dict[str, Any] = {"trajectories": jobs, "workers": workers, "batch": jobs, "policy": "async"}
    (free,) = stepped(TrainingRun(**ask), trials)
    (limited,) = stepped(TrainingRun(**ask, create_rate=1e9 / gap, create_burst=burst), trials)
    assert limited.wall_ns >= max(free.wall_ns, (jobs - burst) * gap * (1 - 1e-9) + law.values[0] - jobs)
    assert limited.wall_ns <= free.wall_ns + jobs * (gap + 1)  # the wait of all of them, one after another
    assert 0 <= limited.waited_ns <= min(workers, jobs) * limited.wall_ns
    if burst >= jobs:
        assert (limited.wall_ns, limited.waited_ns) == (free.wall_ns, 0)


@few
@given(laws, st.integers(1, 50))
def test_enough_workers_give_the_order_statistic(law: Distribution, jobs: int) -> None:
    found = expect(law, jobs, jobs)
    slack = 1e-3 * expected_max(law, jobs)
    assert abs(found.wall_ns.value - expected_max(law, jobs)) <= 2 * found.wall_ns.error + slack
    assert abs(found.held_ns.value - jobs * law.mean) <= 2 * found.held_ns.error + slack * jobs


@pytest.mark.parametrize("jobs", [400, 3_000, 10**6, 10**12])
@pytest.mark.parametrize("sigma", [0.3, 1.0])
def test_long_streams_end_where_the_renewal_form_says(jobs: int, sigma: float) -> None:
    rng = Random(5)
    law = Distribution.of([S * rng.lognormvariate(2, sigma) for _ in range(60)])
    found = expect(law, jobs, 20, effort=1.0)
    low, high = makespan_bounds(law, jobs, 20)
    assert low - found.wall_ns.error <= found.wall_ns.value <= high + found.wall_ns.error
    known = renewal_makespan(law, jobs, 20)
    assert abs(found.wall_ns.value - known) <= found.wall_ns.error + 2e-3 * known
    assert found.wall_ns.error < 0.02 * known


def test_a_burst_at_a_barrier_hits_the_stock_and_nothing_more() -> None:
    pool = {"workers": 64, "warm_pool": 8, "refill_s": 20.0, "startup": 3 * S}
    found = retried([9 * S], [], trajectories=64, **pool)
    assert (found.hits.value, found.hits.error) == (8, 0)  # an eighth, whatever the steady state is
    more = retried([9 * S], [], trajectories=128, **pool)
    assert more.hits.value == 8  # all slots are taken when the second wave begins


def test_a_pool_made_at_a_rate_hits_what_the_rate_gives() -> None:
    times = [20 * S + n for n in range(0, 10**9, 10**8)]
    rate, workers, saved = 1.0, 40, 10
    pool = {"workers": workers, "warm_pool": 50, "refill_rate": rate}
    found = retried(times, [], trajectories=10**7, startup=saved * S, effort=0.5, **pool)
    cold = sum(times) / len(times) / S
    assert found.hits.value / found.attempts.value == pytest.approx(rate * cold / (workers + rate * saved), rel=0.02)


@few
@given(durations, durations, st.integers(1, 5), st.integers(0, 10**10), st.integers(1, 60))
@example([1, 1, 1], [2], 5, 0, 1)
def test_retries_are_walds_identity(good: list[int], bad: list[int], cap: int, backoff: int, jobs: int) -> None:
    asked = {"trajectories": jobs, "workers": 5, "max_attempts": cap, "backoff_s": backoff / S}
    found = retried(good, bad, **asked)
    failure = len(bad) / (len(good) + len(bad))
    attempts = jobs * (1 - failure**cap) / (1 - failure)
    slack = 0.2 * attempts * (found.attempts.error == 0)
    assert abs(found.attempts.value - attempts) <= 3 * found.attempts.error + slack
    mean = (sum(good) + sum(bad)) / (len(good) + len(bad))
    held = found.attempts.value * mean + (found.attempts.value - jobs) * backoff
    assert abs(found.held_ns.value - held) <= 3 * found.held_ns.error + 0.05 * held + 5


@few
@given(laws, st.integers(1, 30), st.integers(1, 30), st.integers(1, 50))
@example(Distribution.of([1, 4]), 26, 1, 1)
def test_what_is_launched_is_kept_or_wasted(law: Distribution, batch: int, extra: int, workers: int) -> None:
    ask = TrainingRun(trajectories=3 * batch, workers=workers, batch=batch, over_provision=extra / batch)
    steps = stepped(ask, parts_of(law), steps=3)
    assert [step.delivered for step in steps] == [batch] * 3
    assert 0 <= sum(step.wasted_ns for step in steps) <= sum(step.held_ns for step in steps)
    for step in steps:
        assert step.held_ns <= workers * step.wall_ns
        assert step.usd * 3600 * S == pytest.approx(step.held_ns)


def test_a_cut_gives_back_the_creates_that_it_had_promised() -> None:
    ask = TrainingRun(trajectories=10**6, workers=10, batch=2, over_provision=4.0, create_rate=1.0, train_s=96.0)
    first, second = stepped(ask, [parts(work=3)], steps=2)
    assert first.wall_ns == 100 * S  # begun at 0 and 1 s, done at 3 and 4 s
    assert first.attempts in (4, 5)  # at 2, 3, and perhaps at 4 s, which is when the step ends
    assert second.wall_ns == 100 * S  # nothing that was promised to the first step is still owed
    assert first.waited_ns == pytest.approx(sum((1, 2, 3, *[4] * 6)) * S, rel=0.1)
