"""Simulated runs: ``project`` in training steps, and special cases that are known in closed form."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from costmodel import Precision, Row, Think, TrainingRun, TrainingRunError, load, load_prices, project
from costmodel.simulation.attempts import timed
from costmodel.simulation.makespan import expected_max, makespan_bounds, random_makespan, renewal_makespan
from costmodel.simulation.random_streams import AttemptStream, RandomStream
from costmodel.simulation.run import SimulatedRun, simulate_run
from costmodel.statistics.distribution import Distribution
from tests.support.cost_model.costmodel_files import S, price_sheet, trial, write
from tests.support.cost_model.simulating import attribute_coarsely
from tests.support.cost_model.stepping import parts, parts_of, stepped, training_run, trials_of

HOUR = 3600


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    attribute_coarsely(monkeypatch)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Trials of 6 to 8 s."""
    return write(tmp_path / "run.msgpack", [trial(n, create=(2 + n % 3) * S, cleanup=S) for n in range(12)])


def one(file: Path, prices: Path | None = None, **more: Any) -> Row:
    training_run = TrainingRun(**{"trajectories": 2000, "workers": 500, "batch": 100} | more)
    (row,) = project([load(file)], training_run, prices and load_prices(prices))
    return row


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    return price_sheet(tmp_path, "usd_per_hour = 3600", increment_s=1, worker=7200)


