"""One curve through the levels of concurrency that were measured, and how far beyond them it can be believed."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.concurrency import Level, LevelCurve, Scalability
from costmodel.published import shipped

(ROCK,) = (facts for facts in shipped() if facts.name == "rock.toml")


def rock(percentile: str) -> list[Level]:
    return [Level(start.at_a_time, getattr(start, percentile)) for start in ROCK.starts]


def law(n: int, a: float = 5.0, b: float = 0.1, c: float = 0.0005) -> float:
    return a + b * (n - 1) + c * n * (n - 1)


def test_the_scalability_law_is_found_where_it_holds() -> None:
    fitted = Scalability.of([Level(n, law(n)) for n in (1, 4, 16, 64, 256)])
    assert fitted.parameters == pytest.approx((5.0, 0.1, 0.0005))
    assert fitted.at(1000) == pytest.approx((law(1000),) * 3)


@pytest.mark.parametrize("percentile", ["p50_s", "p95_s", "p99_s"])
def test_the_published_curve_goes_on_within_the_interval(percentile: str) -> None:
    *known, (n, actual, _) = rock(percentile)
    found = LevelCurve.of(known).at(n)  # four levels up to 8,000, asked for 16,000
    assert found.low is not None
    assert found.high is not None
    assert found.low < actual < found.high
    assert LevelCurve.of(known).beyond(n) == 2


@pytest.mark.parametrize("percentile", ["p50_s", "p95_s", "p99_s"])
@pytest.mark.parametrize("left_out", [1, 2, 3])
def test_each_level_of_the_published_curve_lies_between_its_neighbours(percentile: str, left_out: int) -> None:
    levels = rock(percentile)
    n, actual, _ = levels.pop(left_out)
    found = LevelCurve.of(levels).at(n)
    assert found.low is not None
    assert found.high is not None
    assert found.low * 0.99 <= actual <= found.high  # 4.92 s of 2,000 is a little less than 4.93 s of 1,000


def test_the_published_creates_come_at_a_constant_rate() -> None:
    rates = [n / slowest for n, slowest, _ in rock("p99_s")[2:]]
    assert rates == pytest.approx([301, 250, 266], abs=1)
    fitted = Scalability.of([Level(n, n / 250) for n in (1000, 4000, 8000, 16000)])
    a, b, c = fitted.parameters
    assert (a, b, c) == (pytest.approx(1 / 250, abs=1e-3), pytest.approx(1 / 250, rel=1e-3), pytest.approx(0, abs=1e-9))


def test_fewer_levels_stay_between_the_last_value_and_the_last_slope() -> None:
    two = LevelCurve.of([Level(1, 1.0), Level(4, 2.0)])
    assert two.at(16) == pytest.approx((math.sqrt(8), 2.0, 4.0))
    assert two.scalability is None
    one = LevelCurve.of([Level(4, 2.0)])
    assert one.at(16) == (2.0, 2.0, None)
    assert one.at(2).value == 2.0  # nothing was measured below


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
    assert found.low is not None
    assert 0 <= found.low <= found.value * (1 + 1e-9)
    assert found.high is None or found.value <= found.high * (1 + 1e-9)


def test_the_interval_covers_what_was_not_measured() -> None:
    """Levels 1 to 256 with 3 % of noise, asked for 1,000: 200 seeded laws, of which about 91 % are inside."""
    rng, covered = Random(7), 0
    for _ in range(200):
        b, c = 10 ** rng.uniform(-3, -1), 10 ** rng.uniform(-6, -3)
        levels = [Level(n, law(n, 1.0, b, c) * (1 + rng.gauss(0, 0.03))) for n in (1, 4, 16, 64, 256)]
        found, actual = Scalability.of(levels).at(1000), law(1000, 1.0, b, c)
        covered += (found.low or 0.0) <= actual <= (found.high or math.inf)
    assert covered >= 170
