"""Axes: round places within their ends, words of the unit that fits, whatever the numbers are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxtui.report.page.scales import amounts, durations, limits

POSITIVE = st.floats(1e-9, 1e15)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.008, 0.6, ["10 ms", "50 ms", "100 ms", "500 ms"]),
        (3.0, 22.0, ["5 s", "10 s", "20 s"]),
        (0.2, 0.3, ["200 ms", "225 ms", "250 ms", "275 ms"]),
        (30.0, 1200.0, ["30 s", "1 min", "2 min", "5 min", "10 min"]),
    ],
)
def test_a_logarithmic_axis_of_times_has_a_few_round_ones(low: float, high: float, words: list[str]) -> None:
    found = [tick.label for tick in durations(low, high, log=True)]
    assert found == words if low < 30 else set(found) <= {*words, "20 min"}


def test_amounts_are_told_in_thousands_and_millions() -> None:
    assert [tick.label for tick in amounts(1e4, 1e6, log=True)] == ["10k", "50k", "100k", "500k", "1M"]
    assert [tick.label for tick in amounts(0, 40, log=False, unit="$")] == ["$0", "$10", "$20", "$30", "$40"]


@settings(max_examples=60)
@given(low=POSITIVE, factor=st.floats(1.001, 1e12))
def test_ticks_lie_between_the_ends_and_are_few(low: float, factor: float) -> None:
    high = low * factor
    for found in (durations(low, high, log=True), amounts(low, high, log=True)):
        assert len(found) <= 7
        assert all(low * (1 - 1e-6) <= tick.at <= high * (1 + 1e-6) for tick in found)
        assert [tick.at for tick in found] == sorted({tick.at for tick in found})


@settings(max_examples=60)
@given(values=st.lists(st.just(0.0) | st.floats(1e-12, 1e18), min_size=1), log=st.booleans())
def test_limits_hold_what_is_drawn_and_are_never_one_point(values: list[float], log: bool) -> None:
    low, high = limits(values, log=log)
    assert 0 <= low < high < math.inf
    assert all(low <= value <= high for value in values if value > 0 or not log)
    assert low > 0 or not log
