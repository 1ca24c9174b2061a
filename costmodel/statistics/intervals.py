"""Means, ratios and differences with the interval that the data support; nothing is resampled."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from functools import cache
from itertools import chain
from operator import mul
from statistics import NormalDist
from typing import Final, NamedTuple

LEVEL: Final = 0.95
ONE_SIDED: Final = NormalDist().inv_cdf(LEVEL)
MIN_CLUSTERS: Final = 3
MIN_TRIALS: Final = 3
"""With fewer trials a mean has no interval."""


class Interval(NamedTuple):
    """A value with its 95 % interval, both in the value's unit; None where the data do not support one."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def limits(self) -> tuple[float, float] | None:
        """Return both limits; None unless both are known."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def at_least(self) -> bool:
        """Whether there is a lower limit only."""
        return self.low is not None and self.high is None

    def times(self, factor: float) -> Interval:
        """Convert to another unit; ``factor`` is positive."""
        low, high = self.low, self.high
        return Interval(self.value * factor, *(None if end is None else end * factor for end in (low, high)))

    def shifted(self, by: float) -> Interval:
        """Add a constant to the value and to both limits."""
        low, high = self.low, self.high
        return Interval(self.value + by, *(None if end is None else end + by for end in (low, high)))

    def widened(self, error: Interval) -> Interval:
        """Add the limits of an error that no number of trials reduces; an interval without limits stays."""
        if self.low is None or self.high is None:
            return self
        if error.low is None or error.high is None:
            return self._replace(low=None, high=None)
        return self._replace(low=self.low + error.low, high=self.high + error.high)

    def not_negative(self) -> Interval:
        """Raise a negative lower limit to 0: time and money cannot be negative."""
        return self if self.low is None else self._replace(low=max(0.0, self.low))


def mean_interval(values: Sequence[float], clusters: Sequence[Hashable] | None = None) -> Interval:
    """Return the mean with Hall's transformed interval, or the clustered interval where that is wider."""
    return ratio_interval(values, [1] * len(values), clusters)


def ratio_interval(
    numerators: Sequence[float], denominators: Sequence[float], clusters: Sequence[Hashable] | None = None
) -> Interval:
    """Return Σ numerators / Σ denominators by linearisation; Σ denominators must be above 0.

    Trials of one cluster (a block) may share a slow minute. With three clusters or more the interval
    includes this effect, and is never narrower than for independent trials. Repetitions: ``repetitions``.
    """
    count, total = len(numerators), sum(denominators)
    ratio = sum(numerators) / total
    if count < MIN_TRIALS:
        return Interval(ratio)
    residuals = array("d", [upper - ratio * lower for upper, lower in zip(numerators, denominators, strict=True)])
    low, high = _hall(array("d", [residual * count / total for residual in residuals]))
    if clusters is not None and len(set(clusters)) >= MIN_CLUSTERS:
        spread = _clustered((residual / total for residual in residuals), clusters)
        low, high = min(low, -spread), max(high, spread)
    return Interval(ratio, ratio + low, ratio + high)


def _hall(deviations: Sequence[float]) -> tuple[float, float]:
    """Return the interval of a mean relative to the mean, from deviations that sum to 0.

    The t statistic is made symmetric by a cubic of its estimated skewness, which has an inverse in closed form
    (P. Hall, "On the removal of skewness by transformation", J. R. Statist. Soc. B 54, 1992); with Student's
    quantiles instead of the normal ones, for small samples.
    """
    count = len(deviations)
    squares = array("d", map(mul, deviations, deviations))
    variance: float = math.fsum(squares) / count
    if variance == 0:
        return 0.0, 0.0
    skewness = math.fsum(map(mul, squares, deviations)) / count / (variance * math.sqrt(variance))
    standard_error = math.sqrt(variance / (count - 1))
    root = math.sqrt(count)

    def original(x: float) -> float:
        if abs(skewness) < 1e-9:
            return x
        return 3 * root / skewness * (math.cbrt(1 + skewness / root * (x - skewness / (6 * root))) - 1)

    quantile = student_t(count - 1)
    return -standard_error * original(quantile), -standard_error * original(-quantile)


