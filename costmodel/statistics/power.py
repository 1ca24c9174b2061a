"""How many repetitions it takes to see a difference."""

from __future__ import annotations

import math
from typing import Final

from costmodel.statistics.intervals import Interval, student_t
from costmodel.statistics.repetitions import MIN_RUNS, NORMAL

POWER: Final = 0.80
"""Probability with which the difference is to be found."""
MOST_REPETITIONS: Final = 500


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
