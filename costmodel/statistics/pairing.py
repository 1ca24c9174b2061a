"""Ratios of two means that were measured in the same repetitions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from costmodel.statistics.intervals import MIN_TRIALS, Interval, correlation_time, student_t
from costmodel.statistics.repetitions import Assumed, Estimate, RunPart, between, variance_of_sum


def paired_log_ratio(one: Estimate, other: Estimate, assume: Assumed) -> Interval | None:
    """Return the logarithm of ``one`` / ``other``, measured in the same repetitions, whose slowness cancels.

    They multiply the times of both sides, so they cancel in the logarithm, not in the difference. A repetition spreads
    the trials of each cell evenly, so the k-th share of the trials of both ran in one stretch of it. Within a
    repetition the sample is its stretches, as many as the smaller side has trials. Between repetitions, from two on, it
    is their log ratios (random effects), unless an sd is given. Student's t has the degrees of freedom of both levels.

    None: an amount is not above 0 and has no logarithm.
    """
    theirs = {part.run: part for part in other.parts}
    pairs = [(part, theirs[part.run]) for part in one.parts]
    amounts = [one.value, other.value, *(part.value for pair in pairs for part in pair)]
    if min(amounts) <= 0:
        return None
    value = math.log(one.value / other.value)
    series = [_stretches(mine, yours, mine.share / one.value, yours.share / other.value) for mine, yours in pairs]
    count = sum(map(len, series))
    if count < MIN_TRIALS:
        return Interval(value)
    each = [d for stretches in series for d in stretches]
    half = student_t(count - 1) * math.sqrt(variance_of_sum(each, correlation_time(series)))
    inside = Interval(value, value - half, value + half)
    if len(pairs) < 2 or assume.given:
        return inside
    parts = []
    for mine, yours in pairs:
        share = (mine.share * mine.value / one.value + yours.share * yours.value / other.value) / 2
        own = _stretches(mine, yours, 1 / mine.value, 1 / yours.value)
        variance = variance_of_sum(own, correlation_time([own]))
        parts.append(RunPart(mine.run, share, math.log(mine.value / yours.value), variance, ()))
    tau2 = between([Estimate(value, inside, tuple(parts), 1.0)])
    squares = sum(part.share**2 * part.variance for part in parts), sum(part.share**2 * tau2 for part in parts)
    freedom = _freedom(squares, (count - len(parts), len(parts) - 1))
    half = max(half, student_t(freedom) * math.sqrt(sum(squares)))
    return Interval(value, value - half, value + half)


def _freedom(variances: tuple[float, float], degrees: tuple[int, int]) -> int:
    """Return the degrees of freedom of a sum of ``variances``, rounded down.

    F. E. Satterthwaite, Biometrics Bull. 2, 1946.
    """
    squares = sum(variance**2 / count for variance, count in zip(variances, degrees, strict=True) if variance)
    return max(1, int(sum(variances) ** 2 / squares)) if squares else max(degrees)


def _stretches(mine: RunPart, yours: RunPart, factor: float, other: float) -> list[float]:
    """Return the part of each stretch in the error of the logarithm. A factor makes a deviation relative."""
    count = min(len(mine.deviations), len(yours.deviations))
    ours, theirs = _summed(mine.deviations, count, factor), _summed(yours.deviations, count, other)
    return [a - b for a, b in zip(ours, theirs, strict=True)]


def _summed(deviations: Sequence[float], stretches: int, factor: float) -> list[float]:
    sums = [0.0] * stretches
    for index, deviation in enumerate(deviations):
        sums[index * stretches // len(deviations)] += factor * deviation
    return sums
