"""One curve through the levels of concurrency that were measured, and how far beyond them it can be believed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.providers.provider import published_figures
from costmodel.workload.rescaling import Level, LevelCurve

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
