"""How far the end of N jobs on W workers lies beyond an even share of the work, for laws that differ in their tails.

A closed form that is cheap enough to be asked for several laws of every row. It is not the makespan that is printed,
and need not be: only differences of it between laws are used, where what it leaves out (lockstep) is the same.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist
from typing import Final

KNOTS: Final = 60
"""Of the body of a law, at which its survival is integrated; the highest ``KNOTS`` values are all knots."""
SUMMED: Final = 30
"""Up to so many jobs in excess a Poisson sum is added up; beyond it is normal in its square root."""
PIECES: Final = 24
"""Into which Simpson's rule may cut one straight line."""


class Survival:
    """Durations (ns, ascending) and how likely each is, with what lies beyond any moment; immutable by convention."""

    __slots__ = ("beyond", "doubly", "mean", "second_moment", "values", "weights")

    def __init__(self, values: Sequence[float], weights: Sequence[float]) -> None:
        """The weights are put in proportion; there is at least one value."""
        self.values = values
        whole = math.fsum(weights)
        self.weights = [weight / whole for weight in weights]
        count = len(values)
        self.beyond = [0.0] * count  # P(X > value)
        for index in range(count - 2, -1, -1):
            self.beyond[index] = self.beyond[index + 1] + self.weights[index + 1]
        self.doubly = [(0.0, 0.0)] * count  # ∫ P(X > x) dx from the value on, and the integral of that
        once = twice = 0.0
        for index in range(count - 2, -1, -1):
            width, height = values[index + 1] - values[index], self.beyond[index]
            twice += (once + height * width / 2) * width
            once += height * width
            self.doubly[index] = once, twice
        self.mean, half = self._before_the_first(0.0)[1:]
        self.second_moment = 2 * half

    def at(self, x: float) -> tuple[float, float, float]:
        """P(X > x), E[(X − x)⁺] and E[((X − x)⁺)²] / 2."""
        index = bisect_right(self.values, x) - 1
        if index < 0:
            return self._before_the_first(x)
        if index == len(self.values) - 1:
            return 0.0, 0.0, 0.0
        width, height = self.values[index + 1] - x, self.beyond[index]
        once, twice = self.doubly[index + 1]
        return height, once + height * width, twice + (once + height * width / 2) * width

    def _before_the_first(self, x: float) -> tuple[float, float, float]:
        width = self.values[0] - x
        once, twice = self.doubly[0]
        return 1.0, once + width, twice + (once + width / 2) * width

    def knots(self, *shifts_ns: float) -> list[float]:
        """Moments between which the survival hardly bends, also where it is seen from each of ``shifts_ns`` on."""
        body, top = self.values[:-KNOTS], self.values[-KNOTS:]
        chosen = [*body[:: max(1, len(body) // KNOTS)], *top]
        return sorted({0.0, *(value - shift for shift in shifts_ns for value in chosen if value > shift)})


def overhang(law: Survival, jobs: int, workers: int, excess: int = 0) -> float:
    """E[end of all ``jobs`` but the last ``excess``] − jobs · mean / workers, in ns; the law's mean is above 0.

    With jobs ≤ workers all start at once: Λ(y) = N · P(X > y). Else W start at 0, and W/μ per ns until the last start
    t0, as renewals do once they are out of step, so that Λ(y) = W · [P(X > t0+y) + ∫ P(X > x) dx / μ over y … t0+y]
    jobs outlast t0 + y. (With t0 → ∞ that is W times the equilibrium residual law of Feller, volume II, XI.4; a finite
    t0 admits that no job can have begun before 0.) The number that does is taken as Poisson.
    """
    share = jobs * law.mean / workers
    started = 0.0 if jobs <= workers else _last_start(law, share)

    def outlast(y: float) -> float:
        if jobs <= workers:
            missing = min(1.0, law.at(y)[0])
            return -jobs * math.log1p(-missing) if missing < 1 else math.inf
        late, after, _ = law.at(started + y)
        return workers * (late + (law.at(y)[1] - after) / law.mean)

    end = started
    if jobs <= workers:  # a step function
        for low, high in pairwise([0.0, *law.values]):
            end += (high - low) * _more_than(excess, outlast(low))
        return end - share
    for low, high in pairwise(law.knots(0.0, started)):  # Λ is straight in between, and may jump at the ends
        more, less = outlast((3 * low + high) / 4), outlast((low + 3 * high) / 4)
        end += (high - low) * _mean_between(excess, (3 * more - less) / 2, max(0.0, (3 * less - more) / 2))
    return end - share


def overrun(law: Survival, jobs: int, workers: int, limit_ns: float, chance: float) -> float:
    """E[(end − limit)⁺] in ns, where jobs > workers and the end is beyond the limit with at most ``chance``.

    That it is beyond y is at most as likely as jobs are expected to outlast y; they begin as in ``overhang``.
    """
    started = _last_start(law, jobs * law.mean / workers)

    def outlast(y: float) -> float:
        late, after, _ = law.at(y)
        return min(chance, workers * (late + (law.at(max(0.0, y - started))[1] - after) / law.mean))

    knots = [limit_ns, *(y for y in law.knots(0.0, -started) if y > limit_ns)]
    return math.fsum((high - low) * outlast((low + high) / 2) for low, high in pairwise(knots))


def _last_start(law: Survival, share: float) -> float:
    """t0, where W·t0 and what is then still to be done of jobs that were begun add up to all the work (Wald).

    t0 + E[(X − t0)⁺] + (m₂ − E[((X − t0)⁺)²]) / 2μ = Nμ/W; the left side grows with t0.
    """
    target = share - law.second_moment / (2 * law.mean)
    low, high = 0.0, share
    while high - low > 1e-6 * share:
        middle = (low + high) / 2
        _, once, twice = law.at(middle)
        low, high = (middle, high) if middle + once - twice / law.mean < target else (low, middle)
    return (low + high) / 2


def _mean_between(excess: int, more: float, less: float) -> float:
    """The mean of ``_more_than`` while what is expected falls from ``more`` to ``less`` along a straight line."""
    fall = more - less
    if excess == 0:
        return 1 if less > 700 else 1 - math.exp(-less) * (-math.expm1(-fall) / fall if fall > 1e-9 else 1.0)
    pieces = min(PIECES, 1 + int(fall / math.sqrt(excess)))
    heights = [_more_than(excess, less + fall * step / (2 * pieces)) for step in range(2 * pieces + 1)]
    return (heights[0] + 4 * sum(heights[1::2]) + 2 * sum(heights[2:-1:2]) + heights[-1]) / (6 * pieces)


def _more_than(excess: int, expected: float) -> float:
    """P(a Poisson number > ``excess``)."""
    if excess == 0:
        return -math.expm1(-expected)
    if math.isinf(expected):
        return 1.0
    if excess > SUMMED:
        return NormalDist().cdf(2 * (math.sqrt(expected) - math.sqrt(excess + 1)))
    term = total = math.exp(-expected)
    for number in range(1, excess + 1):
        term *= expected / number
        total += term
    return max(0.0, 1 - total)
