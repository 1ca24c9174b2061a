"""Verdicts about two means: they differ, they tie, or the repetitions are too few."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from costmodel.statistics.intervals import Interval, difference
from costmodel.statistics.pairing import paired_log_ratio
from costmodel.statistics.repetitions import Assumed, Estimate, apart, interval, measures, separate

DIFFERS: Final = "differs"
TIE: Final = "tie"
CANNOT_TELL: Final = "cannot_tell"
UNKNOWN: Final = "unknown"
MOST_APART: Final = 1e3
"""A limit of a ratio farther than this factor from it is no limit."""
CLOSE: Final = 1e-5
MOST_STEPS: Final = 40
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
