"""What a trial's actions beyond its recorded ones are taken to cost: what its later cycles cost, and how sure that is.

A tier repeats its cycle of actions. The first time round is dearer than the others (files are read from disk, caches
fill), so no later cycle is predicted from it unless it is the only one there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Self

from costmodel.recording.trial import RecordedTrial
from costmodel.statistics.intervals import Interval

FIRST_CYCLE: Final = (0.7, 1.05)
"""What later cycles may cost of the first, where only that was recorded. An assumption, from the recordings that ship:
in 16 series of 50 and 150 actions on local, docker runc and gVisor the mean later cycle took 0.71 to 1.00 of the first.
"""


class Continuation(NamedTuple):
    """``extra`` more actions, each at the mean of the last ``cycles`` whole cycles at its place in the cycle."""

    extra: int
    cycle: int
    cycles: int

    @classmethod
    def of_trial(cls, recorded: int, extra: int, cycle: int) -> Self:
        """From the later half of the cycles, never the first unless it is the only one; its own and no other trial's.

        A sandbox that started slowly tends to go on slowly, and that stays in the sample.
        """
        cycle = min(cycle, recorded)
        return cls(extra, cycle, later_cycles(recorded, cycle))

    def of(self, column: Sequence[int]) -> int:
        """The sum that a column of the trial's actions is continued with, rounded to a whole ns; 0 of an empty one."""
        if not self.extra or not len(column):
            return 0
        later = column[len(column) - self.cycle * self.cycles :]
        whole, rest = divmod(self.extra, self.cycle)
        total = whole * sum(later)
        if rest:
            total += sum(sum(later[start : start + rest]) for start in range(0, len(later), self.cycle))
        return (2 * total + self.cycles) // (2 * self.cycles)


def later_cycles(recorded: int, cycle: int) -> int:
    """How many cycles are averaged: half of the whole ones, and one at least."""
    return max(1, recorded // cycle // 2) if cycle else 1


class Margin(NamedTuple):
    """By how much less, and how much more, a quantity may be than it is taken to be; in its unit."""

    less: float
    more: float

    def around(self, interval: Interval) -> Interval:
        """Added to both ends: no number of trials of that length could tell it."""
        if interval.low is None or interval.high is None:
            return interval
        return interval._replace(low=interval.low - self.less, high=interval.high + self.more)


EXACT: Final = Margin(0.0, 0.0)


class Doubt(NamedTuple):
    """What the actions beyond the recorded ones may take, as shares of what they are taken to take."""

    low: float
    high: float
    first_only: bool  # no trial has a second cycle, so FIRST_CYCLE was assumed

    def of(self, continued: float) -> Margin:
        """Of what the actions beyond the recorded ones are taken to take."""
        return Margin((1 - self.low) * continued, (self.high - 1) * continued)


def doubt(trials: Iterable[RecordedTrial], cycle: int) -> Doubt:
    """By what the later cycles differ from those before them, pooled over successes: they may go on to, either way.

    The first cycle is left out of that unless there are only two.
    """
    later = before = 0.0  # of one cycle, summed over the trials that have two
    for trial in trials:
        recorded = len(trial.durations_ns)
        if not trial.ok or cycle < 1 or recorded < 2 * cycle:
            continue
        cycles = later_cycles(recorded, cycle)
        start = recorded - cycles * cycle
        first = cycle if start >= 2 * cycle else start - cycle
        later += _taken(trial, start, recorded) / cycles
        before += _taken(trial, first, start) * cycle / (start - first)
    if not later or not before:
        return Doubt(*FIRST_CYCLE, first_only=True)
    change = abs(later / before - 1)
    return Doubt(max(0.0, 1 - change), 1 + change, first_only=False)


def _taken(trial: RecordedTrial, start: int, end: int) -> int:
    return sum(trial.durations_ns[start:end]) + sum(trial.gaps_ns[start:end])
