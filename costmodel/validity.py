"""Whether the measuring process got between a row and the truth: by trial, and only as far as it shows in the row.

A second in which the runner's loop lagged, or in which it was busy, marks a machine that had other things to do. Each
trial has its own share of such seconds; what they do to a cell is what its trials say.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from costmodel.recording import RecordedTrial
from costmodel.uncertainty import Interval, mean_interval


class Exposure(NamedTuple):
    """A cell's trajectories with and without the trials in bad seconds; means over successes, in ns."""

    exposed: int  # successes that overlap a bad second
    successes: int
    every_ns: Interval
    clean_ns: Interval  # of those not exposed; where they are the fewer, of the less exposed half

    @property
    def difference_ns(self) -> float:
        """What the exposed trials add to the mean."""
        return self.every_ns.value - self.clean_ns.value

    @property
    def matters(self) -> bool:
        """Whether that is more than the row claims to resolve: half the width of its mean's interval."""
        low, high = self.every_ns.low, self.every_ns.high
        return low is None or high is None or abs(self.difference_ns) > (high - low) / 2


def exposure(trials: Sequence[RecordedTrial]) -> Exposure | None:
    """What bad seconds do to a cell; None where no success overlaps one."""
    good = [trial for trial in trials if trial.ok]
    exposed = sum(trial.exposed > 0 for trial in good)
    if not exposed:
        return None
    limit = median(trial.exposed for trial in good)
    every, clean = (
        mean_interval([trial.measures.trajectory_ns for trial in some])
        for some in (good, [trial for trial in good if trial.exposed <= limit])
    )
    return Exposure(exposed, len(good), every, clean)
