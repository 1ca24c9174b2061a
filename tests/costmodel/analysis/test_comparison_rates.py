"""How often a check is wrong where the truth is known; tests/studies/study_power.py has the large version."""

from __future__ import annotations

import pytest

from tests.studies.study_power import best_power
from tests.support.compared import metrics, noisy_checks, noisy_rates, rates, repetition_pairs
from tests.support.cost_model.repeated import AA


def test_equal_runs_raise_no_false_alarm_and_20_per_cent_are_found() -> None:
    for limit in (0.0, 0.10):
        assert noisy_checks(40, 3, 0.05, 1.0, limit=limit).regressed <= 0.05
    assert noisy_checks(40, 3, 0.02, 1.2, limit=0.05, sigma=0.05).regressed >= 0.90
    assert noisy_checks(10, 6, 0.02, 1.0, limit=0.10, sigma=0.05).passed >= 0.90
    found = noisy_checks(30, 3, 0.05, 1.2, limit=0.10, sigma=0.05)
    assert found.any_worse >= 0.7
    assert found.regressed >= found.any_worse - 0.04, "a check of one cell finds as much as a comparison"


@pytest.mark.parametrize("runs", [1, 3])
def test_real_repetitions_never_fail_a_check_of_39_metrics(runs: int) -> None:
    result = rates(repetition_pairs(AA, runs), metrics(0.0))
    assert result.regressed == 0
    assert result.worse <= 0.025


def test_equal_recordings_of_many_cells_fail_a_check_in_at_most_5_percent() -> None:
    result = noisy_checks(20, 3, 0.06, 1.0, cells=13)
    assert result.regressed <= 0.05
    assert result.any_worse > 0.05  # the 95 % intervals alone


def test_the_repetitions_that_compare_asks_for_find_the_change() -> None:
    """Three a side find half of + 20 % at an sd of 6 %; as many as ``needs`` says find it, and equal sides stay equal.

    tests/studies/study_power.py has the large version, and what would narrow the intervals.
    """
    few, needs = noisy_rates(60, 3, 0.06, 1.2)
    assert 0.35 <= few <= 0.65
    assert 4 <= needs <= 7
    assert noisy_rates(60, round(needs), 0.06, 1.2)[0] >= 0.75
    assert noisy_rates(60, 3, 0.06, 1.0)[0] <= 0.08


def test_no_test_finds_20_percent_with_three_repetitions_in_80_percent() -> None:
    assert best_power(3, 0.06, sd_known=True) < 0.80
    assert best_power(3, 0.06, sd_known=False, trials=None) < 0.80
    assert best_power(5, 0.06, sd_known=False) > 0.80
