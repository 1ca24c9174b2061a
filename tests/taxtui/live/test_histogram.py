from __future__ import annotations

import pytest

from taxtui.live.histogram import LogHistogram


def filled(values: list[int]) -> LogHistogram:
    histogram = LogHistogram()
    histogram.add(values)
    return histogram


def test_an_empty_histogram_answers_zero() -> None:
    empty = LogHistogram()
    assert (empty.n, empty.mean, empty.quantile(0.99), sum(empty.columns(10, 1, 1e9))) == (0, 0.0, 0, 0.0)


def test_adding_in_parts_is_adding_at_once() -> None:
    parts = filled([5, 6])
    parts.add([])
    parts.add([10**12])
    assert parts == filled([10**12, 6, 5])
    assert parts != filled([5])


def test_a_clock_that_stepped_counts_as_zero() -> None:
    assert filled([-5, 0]).counts == {0: 2}


def test_columns_share_wide_buckets_by_area_and_lose_nothing() -> None:
    histogram = filled([10**6 + step for step in range(0, 10**6, 1_000)])
    columns = histogram.columns(300, histogram.least, histogram.greatest)  # 10 columns a bucket: the case that combs
    assert sum(columns) == pytest.approx(histogram.n)
    assert min(columns) > 0


def test_columns_leave_out_what_lies_outside() -> None:
    histogram = filled([10] * 5 + [10_000] * 7)
    assert sum(histogram.columns(4, 1, 100)) == pytest.approx(5)
    assert sum(histogram.columns(4, 100, 1_000)) == 0


@pytest.mark.parametrize("value", [0, 1, 7, 10**9])
def test_one_single_value_fills_one_column(value: int) -> None:
    assert sorted(filled([value] * 9).columns(5, max(value, 1) / 2, max(value, 1) * 2)) == pytest.approx(
        [0, 0, 0, 0, 9]
    )
    assert sum(filled([value]).columns(5, value, value)) == 1
