"""Effect of a busy measuring process on a row, by trial.

A second is bad if the runner's loop lagged or the runner was busy: the machine had other work. Each trial has its share
of bad seconds. Exposed and clean trials are compared. Where most trials spent most of their time in bad seconds,
absolute limits decide instead (``runner_health``).
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import NamedTuple

from costmodel.recording.runner_health import DISTURBED_SHARE
from costmodel.recording.trial import RecordedTrial
from costmodel.statistics.intervals import Interval, mean_interval


class Exposure(NamedTuple):
    """A cell's trajectories with and without the trials in bad seconds; means over successes, in ns."""

    exposed: int  # successes with a bad second
    successes: int
    every_ns: Interval
    clean_ns: Interval  # of unexposed successes, or of the less exposed half if larger
    share: float = 0.0  # share of bad seconds in the median success

    @property
    def throughout(self) -> bool:
        """Whether the row was disturbed throughout, without a clean half to compare with."""
        return self.share > DISTURBED_SHARE

    @property
    def difference_ns(self) -> float:
        """Excess of the mean due to exposed trials."""
        return self.every_ns.value - self.clean_ns.value

    @property
    def matters(self) -> bool:
        """Whether the difference exceeds half the width of the mean's interval."""
        low, high = self.every_ns.low, self.every_ns.high
        return low is None or high is None or abs(self.difference_ns) > (high - low) / 2


def exposure(trials: Iterable[RecordedTrial]) -> Exposure | None:
    """Measure the effect of bad seconds; None: no success overlaps a bad second."""
    successes = [trial for trial in trials if trial.ok]
    exposed = sum(trial.exposed > 0 for trial in successes)
    if not exposed:
        return None
    limit = median(trial.exposed for trial in successes)
    every = mean_interval([trial.measures.trajectory_ns for trial in successes])
    clean = mean_interval([trial.measures.trajectory_ns for trial in successes if trial.exposed <= limit])
    return Exposure(exposed, len(successes), every, clean, limit)
