"""Intervals, percentiles, sums of pauses and curves through levels of concurrency, against what is known of them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import TrainingRunError, percentile, published_figures
from costmodel.statistics.distribution import WHOLE, Distribution, strata_of_sum
from costmodel.statistics.intervals import quantile, student_t, wilson_interval
from costmodel.statistics.quantiles import effective_count, rank_limits
from costmodel.workload.rescaling import Level, LevelCurve


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
    below = 0
    for one in strata_of_sum(1, 0.8, 4)[:-1]:
        edges = (below, below + one.weight)
        low, high = (math.exp(0.8 * NormalDist().inv_cdf(edge / WHOLE)) if edge else 0.0 for edge in edges)
        assert 0.99 * low <= one.mean <= 1.01 * high
        below += one.weight


(ROCK,) = (facts for facts in published_figures() if facts.name == "rock.toml")


def rock(percentile: str) -> list[Level]:
    return [Level(start.concurrency, getattr(start, percentile)) for start in ROCK.starts]


@pytest.mark.parametrize("percentile", ["p50", "p95", "p99"])
def test_the_published_curve_goes_on_within_the_interval(percentile: str) -> None:
    *known, (n, actual, _) = rock(percentile)
    found = LevelCurve.of(known).at(n)  # four levels up to 8,000, asked for 16,000
    assert found.low < actual < found.high
    assert LevelCurve.of(known).beyond(n) == 2


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


def test_student_wilson_and_quantiles() -> None:
    tabulated = {1: 12.7062, 2: 4.3027, 3: 3.1824, 10: 2.2281, 30: 2.0423, 200: 1.9719, 1000: 1.9623}
    for freedom, value in tabulated.items():
        assert student_t(freedom) == pytest.approx(value, abs=1e-4)
    assert wilson_interval(0, 100) == pytest.approx((0, 0, 0.0370), abs=1e-4)
    assert {wilson_interval(n, n).high for n in range(1, 400)} == {1.0}
    assert {wilson_interval(0, n).low for n in range(1, 400)} == {0.0}, "and no 7e-16, as rounding would have it"
    assert [quantile([1, 2, 3, 4], p) for p in (0, 0.25, 0.5, 0.51, 1)] == [1, 1, 2, 3, 4]


def test_laws_refuse_nonsense() -> None:
    for sample in ([-1], [math.nan], [math.inf], []):
        with pytest.raises(TrainingRunError):
            Distribution.of(sample)
    assert Distribution.of([2, 4]).scaled(1, 4).values == [1]


untimed = settings(deadline=None)
TAIL = Fraction(1, 40)
durations = st.integers(0, 10**12)
samples = st.lists(durations, min_size=1, max_size=500)
permille = st.integers(5, 995)
clustered = st.lists(st.lists(durations, min_size=1, max_size=12), min_size=1, max_size=12)


def below(count: int, p: Fraction) -> list[Fraction]:
    """P(Bin(count, p) < rank) for every rank from 0 to count + 1, exactly."""
    masses = (math.comb(count, k) * p**k * (1 - p) ** (count - k) for k in range(count + 1))
    return list(itertools.accumulate(masses, initial=Fraction(0)))


@untimed
@given(st.integers(1, 120), permille)
def test_the_closest_ranks_whose_risk_is_at_most_a_fortieth_on_each_side(count: int, thousandths: int) -> None:
    low, high = rank_limits(count, thousandths / 1000)
    risk = below(count, Fraction(thousandths, 1000))
    # the quantile is below X(low) only if fewer than `low` values are below it; above X(high) if at least `high` are
    assert low == max((rank for rank in range(1, count + 1) if risk[rank] <= TAIL), default=None)
    assert high == min((rank for rank in range(1, count + 1) if 1 - risk[rank] <= TAIL), default=None)


@untimed
@given(samples, st.sampled_from([0.5, 0.95, 0.99]))
def test_a_number_only_with_an_upper_limit(values: list[int], p: float) -> None:
    found = percentile(sorted(values), p)
    assert (found.high is not None) == (len(values) >= found.needs)
    assert (found.value is not None) == (p == 0.5 or found.high is not None)
    if found.value is not None:
        assert sum(value <= found.value for value in values) >= p * len(values) - 1e-6
        assert sum(value < found.value for value in values) < p * len(values)
        assert found.low is None or found.low <= found.value
        assert found.high is None or found.value <= found.high


@untimed
@given(samples, st.integers(0, 499), durations)
def test_monotone_in_every_value_and_in_the_percentage(values: list[int], index: int, more: int) -> None:
    slower = values.copy()
    slower[index % len(values)] += more
    before = [percentile(sorted(values), p) for p in (0.5, 0.95, 0.99)]
    after = [percentile(sorted(slower), p) for p in (0.5, 0.95, 0.99)]
    for one, other in zip(before, after, strict=True):
        for was, now in zip(one, other, strict=True):
            assert (was is None and now is None) or (was is not None and now is not None and was <= now)
    for lesser, greater in itertools.pairwise(before):
        for one_end, other_end in zip(lesser[:3], greater[:3], strict=True):
            assert one_end is None or other_end is None or one_end <= other_end


@untimed
@given(clustered)
def test_actions_are_worth_between_one_value_and_all_of_them(trials: list[list[int]]) -> None:
    values = [value for trial in trials for value in trial]
    ascending = sorted(values)
    worth = effective_count(trials, ascending[len(values) // 2])
    assert 1 <= worth <= len(values)
    assert len(trials) >= 3 or worth == len(trials)
    found = percentile(ascending, 0.95, worth)
    assert found.low is None or found.low in values
    assert found.high is None or found.high in values
    assert found.needs * worth >= 72 * len(values)