def _clustered(shares: Iterable[float], clusters: Sequence[Hashable]) -> float:
    """Return half the width of the interval of Σ shares if the sample was drawn by whole clusters."""
    sums: defaultdict[Hashable, float] = defaultdict(float)
    for share, cluster in zip(shares, clusters, strict=True):
        sums[cluster] += share
    count = len(sums)
    return student_t(count - 1) * math.sqrt(count / (count - 1) * math.fsum(s * s for s in sums.values()))


def correlation_time(series: Sequence[Sequence[float]], *, only_if_seen: bool = False) -> float:
    """Return τ ≥ 1, the number of neighbouring trials that carry the information of one independent trial.

    ``series`` are deviations from a mean in time order, a list per run; no pair spans two runs. τ is the sum of the
    autocorrelations while pairs of neighbouring lags are positive (Geyer's initial positive sequence, Statistical
    Science 7, 1992); lags beyond n/3 have too few pairs.
    ``only_if_seen``: 1 unless the first autocorrelation is above 1.645 / √n, which chance exceeds in 5 % of all cases.
    """
    power = _products(series, 0)
    if not power:
        return 1.0
    first = _products(series, 1) / power
    if only_if_seen and first * math.sqrt(sum(map(len, series))) <= ONE_SIDED:
        return 1.0
    time = -1.0
    for lag in range(0, max(2, max(map(len, series)) // 3), 2):
        pair = _products(series, lag) / power + _products(series, lag + 1) / power if lag else 1.0 + first
        if pair <= 0:
            break
        time += 2 * pair
    return max(1.0, time)


def _products(series: Sequence[Sequence[float]], lag: int) -> float:
    return math.fsum(chain.from_iterable(map(mul, run, run[lag:]) for run in series))


def difference(first: Interval, second: Interval) -> Interval:
    """Return ``first`` − ``second`` of independent values; limits by Zou and Donner (2008)."""
    value = first.value - second.value
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Interval(value)
    low = value - math.hypot(first.value - first.low, second.high - second.value)
    high = value + math.hypot(first.high - first.value, second.value - second.low)
    return Interval(value, low, high)


def ratio(first: Interval, second: Interval) -> Interval:
    """Return ``first`` / ``second`` of independent values; limits by Donner and Zou (SMMR 21, 2012).

    The interval contains a factor f exactly if the interval of ``first`` − f · ``second`` by ``difference`` contains 0.
    ``second`` must be above 0. The upper limit is None where ``second`` may be 0 or below.
    """
    value = first.value / second.value
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Interval(value)
    product = first.value * second.value
    below = first.low * (2 * first.value - first.low)
    above = first.high * (2 * first.value - first.high)
    lower, upper = (limit * (2 * second.value - limit) for limit in (second.low, second.high))
    root = math.sqrt(max(0.0, product**2 - below * upper))
    # below / (product + root) is the same root in a form for a denominator of 0.
    low = (product - root) / upper if upper > 0 else below / (product + root) if product > 0 else -math.inf
    if second.low <= 0:
        return Interval(value, low)
    return Interval(value, low, (product + math.sqrt(max(0.0, product**2 - above * lower))) / lower)


def wilson_interval(successes: float, trials: float) -> Interval:
    """Return a rate with Wilson's interval; ``trials`` is above 0."""
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    rate, shrink = successes / trials, 1 + z * z / trials
    middle = (rate + z * z / (2 * trials)) / shrink
    half = z / shrink * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    # Without a success, or without a failure, the limit is exactly the bound; rounding would miss it by 1e-16.
    low = max(0.0, middle - half) if successes else 0.0
    return Interval(rate, low, min(1.0, middle + half) if successes < trials else 1.0)


def quantile(ascending: Sequence[int], p: float) -> int:
    """Return the smallest value that at least the share ``p`` of the sample does not exceed."""
    return ascending[max(0, math.ceil(p * len(ascending) - 1e-9) - 1)]


@cache
def student_t(freedom: int, level: float = LEVEL) -> float:
    """Return the two-sided quantile of Student's t: P(|T| ≤ t) = ``level``."""
    if freedom > 200:  # Abramowitz and Stegun 26.7.5, better than 1e-7 here
        z = NormalDist().inv_cdf((1 + level) / 2)
        return float(z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2))
    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < level else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """Return P(|T| ≤ t) as a finite trigonometric sum (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for power in range(1 + odd, freedom, 2):
        total += term
        term *= cosine * cosine * power / (power + 1)
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
