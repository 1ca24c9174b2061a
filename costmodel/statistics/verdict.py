"""Verdicts about two means: different, tied, or undecided for lack of repetitions; and the repetitions needed."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from costmodel.statistics import intervals
from costmodel.statistics.intervals import LEVEL, Interval, correlation_time, difference, student_t
from costmodel.statistics.repetitions import (
    MIN_RUNS,
    NORMAL,
    Assumed,
    Estimate,
    RunPart,
    between,
    interval,
    margins,
    measures,
    spread_under_no_change,
    variance_of_sum,
)

DIFFERS: Final = "differs"
TIE: Final = "tie"
CANNOT_TELL: Final = "cannot_tell"
UNKNOWN: Final = "unknown"
POWER: Final = 0.80
"""Probability of detecting the difference."""
MOST_REPETITIONS: Final = 500
_RUNS: Final = {1: "one run", 2: "two runs"}


class Finding(NamedTuple):
    """One of ``DIFFERS``, ``TIE``, ``CANNOT_TELL`` (runs differ too much for so few), ``UNKNOWN`` (no interval)."""

    kind: str
    runs_apart: float | None = None  # 95 % quantile of the relative difference under no change
    runs: tuple[int, int] = (0, 0)

    @property
    def tie(self) -> bool | None:
        return {TIE: True, DIFFERS: False}.get(self.kind)

    @property
    def reason(self) -> str:
        """Return the reason for ``CANNOT_TELL``: ``from one run each (runs differ by ±19 %)``."""
        first, second = (_RUNS.get(count, f"{count} runs") for count in self.runs)
        counts = f"{first} each" if first == second else f"{first} and {second}"
        return f"from {counts} (runs differ by ±{100 * (self.runs_apart or 0.0):.0f} %)"


class Difference(NamedTuple):
    """A difference with its 95 % interval, and the verdict."""

    value: Interval
    verdict: Finding


def judge(first: Estimate, second: Estimate, assume: Assumed) -> Difference:
    """Judge ``first`` − ``second``: by the paired ratio where there is one, else by the between-repetition sd.

    Limits of a paired difference are those of the ratio, less 1, times a limit of ``second``, so that their sign stays.
    Another interval is never narrower than within the runs.
    """
    counts = len(first.parts), len(second.parts)
    if (by := paired_ratio(first, second, assume)) is not None and by.limits is not None:
        size = interval(second, assume)
        upper = second.value if size.high is None else size.high
        lower = size.low if size.low is not None and size.low > 0 else second.value**2 / upper
        low, high = (end - 1 for end in by.limits)
        limits = low * (lower if low > 0 else upper), high * (upper if high > 0 else lower)
        delta = Interval((by.value - 1) * second.value, *limits)
        return Difference(delta, Finding(_decided(delta), None, counts))
    within, outer = difference(first.within, second.within), difference(*margins(first, second, assume))
    delta = within
    if within.limits and outer.limits:
        (low, high), (lowest, highest) = within.limits, outer.limits
        delta = Interval(within.value, min(low, lowest), max(high, highest))
    kind = _decided(delta)
    if kind == TIE and not measures(first, second) and _decided(within) == DIFFERS:
        kind = CANNOT_TELL
    return Difference(delta, Finding(kind, spread_under_no_change(first, second, assume), counts))


def ratio(first: Estimate, second: Estimate, assume: Assumed) -> Interval | None:
    """Return ``first`` / ``second`` with the interval that contains 1 exactly if ``judge`` says tie.

    Without a paired ratio it contains the ratios r at which ``first`` − r·``second`` is a tie (``intervals.ratio``).
    None: ``second`` is not above 0. The upper limit is None where ``second`` may be 0.
    """
    if second.value <= 0:
        return None
    if (paired := paired_ratio(first, second, assume)) is not None:
        return paired
    value = first.value / second.value
    within, outer = (
        intervals.ratio(*sides) for sides in ((first.within, second.within), margins(first, second, assume))
    )
    if within.low is None or outer.low is None:
        return Interval(value)
    high = None if within.high is None or outer.high is None else max(within.high, outer.high)
    return Interval(value, max(0.0, min(within.low, outer.low)), high)


def _decided(delta: Interval) -> str:
    if delta.limits is None:
        return UNKNOWN
    low, high = delta.limits
    return TIE if low <= 0 <= high else DIFFERS


def paired_ratio(first: Estimate, second: Estimate, assume: Assumed) -> Interval | None:
    """Return ``first`` / ``second`` of the same repetitions, whose slowness cancels.

    A slow repetition multiplies the times of both sides, so the factor cancels in the logarithm, not in the difference.
    A repetition spreads the blocks of each cell evenly: the k-th shares of both sides ran in the same stretch. Within a
    repetition the sample is the stretches, one per block of the smaller side: trials of a block share its minutes. From
    two repetitions on, the sample between them is their log ratios (random effects), unless an sd is set. Student's t
    uses both degrees of freedom.

    None: other repetitions, too few stretches or repetitions, or an amount that is not above 0.
    """
    theirs = {part.run: part for part in second.parts}
    if first.runs != second.runs or any(part.value <= 0 for part in (*first.parts, *second.parts)):
        return None
    parts, count = [], 0
    for mine in first.parts:
        yours = theirs[mine.run]
        share = (mine.share * mine.value / first.value + yours.share * yours.value / second.value) / 2
        stretches = _stretches(mine, yours)
        variance = variance_of_sum(stretches, correlation_time([stretches]))
        parts.append(RunPart(mine.run, share, math.log(mine.value / yours.value), variance, ()))
        count += len(stretches)
    degrees = count - len(parts), 0 if assume.by_user else len(parts) - 1
    if max(degrees) < 2 or (assume.by_user and count < 2 * len(parts)):
        return None
    tau2 = between([Estimate(1.0, Interval(1.0), tuple(parts), 1.0)]) if degrees[1] else 0.0
    squares = sum(part.share**2 * part.variance for part in parts), sum(part.share**2 * tau2 for part in parts)
    # F. E. Satterthwaite, Biometrics Bull. 2, 1946:
    fourths = sum(variance**2 / freedom for variance, freedom in zip(squares, degrees, strict=True) if variance)
    freedom = max(1, int(sum(squares) ** 2 / fourths + 1e-9)) if fourths else max(degrees)
    value, factor = first.value / second.value, math.exp(student_t(freedom) * math.sqrt(sum(squares)))
    return Interval(value, value / factor, value * factor)


def _stretches(mine: RunPart, yours: RunPart) -> list[float]:
    """Return the part of each stretch in the error of the logarithm of the ratio."""
    count = min(len(mine.deviations), len(yours.deviations))
    sums = [0.0] * count
    for part, sign in ((mine, 1), (yours, -1)):
        for index, deviation in enumerate(part.deviations):
            sums[index * count // len(part.deviations)] += sign * deviation / part.value
    return sums


def repetitions_needed(
    change: Interval, sides: tuple[int, int], difference: float, *, measured: bool, level: float = LEVEL
) -> int | None:
    """Return the number of repetitions per side that detect a true ``difference`` with probability ``POWER``.

    The standard error shrinks with the square root of the repetitions, all with as many trials as those of ``sides``.
    ``measured``: the limits of ``change`` are Student's t, else normal. ``level`` is the level of the future interval.
    None: more than ``MOST_REPETITIONS``, or no limits.

    J. Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, chapter 2.
    """
    if change.low is None or change.high is None or difference <= 0:
        return None
    quantile = student_t(sum(sides) - 2) if measured else NORMAL
    sd = (change.high - change.low) / (2 * quantile) / math.sqrt(sum(1 / count for count in sides))
    for count in range(MIN_RUNS, MOST_REPETITIONS + 1):
        freedom = 2 * count - 2
        if (student_t(freedom, level) + student_t(freedom, 2 * POWER - 1)) * sd * math.sqrt(2 / count) <= difference:
            return count
    return None
