"""Order-statistic intervals against exact binomial sums, and what must hold of any sample."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import percentile
from costmodel.statistics.quantiles import effective_count, least_count, rank_limits

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


def test_what_percentiles_need() -> None:
    assert [least_count(p) for p in (0.5, 0.95, 0.99)] == [6, 72, 368]
    for p, needed in ((Fraction(1, 2), 6), (Fraction(19, 20), 72), (Fraction(99, 100), 368)):
        assert p**needed <= TAIL < p ** (needed - 1)
        assert rank_limits(needed, float(p))[1] == needed
        assert rank_limits(needed - 1, float(p))[1] is None


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


def test_large_samples_agree_with_the_normal_approximation() -> None:
    for count, p in itertools.product((1_000, 54_321, 1_000_000), (0.005, 0.5, 0.95, 0.99)):
        half = 1.959964 * math.sqrt(count * p * (1 - p))
        for found, wanted in zip(rank_limits(count, p), (count * p - half, count * p + half), strict=True):
            assert found is None or abs(found - wanted) <= 3  # the next term is below 2 ranks, and ranks are whole
