"""Cost of actions beyond the recording, from a trial's later cycles, with an uncertainty.

A tier repeats its cycle of actions. The first cycle is slower (files are read from disk, caches fill), so it predicts
later cycles only if a trial has no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Self

from costmodel.recording.trial import RecordedTrial
from costmodel.statistics.intervals import Interval

FIRST_CYCLE: Final = (0.7, 1.05)
"""Range of a later cycle's cost as a share of the first. An assumption, from the shipped recordings:
in 16 series of 50 and 150 actions on local, docker runc and gVisor the mean later cycle took 0.71 to 1.00 of the first.
"""


class Continuation(NamedTuple):
    """``extra`` more actions, each at the mean of the same position over the last ``cycles`` whole cycles."""

    extra: int
    cycle: int
    cycles: int

    @classmethod
    def of_trial(cls, recorded: int, extra: int, cycle: int) -> Self:
        """Average the later half of the trial's cycles, without the first unless there is no later cycle.

        A slow sandbox tends to stay slow, so other trials do not contribute.
        """
        cycle = min(cycle, recorded)
        return cls(extra, cycle, later_cycles(recorded, cycle))

    def of(self, column: Sequence[int]) -> int:
        """Return the sum of a continued column in whole ns; 0 for an empty column."""
        if not self.extra or not len(column):
            return 0
        later = column[len(column) - self.cycle * self.cycles :]
        whole, rest = divmod(self.extra, self.cycle)
        total = whole * sum(later)
        if rest:
            total += sum(sum(later[start : start + rest]) for start in range(0, len(later), self.cycle))
        return (2 * total + self.cycles) // (2 * self.cycles)


def later_cycles(recorded: int, cycle: int) -> int:
    """Return the number of averaged cycles: half of the whole cycles, at least one."""
    return max(1, recorded // cycle // 2) if cycle else 1


class Margin(NamedTuple):
    """Distances below and above a quantity, in its unit or as shares of it."""

    less: float
    more: float

    def times(self, factor: float) -> Margin:
        return Margin(self.less * factor, self.more * factor)

    def around(self, interval: Interval) -> Interval:
        """Widen an interval by the margin; no number of trials reduces a margin."""
        if interval.low is None or interval.high is None:
            return interval
        return interval._replace(low=interval.low - self.less, high=interval.high + self.more)


EXACT: Final = Margin(0.0, 0.0)


def later_change(trials: Iterable[RecordedTrial], cycle: int) -> float | None:
    """Return the pooled relative difference between later and earlier cycles; None: no trial has a second cycle.

    The first cycle does not count unless there are only two.
    """
    later = before = 0.0  # mean cycle, summed over trials with two or more
    for trial in trials:
        recorded = len(trial.durations_ns)
        if not trial.ok or cycle < 1 or recorded < 2 * cycle:
            continue
        cycles = later_cycles(recorded, cycle)
        start = recorded - cycles * cycle
        first = cycle if start >= 2 * cycle else start - cycle
        later += _taken(trial, start, recorded) / cycles
        before += _taken(trial, first, start) * cycle / (start - first)
    return abs(later / before - 1) if later and before else None


def extrapolation_margin(trials: Iterable[RecordedTrial], cycle: int) -> Margin:
    """Return the margin of the time beyond the recorded actions, as shares of its estimate."""
    change = later_change(trials, cycle)
    low, high = FIRST_CYCLE if change is None else (max(0.0, 1 - change), 1 + change)
    return Margin(1 - low, high - 1)


def _taken(trial: RecordedTrial, start: int, end: int) -> int:
    return sum(trial.durations_ns[start:end]) + sum(trial.gaps_ns[start:end])
