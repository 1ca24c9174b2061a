from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxtui import shipped
from taxtui.live.histogram import LogHistogram
from taxtui.tui import units
from taxtui.tui.colours import SUBSTRATES
from taxtui.tui.live.chart import outlines


def test_a_percentile_is_only_printed_where_the_data_support_it() -> None:
    histogram = LogHistogram()
    assert units.percentile(histogram, "p50") == "–"
    histogram.add([1_000_000] * 71)
    assert [units.percentile(histogram, name) for name in units.QUANTILES] == ["≈1.00ms", "n≥72", "n≥368"]
    histogram.add([1_000_000] * 297)
    assert [units.percentile(histogram, name) for name in units.QUANTILES] == ["≈1.00ms"] * 3


@pytest.mark.parametrize("name", ["p95", "p99"])
def test_the_needed_counts_are_the_least_that_bound_the_quantile(name: str) -> None:
    q, n = units.QUANTILES[name], units.NEEDED[name]
    assert q**n <= 0.025 < q ** (n - 1)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=50))
def test_the_chart_contains_every_value_of_each_cell(values: list[int]) -> None:
    histograms = [LogHistogram(), LogHistogram(), LogHistogram()]
    histograms[0].add(values)
    histograms[1].add(values[:1])
    drawn = outlines(histograms)
    for histogram, points in zip(histograms[:2], drawn, strict=False):
        edges = [edge for edge, _ in points]
        assert edges == sorted(edges)
        assert (points[0][1], points[-1][1]) == (0, 0)
        assert sum(count for _, count in points[1:-1:2]) == pytest.approx(histogram.n)  # each top edge has two points
    assert drawn[2] == []


def test_no_two_looks_are_alike() -> None:
    looks = [*SUBSTRATES.values(), *(look for name in SUBSTRATES for look in shipped.SUBSTRATES[name].variant_looks)]
    assert len({shape for shape, _ in looks}) == len({shade for _, shade in looks}) == len(looks)
