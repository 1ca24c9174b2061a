"""The law of a sum of pauses, and the random numbers that think times are drawn by."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest

from costmodel.statistics import distribution
from costmodel.statistics.distribution import CELLS, WHOLE, strata_of_sum


@pytest.mark.parametrize(("pauses", "sigma"), [(1, 0.6), (2, 1.2), (40, 0.3), (150, 1.2)])
def test_strata_ascend_and_keep_the_whole_and_its_mean(pauses: int, sigma: float) -> None:
    strata = strata_of_sum(pauses, sigma, 4)
    assert sum(one.weight for one in strata) == WHOLE
    means = [one.mean for one in strata]
    assert means == sorted(means)
    mean = math.fsum(one.weight * one.mean for one in strata) / WHOLE
    assert mean == pytest.approx(pauses * math.exp(sigma**2 / 2), rel=1e-12)


def test_a_stratum_of_one_pause_is_between_its_quantiles() -> None:
    sigma = 0.8
    strata, (cell, weights) = strata_of_sum(1, sigma, 4), distribution._sum_on_grid(1, sigma)
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


def test_nobody_who_does_not_pause_thinks_and_pauses_without_spread_are_their_median() -> None:
    assert strata_of_sum(0, 1.0, 4) == ((WHOLE, 0.0),)
    assert strata_of_sum(7, 0.0, 4) == ((WHOLE, 7.0),)
