"""Duration as a function of concurrency: one curve through the measured levels.

The curve never falls: values that do are pooled with their neighbours (Ayer et al., Ann. Math. Statist. 26, 1955).
Between two levels the curve is linear in both logarithms. Beyond the highest level the value is constant. Up to twice
that level the value has an upper limit; above, the value is a lower limit only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from costmodel.statistics.intervals import Interval, student_t

FARTHEST: Final = 2
"""Largest multiple of the highest level with an upper limit."""


class Level(NamedTuple):
    """A measured mean at one concurrency, with the variance of the mean; 0: unknown."""

    at_a_time: int
    value: float
    variance: float = 0.0


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
