"""How long something takes that several do at a time: one curve through the levels that were measured.

Between levels it is monotone: values that fall where they must not are pooled with their neighbours (Ayer et al., Ann.
Math. Statist. 26, 1955), and it is linear in both logarithms from one level to the next. Beyond the highest level the
value stays that level's. Up to twice as many it has an upper limit; above that the value is a lower limit only.

The universal scalability law (N. J. Gunther, Guerrilla Capacity Planning, 2007) describes levels that were measured. It
is never used beyond them: it takes a limit that was reached for a slowdown that grows without end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Final, NamedTuple, Self

from costmodel.statistics.intervals import Interval, student_t

MIN_LEVELS: Final = 4
"""With fewer the scalability law is not fitted."""
FARTHEST: Final = 2
"""An upper limit is given for at most this many times the highest level."""


class Level(NamedTuple):
    """What was measured with so many at a time; the variance of the mean, 0 where it is not known."""

    at_a_time: int
    value: float
    variance: float = 0.0


class Fit(NamedTuple):
    """One choice of the parameters that are not 0, by weighted least squares."""

    used: tuple[int, ...]
    parameters: tuple[float, ...]  # of those
    off: float  # the weighted sum of squares that is left


class Scalability(NamedTuple):
    """h(n) = a + b·(n − 1) + c·n·(n − 1): alone, waiting for each other, keeping each other informed; none negative.

    With throughput n / h(n) it is Gunther's law: σ = b / a and κ = c / a. It describes the levels that it was fitted
    to: these seldom tell b from c, of which each extrapolates otherwise.
    """

    parameters: tuple[float, float, float]

    @classmethod
    def of(cls, levels: Sequence[Level]) -> Self:
        """Fitted to four levels or more."""
        sums = _Sums.of(levels, _weights(levels))
        choices = (used for size in (3, 2, 1) for used in combinations(range(3), size))
        fits = [fit for used in choices if (fit := sums.fitted(used)) is not None]
        best = min(fits, key=lambda fit: fit.off)  # the constant alone is never negative, so that there is one
        values = dict(zip(best.used, best.parameters, strict=True))
        return cls((values.get(0, 0.0), values.get(1, 0.0), values.get(2, 0.0)))


class LevelCurve(NamedTuple):
    """One curve through levels, ascending and of different numbers at a time."""

    levels: tuple[Level, ...]  # made monotone

    @classmethod
    def of(cls, levels: Sequence[Level]) -> Self:
        """Through one level or more."""
        return cls(_rising(sorted(levels)))

    @property
    def last(self) -> int:
        """The highest level."""
        return self.levels[-1].at_a_time

    def beyond(self, at_a_time: int) -> float:
        """How many times the highest level that is; 1 where it is none the higher."""
        return max(1.0, at_a_time / self.last)

    def at(self, at_a_time: int) -> Interval:
        """With so many at a time.

        Between levels the limits are the neighbours', all that a curve is sure of that never falls; their own sampling
        comes on top where it is known.
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
        """The highest level's value, and the upper limit that a bottleneck just above that level gives.

        Behind a bottleneck time grows in proportion to the concurrency; faster only if it already did before.
        """
        last, times = self.levels[-1], at_a_time / self.last
        off = student_t(1_000) * math.sqrt(last.variance)
        if times > FARTHEST:
            return Interval(last.value, max(0.0, last.value - off), None)
        return Interval(last.value, max(0.0, last.value - off), (last.value + off) * times ** max(1.0, self._slope()))

    def _slope(self) -> float:
        """Of the logarithms, between the two highest levels; 0 with one level."""
        if len(self.levels) < 2 or not self.levels[-2].value:
            return 0.0
        before, last = self.levels[-2:]
        return math.log(last.value / before.value) / math.log(last.at_a_time / before.at_a_time)


def _between(one: float, other: float, share: float) -> float:
    """Linear in the logarithm; linear where one of them has none."""
    return one ** (1 - share) * other**share if one > 0 and other > 0 else (1 - share) * one + share * other


def _rising(levels: Sequence[Level]) -> tuple[Level, ...]:
    """Neighbours that fall are given their common mean, weighted by what they are worth."""
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
    """By variances where all are known, else so that relative errors count."""
    if all(level.variance > 0 for level in levels):
        return [1 / level.variance for level in levels]
    return [1 / level.value**2 if level.value else 1.0 for level in levels]


def _basis(at_a_time: int) -> tuple[float, float, float]:
    return 1.0, at_a_time - 1.0, at_a_time * (at_a_time - 1.0)


class _Sums(NamedTuple):
    """What every choice of parameters has in common: each sum over the levels is made once."""

    points: list[tuple[tuple[float, float, float], float, float]]  # basis, value, weight
    normal: list[list[float]]
    right: list[float]

    @classmethod
    def of(cls, levels: Sequence[Level], weights: Sequence[float]) -> Self:
        """Of all three parameters."""
        points = [(_basis(level.at_a_time), level.value, w) for level, w in zip(levels, weights, strict=True)]
        normal = [[math.fsum([w * row[i] * row[j] for row, _, w in points]) for j in range(3)] for i in range(3)]
        right = [math.fsum([w * row[i] * value for row, value, w in points]) for i in range(3)]
        return cls(points, normal, right)

    def fitted(self, used: tuple[int, ...]) -> Fit | None:
        """None where a parameter is negative, or the levels do not tell them apart."""
        inverse = _inverse([[self.normal[i][j] for j in used] for i in used])
        if inverse is None:
            return None
        right = [self.right[i] for i in used]
        parameters = tuple(_dot(row, right) for row in inverse)
        if min(parameters) < 0:
            return None
        return Fit(used, parameters, math.fsum(self._squares(used, parameters)))

    def _squares(self, used: tuple[int, ...], parameters: tuple[float, ...]) -> list[float]:
        """Weighted, of what is left at each level; written out, as this is what a bootstrap takes longest for."""
        if len(used) == 3:
            a, b, c = parameters
            sums = math.fsum
            return [w * (value - sums((a * x, b * y, c * z))) ** 2 for (x, y, z), value, w in self.points]
        if len(used) == 2:
            (i, j), (a, b) = used, parameters
            return [w * (value - (a * row[i] + b * row[j])) ** 2 for row, value, w in self.points]
        (i,), (a,) = used, parameters
        return [w * (value - a * row[i]) ** 2 for row, value, w in self.points]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(x * y for x, y in zip(one, other, strict=True))


def _inverse(matrix: Sequence[Sequence[float]]) -> list[list[float]] | None:
    """Gauss and Jordan with pivots, on a matrix brought to a diagonal of 1 first; None where it is singular."""
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
        for other in range(size):
            if other != column and (factor := rows[other][column]):
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[column], strict=True)]
    return [[rows[i][size + j] * scale[i] * scale[j] for j in range(size)] for i in range(size)]
