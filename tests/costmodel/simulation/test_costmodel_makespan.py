"""Makespans against exact simulation: inside the bounds, and never further off than stated."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import expected_max, makespan_bounds
from costmodel.simulation.makespan import (
    expected_makespan,
    list_makespan,
    out_of_step,
    random_makespan,
    renewal_makespan,
)
from costmodel.statistics.distribution import Distribution

S = 10**9
Maker = Callable[[Random], float]


LAWS: dict[str, Maker] = {
    "uniform": lambda rng: rng.uniform(1, 30),
    "narrow": lambda rng: rng.lognormvariate(2, 0.02),
    "lognormal": lambda rng: rng.lognormvariate(2, 0.5),
    "wide": lambda rng: rng.lognormvariate(2, 1.2),
    "bimodal": lambda rng: rng.gauss(5, 0.1) if rng.random() < 0.8 else rng.gauss(30, 0.5),
    "lattice": lambda rng: rng.choice((5.0, 10.0, 30.0)),
    "heavy tail": lambda rng: rng.paretovariate(1.5),
    "normal": lambda rng: rng.gauss(20, 1),
}


def drawn(name: str, rng: Random, size: int = 100) -> Distribution:
    return Distribution.of([LAWS[name](rng) * S for _ in range(size)])


def simulated(law: Distribution, jobs: int, workers: int, seed: int) -> tuple[float, float]:
    """The mean of exact simulations, and three standard errors of it."""
    count = max(8, min(120, 150_000 // jobs))
    rng = Random(seed)
    ends = [random_makespan(law, jobs, workers, rng) for _ in range(count)]
    noise = 3 * statistics.stdev(ends) / math.sqrt(count)
    unseen = (law.values[-1] - law.values[0]) * (1 - 0.003 ** (1 / count))  # a rarer outcome may be missing
    return statistics.fmean(ends), max(noise, unseen if len(set(ends)) <= 2 else 0.0) + 1e-9 * max(ends)


@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("name", LAWS)
def test_random_laws_stay_within_bounds_and_stated_error(name: str, part: int) -> None:
    for number in range(10):
        rng = Random(f"{name} {part} {number}")
        law = drawn(name, rng, rng.choice((1, 2, 3, 5, 20, 100)))
        workers = rng.choice((1, 3, 20, 100, 500))
        jobs = int(workers * 10 ** rng.uniform(-0.5, 3 if workers <= 20 else 2.2)) + 1
        mean, noise = simulated(law, jobs, workers, number)
        low, high = makespan_bounds(law, jobs, workers)
        found = expected_makespan(law, jobs, workers)
        case = (name, part, number, jobs, workers, found, mean, noise)
        assert low - noise <= mean <= high + noise, case
        assert low * (1 - 1e-12) <= found.value_ns <= high * (1 + 1e-12), case
        assert abs(found.value_ns - mean) <= found.error_ns + noise, case


@pytest.mark.parametrize("workers", [1_000, 30_000])
@pytest.mark.parametrize("name", ["bimodal", "lattice", "normal"])
def test_lockstep_states_an_error_that_holds(name: str, workers: int) -> None:
    law = drawn(name, Random(3))
    for waves in (1.5, 3.00001):
        jobs = int(workers * waves) + 1
        ends = [random_makespan(law, jobs, workers, Random(seed)) for seed in range(6)]
        noise = 3 * statistics.stdev(ends) / math.sqrt(len(ends))
        found = expected_makespan(law, jobs, workers)
        low, high = makespan_bounds(law, jobs, workers)
        assert abs(found.value_ns - statistics.fmean(ends)) <= found.error_ns + noise + 1
        assert found.error_ns <= (high - low) / 2 + 1


def test_equal_replicates_claim_no_certainty_and_lattices_never_lose_step() -> None:
    rare = expected_makespan(Distribution({20 * S: 999, 21 * S: 1}), 1501, 1000)
    assert rare.error_ns > 0
    for law in ([20 * S], [5 * S] * 8 + [30 * S] * 2):
        assert not out_of_step(Distribution.of(law), 2_000, 100, 2e-3)


def test_one_worker_no_work_and_as_many_workers_as_jobs() -> None:
    sample = Distribution.of([S, 2 * S, 6 * S])
    assert expected_makespan(sample, 1_000_000, 1).value_ns == pytest.approx(3e6 * S, rel=1e-9)
    assert expected_makespan(sample, 0, 5).value_ns == 0
    assert expected_makespan(sample, 1, 5).value_ns == pytest.approx(3 * S)
    assert expected_makespan(Distribution.of([0, 0]), 10**9, 5).value_ns == 0
    assert renewal_makespan(sample, 50, 1) == pytest.approx(50 * 3 * S)
    law = Distribution.of([1, 2, 3, 4])
    exact = sum(max(a, b) for a in range(1, 5) for b in range(1, 5)) / 16
    assert [expected_max(law, jobs) for jobs in (0, 1, 2, 10**15)] == pytest.approx([0, 2.5, exact, 4])


jobs = st.lists(st.integers(0, 10**12), min_size=1, max_size=60)
samples = st.lists(st.integers(1, 10**11), min_size=1, max_size=40)
workers = st.integers(1, 80)
huge = st.integers(1, 10**15)
many = settings(max_examples=200, deadline=None)


@many
@given(jobs, workers)
def test_graham(durations: list[int], count: int) -> None:
    end = list_makespan(durations, count)
    total, longest = sum(durations), max(durations)
    assert end * count >= total
    assert end >= longest
    assert end * count <= total + (count - 1) * longest


@many
@given(st.integers(0, 10**9), st.integers(1, 300), workers)
def test_equal_jobs_go_in_waves(duration: int, number: int, count: int) -> None:
    waves = -(-number // count)
    assert list_makespan([duration] * number, count) == waves * duration
    assert random_makespan(Distribution.of([duration]), number, count, Random(0)) == waves * duration


@many
@given(samples, huge, st.integers(1, 10**6))
def test_bounds_are_ordered_and_monotone(sample: list[int], number: int, count: int) -> None:
    law = Distribution.of(sample)
    here = makespan_bounds(law, number, count)
    more_jobs, more_workers = makespan_bounds(law, number + 1, count), makespan_bounds(law, number, count + 1)
    assert 0 < here[0] <= here[1]
    for side in (0, 1):
        assert more_jobs[side] >= here[side] * (1 - 1e-9)
        assert more_workers[side] <= here[side] * (1 + 1e-9)
