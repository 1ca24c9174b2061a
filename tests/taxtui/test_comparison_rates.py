"""How often a check is wrong where the truth is known; tests/studies/study_compare.py has the large version."""

from __future__ import annotations

import pytest

from tests.support.compared import Repetitions, metrics, noisy_rates, rates, simulated_pairs
from tests.support.cost_model.repeated import AA


@pytest.mark.slow
def test_equal_runs_raise_no_false_alarm_and_20_per_cent_are_found() -> None:
    for limit in (0.0, 0.10):
        alarms = rates(simulated_pairs(40, 3, 0.05), metrics(limit))
        assert alarms.regressed <= 0.05, (limit, alarms)
    found = rates(simulated_pairs(40, 3, 0.02, "slower by 20 %"), metrics(0.05))
    assert found.regressed >= 0.90, found
    told = rates(simulated_pairs(10, 6, 0.02), metrics(0.10))
    assert told.passed >= 0.90, told


@pytest.mark.parametrize("runs", [1, 3])
def test_real_repetitions_are_hardly_ever_worse(runs: int) -> None:
    """Of single comparisons: a check of 39 has more false alarms."""
    assert rates(Repetitions(AA).pairs(runs), metrics(0.10)).worse <= 0.025


def test_a_check_finds_what_a_comparison_finds() -> None:
    """Its limit takes away no more than changes that are measured below it."""
    plain, checked = (
        rates(simulated_pairs(30, 3, 0.05, "slower by 20 %"), metrics(limit, "mean:trajectory"))
        for limit in (0.0, 0.10)
    )
    assert plain.worse >= 0.7
    assert checked.regressed >= plain.worse - 0.04


def test_the_repetitions_that_compare_asks_for_find_the_change() -> None:
    """Three a side find half of + 20 % at an sd of 6 %; as many as they ask for find it, and equal sides stay equal.

    tests/studies/study_power.py has the large version, and what would narrow the intervals.
    """
    few, needs = noisy_rates(60, 3, 0.06, 1.2)
    assert 0.35 <= few <= 0.65
    assert 4 <= needs <= 7
    assert noisy_rates(60, round(needs), 0.06, 1.2)[0] >= 0.75
    assert noisy_rates(60, 3, 0.06, 1.0)[0] <= 0.08
