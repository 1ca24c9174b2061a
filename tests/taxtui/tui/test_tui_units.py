from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxtui.live.histogram import LogHistogram
from taxtui.tui import units
from taxtui.tui.colours import SUBSTRATES, VARIANTS, colour, glyph


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0ns"), (850, "850ns"), (12_345, "12.3µs"), (999_600, "1.00ms"), (999_400, "999µs"), (612e6, "612ms"),
        (999.96e6, "1.00s"), (1.1e9, "1.10s"), (12.34e9, "12.3s"), (59.96e9, "1m00s"), (125e9, "2m05s"),
        (3_725e9, "1h02m"), (360_000e9, "100h00m"),
    ],
)  # fmt: skip
def test_durations_have_three_digits_and_a_unit(ns: float, text: str) -> None:
    assert units.duration(ns) == text


@given(st.integers(0, 10**17))
def test_a_duration_below_100_hours_fits_the_columns_of_the_table(ns: int) -> None:
    if ns < 360_000 * 10**9:
        assert len(units.duration(ns)) <= 6


@pytest.mark.parametrize(
    ("ns", "text"), [(5, "5ns"), (1_500, "1.5µs"), (5e8, "500ms"), (1e9, "1s"), (120e9, "2m"), (5_400e9, "1h30m")]
)
def test_ticks_have_no_trailing_zeros(ns: float, text: str) -> None:
    assert units.tick(ns) == text


@pytest.mark.parametrize(
    ("octets", "text"), [(0, "0 B"), (640, "640 B"), (1_200, "1.2 kB"), (999_960, "1.0 MB"), (10**15, "1000.0 TB")]
)
def test_sizes(octets: int, text: str) -> None:
    assert units.size(octets) == text


@pytest.mark.parametrize(("ns", "text"), [(5e9, "5s"), (100e9, "1m40s"), (7_384e9, "2h03m")])
def test_short_clocks(ns: float, text: str) -> None:
    assert units.clock(ns, short=True) == text
    assert units.clock(7_384e9) == "02:03:04"


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


bounds = st.tuples(st.floats(1, 1e12), st.floats(1.05, 1e6)).map(lambda pair: (pair[0], pair[0] * pair[1]))


@given(bounds, st.integers(10, 250))
def test_ticks_fit_and_never_overlap(limits: tuple[float, float], columns: int) -> None:
    end = -1
    for value in units.ticks(*limits, columns, 8):
        place = units.column(value, *limits, columns)
        assert place > end
        end = place + len(units.tick(value))
        assert end < columns


@given(bounds)
def test_a_wide_axis_always_has_a_tick(limits: tuple[float, float]) -> None:
    assert units.ticks(*limits, 120, 8)


def test_an_axis_that_cannot_be_drawn_has_no_tick() -> None:
    assert units.ticks(1, 10, 5, 8) == units.ticks(10, 1, 80, 8) == []


@pytest.mark.parametrize("second", [100_500_000, 104_000_000, 150_000_000, 99_000_000_000])
def test_two_values_are_two_bars(second: int) -> None:
    histogram = LogHistogram()
    histogram.add((100_000_000, second))
    shares = histogram.columns(20, 99_000_000, second * 1.01)
    assert sorted(shares)[-2:] == [1, 1]
    assert sum(shares) == 2


def test_variants_of_one_substrate_have_looks_of_their_own() -> None:
    labels = ["docker", "docker:runsc", "docker:crun", "docker:kata", "local:bwrap", "local:plain", "ec2"]
    assert len({glyph(label) for label in labels}) == len(labels)
    assert len({colour(label) for label in labels}) == len(labels)


def test_the_usual_variant_looks_as_the_substrate_itself() -> None:
    for label in ("docker:runc", "local:bwrap", "ecs:fargate"):
        plain = label.partition(":")[0]
        assert (glyph(label), colour(label)) == (glyph(plain), colour(plain)) == SUBSTRATES[plain]
    assert glyph("another:thing") == "•"


def test_no_two_looks_are_alike() -> None:
    looks = [*SUBSTRATES.values(), *(look for family in VARIANTS.values() for look in family)]
    assert len({shape for shape, _ in looks}) == len({shade for _, shade in looks}) == len(looks)
