"""Duration as a function of concurrency: one curve through the measured levels.

The curve never falls: values that do are pooled with their neighbours (Ayer et al., Ann. Math. Statist. 26, 1955).
Between two levels the curve is linear in both logarithms. Beyond the highest level the value is constant. Up to twice
that level the value has an upper limit; above, the value is a lower limit only.

The universal scalability law (N. J. Gunther, Guerrilla Capacity Planning, 2007) describes measured levels only.
Beyond them the law would mistake a saturated resource for a slowdown without end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Final, NamedTuple, Self

from costmodel.statistics.intervals import Interval, student_t

MIN_LEVELS: Final = 4
"""Smallest number of levels for a fit of the scalability law."""
FARTHEST: Final = 2
"""Largest multiple of the highest level with an upper limit."""


class Level(NamedTuple):
    """A measured mean at one concurrency, with the variance of the mean; 0: unknown."""

    at_a_time: int
    value: float
    variance: float = 0.0


class Fit(NamedTuple):
    """A weighted least-squares fit of the parameters that are not 0."""

    used: tuple[int, ...]
    parameters: tuple[float, ...]  # in the order of ``used``
    off: float  # weighted sum of squared residuals


class Scalability(NamedTuple):
    """h(n) = a + b·(n − 1) + c·n·(n − 1): service time, contention and coherence; none is negative.

    The throughput n / h(n) is Gunther's law with σ = b / a and κ = c / a. The fit describes the measured levels only:
    levels seldom separate b from c, and b and c extrapolate differently.
    """

    parameters: tuple[float, float, float]

    @classmethod
    def of(cls, levels: Sequence[Level]) -> Self:
        """Fit four levels or more."""
        sums = _Sums.of(levels, _weights(levels))
        choices = (used for size in (3, 2, 1) for used in combinations(range(3), size))
        fits = [fit for used in choices if (fit := sums.fitted(used)) is not None]
        best = min(fits, key=lambda fit: fit.off)  # the constant alone is never negative, so a fit exists
        values = dict(zip(best.used, best.parameters, strict=True))
        return cls((values.get(0, 0.0), values.get(1, 0.0), values.get(2, 0.0)))


class LevelCurve(NamedTuple):
    """A curve through ascending levels of different concurrency."""

    levels: tuple[Level, ...]  # made monotone

    @classmethod
    def of(cls, levels: Sequence[Level]) -> Self:
        return cls(_rising(sorted(levels)))

    @property
    def last(self) -> int:
        return self.levels[-1].at_a_time

    def beyond(self, at_a_time: int) -> float:
        """Return the multiple of the highest level, or 1 up to that level."""
        return max(1.0, at_a_time / self.last)

    def at(self, at_a_time: int) -> Interval:
        """Return the value at a concurrency.

        Between levels the limits are the values of the neighbours, the only bounds of a curve that never falls; their
        sampling error is added where known.
        """
        if at_a_time > self.last:
            return self._further(at_a_time)
        below = max((level for level in self.levels if level.at_a_time <= at_a_time), default=self.levels[0])
        above = min(level for level in self.levels if level.at_a_time >= min(at_a_time, self.last))
        value = below.value
        if above.at_a_time > below.at_a_time:
            share = math.log(at_a_time / below.at_a_time) / math.log(above.at_a_time / below.at_a_time)
            value = _between(below.value, above.value, share)
        low, high = (student_t(1_000) * math.sqrt(level.variance) for level in (below, above))
        return Interval(value, max(0.0, below.value - low), above.value + high)

    def _further(self, at_a_time: int) -> Interval:
        """Return the value of the highest level, and the upper limit of a bottleneck just above that level.

        Behind a bottleneck time grows in proportion to the concurrency, or faster if it already did before.
        """
        last, times = self.levels[-1], at_a_time / self.last
        off = student_t(1_000) * math.sqrt(last.variance)
        if times > FARTHEST:
            return Interval(last.value, max(0.0, last.value - off), None)
        return Interval(last.value, max(0.0, last.value - off), (last.value + off) * times ** max(1.0, self._slope()))

    def _slope(self) -> float:
        if len(self.levels) < 2 or not self.levels[-2].value:
            return 0.0
        before, last = self.levels[-2:]
        return math.log(last.value / before.value) / math.log(last.at_a_time / before.at_a_time)


def _between(first: float, second: float, share: float) -> float:
    """Interpolate the logarithm, or the value where a logarithm does not exist."""
    return first ** (1 - share) * second**share if first > 0 and second > 0 else (1 - share) * first + share * second


def _rising(levels: Sequence[Level]) -> tuple[Level, ...]:
    """Replace falling neighbours by their weighted mean."""
    blocks: list[list[tuple[Level, float]]] = []
    for level, weight in zip(levels, _weights(levels), strict=True):
        blocks.append([(level, weight)])
        while len(blocks) > 1 and _mean(blocks[-2]) > _mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    return tuple(
        level if len(block) == 1 else level._replace(value=_mean(block)) for block in blocks for level, _ in block
    )


def _mean(block: Sequence[tuple[Level, float]]) -> float:
    return math.fsum(weight * level.value for level, weight in block) / math.fsum(weight for _, weight in block)


def _weights(levels: Sequence[Level]) -> list[float]:
    """Return inverse variances where all are known, else weights for relative errors."""
    if all(level.variance > 0 for level in levels):
        return [1 / level.variance for level in levels]
    return [1 / level.value**2 if level.value else 1.0 for level in levels]


def _basis(at_a_time: int) -> tuple[float, float, float]:
    return 1.0, at_a_time - 1.0, at_a_time * (at_a_time - 1.0)


class _Sums(NamedTuple):
    """Sums over the levels that all choices of parameters share."""

    points: list[tuple[tuple[float, float, float], float, float]]  # basis, value, weight
    normal: list[list[float]]
    right: list[float]

    @classmethod
    def of(cls, levels: Sequence[Level], weights: Sequence[float]) -> Self:
        points = [(_basis(level.at_a_time), level.value, w) for level, w in zip(levels, weights, strict=True)]
        normal = [[math.fsum([w * row[i] * row[j] for row, _, w in points]) for j in range(3)] for i in range(3)]
        right = [math.fsum([w * row[i] * value for row, value, w in points]) for i in range(3)]
        return cls(points, normal, right)

    def fitted(self, used: tuple[int, ...]) -> Fit | None:
        """Return a fit; None if a parameter is negative, or the levels do not separate the parameters."""
        inverse = _inverse([[self.normal[i][j] for j in used] for i in used])
        if inverse is None:
            return None
        right = [self.right[i] for i in used]
        parameters = tuple(_dot(row, right) for row in inverse)
        if min(parameters) < 0:
            return None
        return Fit(used, parameters, math.fsum(self._squares(used, parameters)))

    def _squares(self, used: tuple[int, ...], parameters: tuple[float, ...]) -> list[float]:
        """Return the weighted squared residuals; unrolled, because a bootstrap spends most of its time here."""
        if len(used) == 3:
            a, b, c = parameters
            sums = math.fsum
            return [w * (value - sums((a * x, b * y, c * z))) ** 2 for (x, y, z), value, w in self.points]
        if len(used) == 2:
            (i, j), (a, b) = used, parameters
            return [w * (value - (a * row[i] + b * row[j])) ** 2 for row, value, w in self.points]
        (i,), (a,) = used, parameters
        return [w * (value - a * row[i]) ** 2 for row, value, w in self.points]


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return math.fsum(x * y for x, y in zip(left, right, strict=True))


def _inverse(matrix: Sequence[Sequence[float]]) -> list[list[float]] | None:
    """Invert by Gauss-Jordan elimination with pivots after scaling the diagonal to 1; None: singular."""
    size = len(matrix)
    scale = [1 / math.sqrt(matrix[i][i]) if matrix[i][i] > 0 else 0.0 for i in range(size)]
    if not all(scale):
        return None
    rows = [
        [matrix[i][j] * scale[i] * scale[j] for j in range(size)] + [float(i == j) for j in range(size)]
        for i in range(size)
    ]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        if abs(rows[pivot][column]) < 1e-12:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        head = rows[column][column]
        rows[column] = [value / head for value in rows[column]]
        for target in range(size):
            if target != column and (factor := rows[target][column]):
                rows[target] = [a - factor * b for a, b in zip(rows[target], rows[column], strict=True)]
    return [[rows[i][size + j] * scale[i] * scale[j] for j in range(size)] for i in range(size)]
