"""Distributions estimated from recordings, with intervals: think time and failures.

They describe a workload for a model of training steps. A cluster is the rollouts of a group where groups are known,
else a trial. Intervals are 95 %, over clusters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from itertools import chain
from statistics import NormalDist, stdev
from typing import NamedTuple

from costmodel.recording.trial import RecordedTrial
from costmodel.statistics.intervals import LEVEL, Interval, ratio_interval, wilson_interval
from costmodel.units import NS_PER_HOUR


class ThinkLaw(NamedTuple):
    """Lognormal distribution of idle times above 0 before an action, in s."""

    thinks: int
    trials: int
    median_s: Interval  # exp of the mean logarithm
    sigma: Interval  # standard deviation of the logarithm, without limits
    mean_s: Interval  # of the times, without a model


class CauseRate(NamedTuple):
    """Trials with the same cause of their end."""

    cause: str  # as in costmodel.recording.causes
    trials: int
    share: Interval  # of all counted trials
    per_hour: Interval | None  # per hour of sandbox life; None: unknown
    treatment: str  # retried, kept or dropped


def think_law(
    trials: Sequence[RecordedTrial], of: Callable[[RecordedTrial], Sequence[int]] = lambda trial: trial.thinks_ns
) -> ThinkLaw | None:
    """Fit a lognormal distribution to durations above 0 ns, ``of`` each trial: think time; None without a duration.

    A time of 0 does not count: the first action of a measured trial has no think time.
    """
    above_0 = [[ns for ns in of(trial) if ns > 0] for trial in trials]
    samples = [values for values in above_0 if values]
    if not samples:
        return None
    clusters = [trial.group or index for index, trial in enumerate(trials) if above_0[index]]
    logs, counts = [[math.log(ns / 1e9) for ns in values] for values in samples], list(map(len, samples))
    mean_log = ratio_interval(list(map(math.fsum, logs)), counts, clusters)
    median = Interval(*(None if end is None else math.exp(min(end, 700.0)) for end in mean_log))  # type: ignore[arg-type]
    sigma = stdev(chain.from_iterable(logs)) if sum(counts) > 1 else 0.0
    mean = ratio_interval([sum(values) / 1e9 for values in samples], counts, clusters)
    return ThinkLaw(sum(counts), len(counts), median, Interval(sigma), mean)


def hazard(events: Sequence[int], hours: Sequence[float], clusters: Sequence[Hashable]) -> Interval | None:
    """Return events per hour: the interval of a Poisson count, or of clusters where wider; None without an hour.

    The interval of the count is Wilson and Hilferty's.
    """
    exposure_h, count = math.fsum(hours), sum(events)
    if exposure_h <= 0:
        return None
    z, more = NormalDist().inv_cdf((1 + LEVEL) / 2), count + 1
    low = count * max(0.0, 1 - 1 / (9 * count) - z / (3 * math.sqrt(count))) ** 3 / exposure_h if count else 0.0
    high = more * (1 - 1 / (9 * more) + z / (3 * math.sqrt(more))) ** 3 / exposure_h
    clustered = ratio_interval(events, hours, clusters)
    if count and clustered.low is not None and clustered.high is not None:
        low, high = min(low, max(0.0, clustered.low)), max(high, clustered.high)
    return Interval(count / exposure_h, low, high)


def cause_rates(trials: Sequence[RecordedTrial]) -> tuple[CauseRate, ...]:
    """Return rates by cause, most frequent first, from at least one trial."""
    hours = [max(0, trial.sandbox_ns) / NS_PER_HOUR for trial in trials]
    clusters: list[Hashable] = [trial.group or index for index, trial in enumerate(trials)]
    ends = [(trial.cause, trial.treatment) for trial in trials]
    counts = Counter(end for end in ends if end[0])
    rates = []
    for end, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        per_hour = hazard([int(trial_end == end) for trial_end in ends], hours, clusters)
        rates.append(CauseRate(end[0], count, wilson_interval(count, len(trials)), per_hour, end[1]))
    return tuple(rates)
