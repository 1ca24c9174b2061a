"""Verdicts about two means: they differ, they tie, or the repetitions are too few."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from costmodel.statistics.intervals import MIN_TRIALS, Interval, correlation_time, difference, student_t
from costmodel.statistics.repetitions import (
    MIN_RUNS,
    NORMAL,
    Assumed,
    Estimate,
    RunPart,
    apart,
    between,
    interval,
    measures,
    separate,
    variance_of_sum,
)

DIFFERS: Final = "differs"
TIE: Final = "tie"
CANNOT_TELL: Final = "cannot_tell"
UNKNOWN: Final = "unknown"
MOST_APART: Final = 1e3
"""A limit of a ratio farther than this factor from it is no limit."""
CLOSE: Final = 1e-5
MOST_STEPS: Final = 40
POWER: Final = 0.80
"""Probability with which the difference is to be found."""
MOST_REPETITIONS: Final = 500
_RUNS: Final = {1: "one run", 2: "two runs"}


class Finding(NamedTuple):
    """One of ``DIFFERS``, ``TIE``, ``CANNOT_TELL`` (runs differ too much for so few), ``UNKNOWN`` (no interval)."""

    kind: str
    seen: float | None = None  # the relative change
    runs_apart: float | None = None  # how far such means lie apart in 95 % of all cases though nothing has changed
    runs: tuple[int, int] = (0, 0)
    together: bool = False  # measured in the same runs, so that what both shared cancels

    @property
    def tie(self) -> bool | None:
        """True and False where that can be said."""
        return {TIE: True, DIFFERS: False}.get(self.kind)

    @property
    def words(self) -> str:
        """``cannot tell from one run each (seen +11 %, runs differ by ±19 %)``; empty where nothing is known."""
        if self.kind != CANNOT_TELL:
            return "" if self.kind == UNKNOWN else self.kind
        runs, _, apart = self.reason.partition(" (")
        return f"cannot tell {runs} ({'' if self.seen is None else f'seen {100 * self.seen:+.0f} %, '}{apart}"

    @property
    def reason(self) -> str:
        """Return the reason for ``CANNOT_TELL``: ``from one run each (runs differ by ±19 %)``."""
        one, other = (_RUNS.get(count, f"{count} runs") for count in self.runs)
        each = f"{one} each" if one == other else f"{one} and {other}"
        return f"from {each} (runs differ by ±{100 * (self.runs_apart or 0.0):.0f} %)"


class Difference(NamedTuple):
    """A difference with its 95 % interval, and the verdict."""

    value: Interval
    verdict: Finding


def judge(one: Estimate, other: Estimate, assume: Assumed) -> Difference:
    """Judge ``one`` − ``other``: of the same repetitions by their ratio, else with the between-repetition sd."""
    if one.runs == other.runs:
        return _together(one, other, assume)
    delta = separate(one, other, assume)
    return Difference(delta, across(delta, difference(one.within, other.within), one, other, assume))


def _together(one: Estimate, other: Estimate, assume: Assumed) -> Difference:
    """Judge two means of the same repetitions by their paired ratio.

    Limits of the difference are the limits of the ratio, less 1, times a limit of ``other``, so that their sign stays.
    """
    value, by = one.value - other.value, ratio(one, other, assume)
    counts = (len(one.parts), len(other.parts))
    seen = None if by is None else by.value - 1
    if by is None or by.low is None or by.high is None:
        return Difference(Interval(value), Finding(UNKNOWN, seen, None, counts, together=True))
    size = interval(other, assume)
    most = other.value if size.high is None else size.high
    least = size.low if size.low is not None and size.low > 0 else other.value**2 / most
    low, high = by.low - 1, by.high - 1
    delta = Interval(value, low * (least if low > 0 else most), high * (most if high > 0 else least))
    return Difference(delta, Finding(_decided(Interval(by.value - 1, low, high)), seen, None, counts, together=True))


def ratio(one: Estimate, other: Estimate, assume: Assumed) -> Interval | None:
    """``one`` / ``other`` with the interval that ``judge`` decides by: 1 is inside exactly where that says tie.

    In the same runs the interval is that of the logarithm, paired. Else the ratios r at which ``one`` − r·``other`` is
    a tie: Fieller's construction (E. C. Fieller, J. R. Statist. Soc. B 16, 1954). None where ``other`` is not above 0;
    a limit that no ratio reaches is None.
    """
    if other.value <= 0:
        return None
    value = one.value / other.value
    if one.runs == other.runs:
        found = paired_log_ratio(one, other, assume)
        if found is None or found.low is None or found.high is None:
            return Interval(value)
        return Interval(value, math.exp(found.low), math.exp(found.high))
    at_value = separate(one, other.scaled(value), assume) if value else Interval(0.0)
    if at_value.low is None or at_value.high is None:
        return Interval(value)

    def low_end(at: float) -> float:
        return separate(one, other.scaled(at), assume).low or 0.0

    def high_end(at: float) -> float:
        return separate(one, other.scaled(at), assume).high or 0.0

    near, far = value + at_value.low / other.value, value + at_value.high / other.value  # the limits, to first order
    low = _crossing(low_end, value, max(near, value / MOST_APART))
    high = _crossing(high_end, value, far)
    return Interval(value, 0.0 if low is None else low, high)


def _crossing(end: Callable[[float], float], value: float, guess: float) -> float | None:
    """Return the factor at which a limit crosses 0, searched from ``value``; None: it never does."""
    here = end(value)
    if not here:
        return value
    there = end(guess)
    while here * there > 0:
        guess = value + 2 * (guess - value) if guess > value else guess / 2
        if not value / MOST_APART <= guess <= value * MOST_APART:
            return None
        there = end(guess)
    for _ in range(MOST_STEPS):  # regula falsi, Illinois: the end that stays counts half
        between = guess - there * (guess - value) / (there - here)
        if abs(between - guess) <= CLOSE * between:
            return between
        found = end(between)
        if found * there > 0:
            here /= 2
        else:
            value, here = guess, there
        guess, there = between, found
    return guess


def across(delta: Interval, within: Interval, one: Estimate, other: Estimate, assume: Assumed) -> Finding:
    """Judge a difference of other repetitions: ``delta`` includes how much repetitions differ, ``within`` does not."""
    kind = _decided(delta)
    if kind == TIE and not measures(one, other) and _decided(within) == DIFFERS:
        kind = CANNOT_TELL
    seen = delta.value / other.value if other.value else None
    return Finding(kind, seen, apart(one, other, assume), (len(one.parts), len(other.parts)))


def _decided(delta: Interval) -> str:
    if delta.low is None or delta.high is None:
        return UNKNOWN
    return TIE if delta.low <= 0 <= delta.high else DIFFERS


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


def repetitions_needed(change: Interval, sides: tuple[int, int], difference: float, *, measured: bool) -> int | None:
    """Return the number of repetitions a side at which a true ``difference`` is found with probability ``POWER``.

    The standard error shrinks with the square root of the repetitions, all with as many trials as those of ``sides``.
    ``measured``: the limits of ``change`` are Student's t, else normal. None: more than ``MOST_REPETITIONS``, or no
    limits. J. Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, chapter 2.
    """
    if change.low is None or change.high is None or difference <= 0:
        return None
    quantile = student_t(sum(sides) - 2) if measured else NORMAL
    sd = (change.high - change.low) / (2 * quantile) / math.sqrt(sum(1 / count for count in sides))
    for count in range(MIN_RUNS, MOST_REPETITIONS + 1):
        freedom = 2 * count - 2
        if (student_t(freedom) + student_t(freedom, 2 * POWER - 1)) * sd * math.sqrt(2 / count) <= difference:
            return count
    return None
