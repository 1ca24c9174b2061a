"""Whether the measuring process got between a row and the truth: by trial, and only as far as it shows in the row.

A second in which the runner's loop lagged, or in which it was busy, marks a machine that had other things to do. Each
trial has its own share of such seconds; what they do to a cell is what its trials say. Where most trials spent most of
their time in such seconds, no comparison of trials can say it: absolute limits (``fitness``) do.
"""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from costmodel.recording.runner_health import DISTURBED_SHARE
from costmodel.recording.trial import TrialColumns
from costmodel.statistics.intervals import Interval, mean_interval
from costmodel.workload.attempts import Sample


class Exposure(NamedTuple):
    """A cell's trajectories with and without the trials in bad seconds; means over successes, in ns."""

    exposed: int  # successes that overlap a bad second
    successes: int
    every_ns: Interval
    clean_ns: Interval  # of those not exposed; where they are the fewer, of the less exposed half
    share: float = 0.0  # of its time that the median success spent in bad seconds

    @property
    def throughout(self) -> bool:
        """Whether the row was disturbed throughout: no clean half is left to compare with."""
        return self.share > DISTURBED_SHARE

    @property
    def difference_ns(self) -> float:
        """What the exposed trials add to the mean."""
        return self.every_ns.value - self.clean_ns.value

    @property
    def matters(self) -> bool:
        """Whether that is more than the row claims to resolve: half the width of its mean's interval."""
        low, high = self.every_ns.low, self.every_ns.high
        return low is None or high is None or abs(self.difference_ns) > (high - low) / 2


def exposure(trials: TrialColumns) -> Exposure | None:
    """What bad seconds do to a cell; None where no success overlaps one."""
    if not any(trials.exposed):
        return None
    shares = [share for share, ok in zip(trials.exposed, trials.ok, strict=True) if ok]
    exposed = sum(share > 0 for share in shares)
    if not exposed:
        return None
    limit = median(shares)
    good = [ns for ns, ok in zip(Sample.recorded(trials, None).trajectory_ns, trials.ok, strict=True) if ok]
    every, clean = (
        mean_interval(some) for some in (good, [ns for ns, share in zip(good, shares, strict=True) if share <= limit])
    )
    return Exposure(exposed, len(good), every, clean, limit)
