"""List scheduling, bounds and simulations: what holds for every list, law, N and W."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.simulation.makespan import expected_max, list_makespan, makespan_bounds, random_makespan
from costmodel.statistics.distribution import Distribution

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
@given(jobs, workers)
def test_more_workers_never_end_later(durations: list[int], count: int) -> None:
    assert list_makespan(durations, count + 1) <= list_makespan(durations, count)


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


@many
@given(samples, st.integers(0, 10**15))
def test_expected_max_grows_towards_the_longest(sample: list[int], number: int) -> None:
    law = Distribution.of(sample)
    value = expected_max(law, number)
    assert -1e-3 <= value <= max(sample) * (1 + 1e-12)
    assert expected_max(law, number + 1) >= value * (1 - 1e-9)
