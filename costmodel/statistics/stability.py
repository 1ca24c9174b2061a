"""Whether trials of a cell are alike in time: drift, autocorrelation, a first trial that differs, two modes.

Each is tested at about 1 % and named with its size; none is corrected for. Values are durations of successful trials
in time order, one list per run, relative to the mean of the run, so that the spread between runs has no effect.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import NormalDist, median
from typing import Final, NamedTuple

from costmodel.statistics.intervals import correlation_time, student_t

LEAST: Final = 10
LEAST_FOR_MODES: Final = 20
TESTED: Final = 0.99
_ONE_SIDED: Final = NormalDist().inv_cdf(TESTED)
OUTLIER_Z: Final = 3.5
UNEXPLAINED: Final = 0.15
"""Largest share of the variance within two modes; a normal distribution has .36, a uniform .25."""
MINORITY: Final = 0.05


class Modes(NamedTuple):
    """Two groups of trials with few or none between them."""

    share: float  # share of the slower group
    ratio: float  # mean of the slower group / mean of the faster group


class Stability(NamedTuple):
    """Results of the tests; None: no effect, or too few trials."""

    drift: float | None = None  # from the start of a run to its end, relative to the mean of the run
    correlation: float | None = None  # of neighbouring trials
    worth: float | None = None  # independent trials that a trial is worth with this correlation
    first: float | None = None  # the first trial of a run, relative to the median of the rest
    modes: Modes | None = None


def stability(series: Sequence[Sequence[float]]) -> Stability:
    """Test the trials of some runs, each in time order."""
    runs = [[value * len(run) / sum(run) - 1 for value in run] for run in series if len(run) >= LEAST and sum(run) > 0]
    if not runs:
        return Stability()
    correlation, worth = _neighbours(runs)
    return Stability(_drift(runs), correlation, worth, _first(runs), _modes([value for run in runs for value in run]))


def _drift(runs: Sequence[Sequence[float]]) -> float | None:
    """Return the least-squares slope over a run with correlated residuals; None: 0 is possible."""
    places = [[(index + 0.5) / len(run) - 0.5 for index in range(len(run))] for run in runs]
    spread = math.fsum(x * x for xs in places for x in xs)
    slope = (
        math.fsum(x * y for xs, run in zip(places, runs, strict=True) for x, y in zip(xs, run, strict=True)) / spread
    )
    residuals = [[y - slope * x for x, y in zip(xs, run, strict=True)] for xs, run in zip(places, runs, strict=True)]
    freedom = sum(map(len, runs)) - len(runs) - 1
    variance = math.fsum(r * r for run in residuals for r in run) / freedom * correlation_time(residuals)
    return slope if abs(slope) > student_t(freedom, TESTED) * math.sqrt(variance / spread) else None


def _neighbours(runs: Sequence[Sequence[float]]) -> tuple[float | None, float | None]:
    power = math.fsum(y * y for run in runs for y in run)
    if not power:
        return None, None
    first = math.fsum(a * b for run in runs for a, b in pairwise(run)) / power
    if first * math.sqrt(sum(map(len, runs))) <= _ONE_SIDED:
        return None, None
    return first, 1 / correlation_time(runs)


def _first(runs: Sequence[Sequence[float]]) -> float | None:
    """Return the median effect if most first trials are outliers to the same side (Iglewicz and Hoaglin 1993)."""
    effects = []
    for run in runs:
        middle = median(run[1:])
        width = median(abs(value - middle) for value in run[1:])
        if abs(run[0] - middle) * 0.6745 > OUTLIER_Z * width:
            effects.append((run[0] - middle) / (1 + middle))
    same = max([e for e in effects if e > 0], [e for e in effects if e < 0], key=len)
    return median(same) if 2 * len(same) > len(runs) else None


def _modes(values: Sequence[float]) -> Modes | None:
    """Return the split with the least variance within both parts; None: too much variance remains."""
    ascending = sorted(values)
    count = len(ascending)
    sums = list(accumulate(ascending, initial=0.0))
    squares = list(accumulate((value * value for value in ascending), initial=0.0))

    def within(start: int, end: int) -> float:
        return squares[end] - squares[start] - (sums[end] - sums[start]) ** 2 / (end - start)

    smallest = max(3, math.ceil(MINORITY * count))
    total = within(0, count)
    if count < LEAST_FOR_MODES or total <= 1e-12:
        return None
    within_both, at = min((within(0, at) + within(at, count), at) for at in range(smallest, count - smallest + 1))
    if within_both > UNEXPLAINED * total:
        return None
    lower, upper = sums[at] / at, (sums[count] - sums[at]) / (count - at)
    return Modes((count - at) / count, (1 + upper) / (1 + lower))