def test_launches_of_equal_rollouts_by_hand(tmp_path: Path, sheet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    file = write(tmp_path / "same", [trial(n) for n in range(4)])
    row = one(file, sheet, trajectories=20, workers=20, batch=10, over_provision=0.5)
    assert row.worker_hours.value * HOUR == pytest.approx(2 * 15 * 6)
    assert row.cost.sandbox_usd.value == pytest.approx(2 * 15 * 6)  # 1 $ a second
    assert row.cost.billed_ratio == 1
    few = one(file, sheet, trajectories=20, workers=5, batch=10, over_provision=0.5)
    assert few.worker_hours.value * HOUR == pytest.approx(2 * 10 * 6)  # nobody was free to begin the others


def test_a_step_too_long_to_simulate_is_its_closed_form_or_refused_at_once(file: Path) -> None:
    long = {"trajectories": 10**12, "batch": 10**9}
    row = one(file, **long)
    assert row.worker_hours.value == pytest.approx(10**12 * 7 / HOUR, rel=0.05)
    assert row.attribution is None
    with pytest.raises(TrainingRunError, match="a step of 1,000,000,000 rollouts on 500 workers takes too long"):
        one(file, **long, over_provision=0.1)
    most = one(file, trajectories=10**12, batch=10**4, over_provision=0.1)
    assert 1 <= most.attempts <= 1.05  # only rollouts in flight are launched in excess


def test_what_gpus_wait_for_is_the_model_the_commands_or_the_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held 8 s: create 2, ready 1, three commands of 1 s that ran for 0.75, and 2 s of the harness's own."""
    monkeypatch.undo()  # a smaller system would have another pool, and another quota
    run, late = [S * 3 // 4] * 3, [S, 0, S]
    trials = [trial(n, runs=run, gaps=late) for n in range(4)]
    ask = {"trajectories": 20, "workers": 20, "batch": 10, "gpus": 2, "gpu_usd_hour": 3.0, "think": Think(8 * S)}
    for more in ({}, {"quota": 5}, {"create_rate": 1.0}, {"over_provision": 0.5}, {"warm_pool": 4, "refill_s": 2.0}):
        waits = one(write(tmp_path / "same", trials), **ask, **more).gpu
        sync = waits["sync"]
        assert sync.commands_gpu_hours * HOUR == pytest.approx(2 * 2 * 2.25)
        assert sync.generation_gpu_hours * HOUR == pytest.approx(2 * 2 * 16)
        parts = sync.commands_gpu_hours + sync.generation_gpu_hours + sync.stalled_gpu_hours
        assert parts == pytest.approx(sync.waiting_gpu_hours)
        assert sync.stalled_usd == pytest.approx(3 * sync.stalled_gpu_hours)
    unknown = one(write(tmp_path / "unknown", [trial(n, runs=[-1] * 3) for n in range(4)]), **ask).gpu
    assert (unknown["sync"].commands_gpu_hours, unknown["sync"].stalled_usd) == (None, None)
    assert unknown["sync"].generation_gpu_hours == pytest.approx(2 * 2 * 16 / HOUR)


def one_step_off(law: Distribution, rng: Random) -> int:
    """101 rollouts on 100 workers, 100 steps one by one: rollouts start when the trainer takes those of before."""
    start = trained = 0
    for _ in range(100):
        end = start + random_makespan(law, 101, 100, rng)
        before, trained = trained, max(end, trained) + 10 * S
        start = max(end, before)
    return trained


def test_one_step_off_with_rare_slow_rollouts_takes_as_long_as_its_steps_one_by_one() -> None:
    """A bound of the mean of the longer of rollouts and training said 2,015 ± 56 s where the steps take 2,271 s."""
    law = Distribution({1 * S: 99, 30 * S: 1})
    asked = TrainingRun(trajectories=101 * 100, workers=100, batch=101, train_s=10, policy="one-step-off")
    rng = Random(1)
    ends = [one_step_off(law, rng) for _ in range(30)]
    runs = [stepped(asked, parts_of(law), steps=100, seed=seed) for seed in range(30)]
    walls = [sum(step.wall_ns for step in steps) for steps in runs]
    error = sum(3 * statistics.stdev(each) / math.sqrt(len(each)) for each in (ends, walls))
    assert abs(statistics.mean(walls) - statistics.mean(ends)) <= error
    assert error < 0.1 * statistics.mean(ends)


def test_the_time_of_a_failed_attempt_tells_nothing_of_its_success() -> None:
    """Otherwise long failed attempts precede long successes, and a failure costs a step too much."""
    asked = training_run(prompts=256, failure_rate=0.5, max_attempts=2)
    trials = trials_of([parts(work=1), parts(work=100)])
    stream = RandomStream(asked, trials, None, 0)
    source = AttemptStream(stream, *(timed(some, (), 1.0, None) for some in (trials.successes, [])))
    draws = stream.step(0, 1024)
    failed: dict[bool, list[int]] = {True: [], False: []}
    for rollout, first in enumerate(source.first(draws)):
        second = source.attempt(draws, rollout, 1)
        if not first.ok and second.ok:
            failed[second.span > 50 * S].append(first.span)
    before_long, before_short = (statistics.fmean(spans) for spans in failed.values())
    assert before_long == pytest.approx(before_short, rel=0.25)


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


@pytest.mark.parametrize("rare", [1, 190 * S])
def test_a_duration_that_no_stream_drew_is_in_the_error(rare: int) -> None:
    law = Distribution.of([*(95 * S + 1000 * n for n in range(19)), rare])
    for seed in range(4):
        asked = TrainingRun(trajectories=1, workers=1, precision=Precision(effort=0.03, seed=seed, tolerance=1e-6))
        found = simulate_run(trials_of(parts_of(law)), asked, law)
        for amount in (found.wall_ns, found.held_ns):
            assert abs(amount.value - law.mean) <= amount.error + S // 1000


def test_equal_durations_have_no_error_and_others_at_most_half_the_tolerance() -> None:
    assert expect(Distribution.of([5 * S]), 7, 2).wall_ns == (20 * S, 0.0)
    asked = TrainingRun(trajectories=2000, workers=20, precision=Precision(effort=9.0, tolerance=0.01))
    law = Distribution.of(range(S, 20 * S, S))
    wall = simulate_run(trials_of(parts_of(law)), asked, law).wall_ns
    assert wall.error <= 0.005 * wall.value


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


def test_pool_in_the_steady_state_of_many_workers_is_erlangs_loss() -> None:
    rng = Random(3)
    law = [round(S * rng.expovariate(1 / 40)) + 1 for _ in range(400)]
    pool = {"workers": 400, "warm_pool": 30, "refill_s": 4.0}
    found = retried(law, [], trajectories=10**7, effort=4.0, **pool)
    load, lost = 400 / (sum(law) / len(law) / S) * 4.0, 1.0
    for slot in range(1, 31):
        lost = load * lost / (slot + load * lost)
    assert found.hits.value / found.attempts.value == pytest.approx(1 - lost, abs=0.01)


def test_a_pool_made_at_a_rate_hits_what_the_rate_gives() -> None:
    times = [20 * S + n for n in range(0, 10**9, 10**8)]
    rate, workers, saved = 1.0, 40, 10
    pool = {"workers": workers, "warm_pool": 2000, "refill_rate": rate, "startup": saved * S}
    found = retried(times, [], trajectories=10**7, effort=0.5, **pool)
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
