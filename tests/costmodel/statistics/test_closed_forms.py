"""Intervals, sums of pauses and curves through levels of concurrency, against what is known of them."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import Interval, TrainingRunError, mean_interval, published_figures, quantile, wilson_interval
from costmodel.statistics import lognormal_sum
from costmodel.statistics.distribution import Distribution
from costmodel.statistics.intervals import difference, ratio_interval, student_t
from costmodel.statistics.lognormal_sum import CELLS, WHOLE, strata_of_sum
from costmodel.statistics.scalability import Level, LevelCurve


@pytest.mark.parametrize(("pauses", "sigma"), [(1, 0.6), (2, 1.2), (40, 0.3), (150, 1.2)])
def test_strata_ascend_and_keep_the_whole_and_its_mean(pauses: int, sigma: float) -> None:
    strata = strata_of_sum(pauses, sigma, 4)
    assert sum(one.weight for one in strata) == WHOLE
    means = [one.mean for one in strata]
    assert means == sorted(means)
    mean = math.fsum(one.weight * one.mean for one in strata) / WHOLE
    assert mean == pytest.approx(pauses * math.exp(sigma**2 / 2), rel=1e-12)
    assert strata_of_sum(0, sigma, 4) == ((WHOLE, 0.0),), "who does not pause does not think"
    assert strata_of_sum(pauses, 0.0, 4) == ((WHOLE, pauses),), "pauses without spread are their median"


def test_a_stratum_of_one_pause_is_between_its_quantiles() -> None:
    sigma = 0.8
    strata, (cell, weights) = strata_of_sum(1, sigma, 4), lognormal_sum._sum_on_grid(1, sigma)
    assert math.fsum(weights) == pytest.approx(1)
    assert len(weights) == CELLS
    below = 0
    for one in strata[:-1]:
        low, high = (
            math.exp(sigma * NormalDist().inv_cdf(edge / WHOLE)) if edge else 0.0
            for edge in (below, below + one.weight)
        )
        assert low - cell <= one.mean <= high + cell
        below += one.weight


# -- One curve through the levels of concurrency that were measured, and how far beyond them it can be be -----------

(ROCK,) = (facts for facts in published_figures() if facts.name == "rock.toml")


def rock(percentile: str) -> list[Level]:
    return [Level(start.concurrency, getattr(start, percentile)) for start in ROCK.starts]


@pytest.mark.parametrize("percentile", ["p50", "p95", "p99"])
def test_the_published_curve_goes_on_within_the_interval(percentile: str) -> None:
    *known, (n, actual, _) = rock(percentile)
    found = LevelCurve.of(known).at(n)  # four levels up to 8,000, asked for 16,000
    assert found.low < actual < found.high
    assert LevelCurve.of(known).beyond(n) == 2


def test_beyond_the_highest_level_its_value_stays_and_from_twice_as_many_on_nothing_bounds_it() -> None:
    two = LevelCurve.of([Level(1, 1.0), Level(4, 2.0)])
    assert two.at(8) == pytest.approx((2.0, 2.0, 4.0))  # a bottleneck just above 4
    assert two.at(9) == (2.0, 2.0, None)
    steep = LevelCurve.of([Level(1, 1.0), Level(4, 16.0)])
    assert steep.at(8) == pytest.approx((16.0, 16.0, 64.0))  # it already grew with the square
    one = LevelCurve.of([Level(4, 2.0)])
    assert (one.at(6), one.at(16)) == ((2.0, 2.0, 3.0), (2.0, 2.0, None))
    assert one.at(2).value == 2.0  # nothing was measured below


@pytest.mark.parametrize("limit", [8, 24, 40])
def test_a_limit_that_was_reached_is_no_slowdown_without_end(limit: int) -> None:
    """Sandboxes beyond the limit wait in line, so that each takes n / limit: 2,000 are 31 times as many as measured."""
    curve = LevelCurve.of([Level(n, max(1.0, n / limit)) for n in (1, 2, 4, 8, 16, 32, 64)])
    at_twice, far = curve.at(128), curve.at(2000)
    assert at_twice.low <= 128 / limit <= at_twice.high * (1 + 1e-9)
    assert (far.value, far.high) == (pytest.approx(64 / limit), None)


def test_levels_that_fall_are_pooled() -> None:
    curve = LevelCurve.of([Level(16, 3.0, 0.01), Level(1, 2.0, 0.01), Level(4, 1.0, 0.01)])
    assert [level.value for level in curve.levels] == pytest.approx([1.5, 1.5, 3.0])
    worth = LevelCurve.of([Level(1, 2.0, 0.01), Level(4, 1.0, 0.03)])
    assert worth.levels[0].value == pytest.approx(1.75)  # the surer one counts three times


ONE = st.tuples(st.integers(1, 5000), st.floats(0.01, 1000), st.just(0.0) | st.floats(1e-6, 10))
LEVELS = st.lists(ONE, min_size=1, max_size=7, unique_by=lambda level: level[0])


@settings(max_examples=60, deadline=None)
@given(LEVELS, st.integers(1, 20_000), st.integers(1, 20_000))
def test_more_at_a_time_is_never_faster(levels: list[tuple[int, float, float]], n: int, more: int) -> None:
    curve = LevelCurve.of([Level(*level) for level in levels])
    low, high = sorted((n, more))
    assert curve.at(low).value <= curve.at(high).value * (1 + 1e-9)
    found = curve.at(n)
    assert 0 <= found.low <= found.value * (1 + 1e-9)
    assert found.high is None or found.value <= found.high * (1 + 1e-9)


def test_students_quantiles() -> None:
    tabulated = {1: 12.7062, 2: 4.3027, 3: 3.1824, 10: 2.2281, 30: 2.0423, 200: 1.9719, 1000: 1.9623}
    for freedom, value in tabulated.items():
        assert student_t(freedom) == pytest.approx(value, abs=1e-4)


def test_intervals() -> None:
    assert mean_interval([1.0, 2.0]) == Interval(1.5)
    assert mean_interval([2.0] * 5) == Interval(2, 2, 2)
    assert Interval(2, 1, 3).widened(Interval(0, -1, 1)) == Interval(2, 0, 4)
    assert Interval(2, 1, 3).widened(Interval(0)) == Interval(2)
    symmetric = mean_interval([1, 2, 3, 4, 5])
    half = student_t(4) * math.sqrt(2.5 / 5)
    assert symmetric.low == pytest.approx(3 - half)
    assert symmetric.high == pytest.approx(3 + half)
    skewed = mean_interval([1.0] * 20 + [30.0])
    assert skewed.high - skewed.value > skewed.value - skewed.low


def test_ratios_and_differences() -> None:
    assert ratio_interval([10, 20, 3, 30], [1, 1, 0, 1]).value == 21
    a, b = Interval(10, 8, 13), Interval(4, 3, 6)
    assert difference(a, b) == Interval(6, 6 - math.hypot(2, 2), 6 + math.hypot(3, 1))
    assert difference(a, Interval(4)) == Interval(6)
    assert Interval(2, 1, None).times(3) == Interval(6, 3, None)


def test_wilson_and_quantiles() -> None:
    assert wilson_interval(0, 100) == pytest.approx((0, 0, 0.0370), abs=1e-4)
    assert wilson_interval(100, 100).high == 1
    assert {wilson_interval(0, n).low for n in range(1, 400)} == {0.0}, "and no 7e-16, as rounding would have it"
    assert [quantile([1, 2, 3, 4], p) for p in (0, 0.25, 0.5, 0.51, 1)] == [1, 1, 2, 3, 4]


def test_laws_refuse_nonsense() -> None:
    for sample in ([-1], [math.nan], [math.inf], []):
        with pytest.raises(TrainingRunError):
            Distribution.of(sample)
    assert Distribution.of([2, 4]).scaled(1, 4).values == [1]
