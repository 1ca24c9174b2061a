"""Laws estimated from recordings, with intervals: think time, lengths, failures, and what rollouts of a group share.

They are what a model of a training step needs to know of somebody's workload. A cluster is what was drawn as one: the
rollouts of a group where groups are told, else a trial. Intervals are 95 % and nothing is resampled: a statistic of
clusters is judged by leaving out one after the other (the jackknife: Efron and Stein, Ann. Statist. 9, 1981) on a
scale on which it is about normal, with Student's quantile for the number of clusters less one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from statistics import NormalDist
from typing import Final, NamedTuple, Self

from costmodel.recording.trial import RecordedTrial
from costmodel.statistics.intervals import (
    LEVEL,
    MIN_CLUSTERS,
    Interval,
    mean_interval,
    ratio_interval,
    student_t,
    wilson_interval,
)
from costmodel.units import NS_PER_HOUR

MAX_LOG: Final = 700.0
"""Where the exponential ends."""
MIN_GROUPS: Final = 5
"""With fewer groups of two or more nothing is said about what their members share."""
STARTING: Final = frozenset({"create", "reset", "ready"})
"""A failure in one of these is one of the attempt to start; later ones are the running sandbox's."""
AFTERWARDS: Final = frozenset({"verify", "cleanup"})
"""A failure in one of these is not the trajectory's."""


class ThinkLaw(NamedTuple):
    """A lognormal law of the idle time before an action, in s, from those that were above 0."""

    thinks: int
    trials: int
    median_s: Interval  # exp of the mean logarithm
    sigma: Interval  # standard deviation of the logarithm
    mean_s: Interval  # of the times themselves, whatever their law
    distance: float  # Kolmogorov's: the largest difference between the sample's distribution and the law's


class LengthLaw(NamedTuple):
    """How many actions trajectories have. A failed one is known to be longer than it became: it is censored.

    The quantiles are those of Kaplan and Meier (J. Amer. Statist. Assoc. 53, 1958), None where too much was cut off to
    know them; the mean is that of the trials that succeeded, and too small where long ones fail more.
    """

    trials: int  # that succeeded
    censored: int
    mean: Interval
    p50: int | None
    p95: int | None
    shortest: int
    longest: int


class FailureLaw(NamedTuple):
    """How often a start fails, and how often a running sandbox does per hour that it runs.

    A start: Wilson's interval. The hazard: the exact one of a Poisson count (Garwood, Biometrika 28, 1936), widened to
    the clustered one where that is wider.
    """

    attempts: int
    starts_failed: int
    per_start: Interval
    failures: int  # of running sandboxes
    exposure_h: float  # that all trials' sandboxes ran, in hours
    per_hour: Interval | None  # None: none ran
    errors: tuple[tuple[str, int], ...]  # classes of all failures, the most frequent first


class Shared(NamedTuple):
    """How much of a quantity's variance lies between groups: 0 nothing, 1 all of it (the intraclass correlation).

    One-way analysis of variance with groups of unequal size (Donner, Int. Statist. Rev. 54, 1986), the interval on
    Fisher's scale. Below 0: members of a group differ more than strangers, as chance or a fixed budget makes them.
    """

    quantity: str
    groups: int  # with two members or more
    trials: int
    correlation: Interval


class Laws(NamedTuple):
    """What a cell's trials tell; None or empty where they do not."""

    think: ThinkLaw | None
    length: LengthLaw | None
    failures: FailureLaw
    shared: tuple[Shared, ...]


def laws(trials: Sequence[RecordedTrial]) -> Laws:
    """All laws of a cell's counted trials, of which there is at least one."""
    return Laws(think_law(trials), length_law(trials), failure_law(trials), shared(trials))


def think_law(trials: Sequence[RecordedTrial]) -> ThinkLaw | None:
    """The law of think times, from the actions of all trials; None where nobody thought.

    A time of 0 is no thought: the first action of a measured trial comes without one.
    """
    by_cluster: dict[Hashable, list[float]] = {}
    counts, totals_s, clusters = [], [], []
    for index, trial in enumerate(trials):
        own = [math.log(ns / 1e9) for ns in trial.thinks_ns if ns > 0]
        if not own:
            continue
        cluster = trial.group or index
        by_cluster.setdefault(cluster, []).extend(own)
        counts.append(len(own))
        totals_s.append(sum(trial.thinks_ns) / 1e9)
        clusters.append(cluster)
    if not counts:
        return None
    logs = [log for own in by_cluster.values() for log in own]
    parts = [_Sums.of(own) for own in by_cluster.values()]
    median = jackknife(parts, _mean, math.exp)
    sigma = jackknife(parts, _log_sd, math.exp) if len(logs) > 1 else Interval(0.0)
    mean = ratio_interval(totals_s, counts, clusters)
    return ThinkLaw(len(logs), len(counts), median, sigma, mean, _distance(logs, math.log(median.value), sigma.value))


def lognormal(values: Sequence[float]) -> tuple[float, float]:
    """Median and sigma of the lognormal law of a sample, by its logarithms; the values are above 0, one or more."""
    sums = _Sums.of([math.log(value) for value in values])
    return math.exp(_mean(sums)), math.exp(_log_sd(sums))


def length_law(trials: Sequence[RecordedTrial]) -> LengthLaw | None:
    """The law of lengths; None where no trial succeeded."""
    ended = [len(trial.durations_ns) for trial in trials if trial.ok]
    if not ended:
        return None
    cut = [len(trial.durations_ns) for trial in trials if not trial.ok]
    clusters = [trial.group or index for index, trial in enumerate(trials) if trial.ok]
    p50, p95 = kaplan_meier(ended, cut, (0.5, 0.95))
    return LengthLaw(len(ended), len(cut), mean_interval(ended, clusters), p50, p95, min(ended), max(ended))


def failure_law(trials: Sequence[RecordedTrial]) -> FailureLaw:
    """How starts and running sandboxes fail; there is at least one trial."""
    failed = [trial for trial in trials if not trial.ok]
    starts_failed = sum(trial.failed_in in STARTING for trial in failed)
    events = [int(not trial.ok and trial.failed_in not in STARTING | AFTERWARDS) for trial in trials]
    hours = [trial.sandbox_ns / NS_PER_HOUR for trial in trials]
    exposure_h, count = math.fsum(hours), sum(events)
    per_hour = None
    if exposure_h > 0:
        low, high = poisson_interval(count)
        per_hour = Interval(count / exposure_h, low / exposure_h, high / exposure_h)
        clustered = ratio_interval(events, hours, [trial.group or index for index, trial in enumerate(trials)])
        if count and clustered.low is not None and clustered.high is not None:
            low, high = min(low / exposure_h, max(0.0, clustered.low)), max(high / exposure_h, clustered.high)
            per_hour = Interval(per_hour.value, low, high)
    errors = Counter(trial.error or "unknown" for trial in failed)
    return FailureLaw(
        attempts=len(trials),
        starts_failed=starts_failed,
        per_start=wilson_interval(starts_failed, len(trials)),
        failures=count,
        exposure_h=exposure_h,
        per_hour=per_hour,
        errors=tuple(sorted(errors.items(), key=lambda item: (-item[1], item[0]))),
    )


def shared(trials: Sequence[RecordedTrial]) -> tuple[Shared, ...]:
    """What rollouts of one group share, in the trials that name a group; empty where too few groups have two."""
    grouped = [trial for trial in trials if trial.group]
    found = [correlation(name, [(trial.group, of(trial)) for trial in grouped]) for name, of in _SHARED.items()]
    return tuple(one for one in found if one is not None)


def correlation(quantity: str, values: Iterable[tuple[Hashable, float | None]]) -> Shared | None:
    """The intraclass correlation of a quantity by group; None where fewer than five groups have two values.

    None too where no two values differ.
    """
    groups: dict[Hashable, list[float]] = {}
    for group, value in values:
        if value is not None:
            groups.setdefault(group, []).append(value)
    parts = [_Sums.of(own) for own in groups.values() if len(own) > 1]
    if len(parts) < MIN_GROUPS or len({value for own in groups.values() for value in own}) < 2:
        return None
    whole = _Sums.over(parts)
    size = whole.common_size

    def back(half_log_ratio: float) -> float:
        ratio = math.exp(min(2 * half_log_ratio, MAX_LOG))
        return (ratio - 1) / (ratio + size - 1)

    # Fisher's z of an intraclass correlation is half the logarithm of the ratio of the two mean squares.
    return Shared(quantity, whole.clusters, whole.size, jackknife(parts, _half_log_ratio, back))


def _mean_log(trial: RecordedTrial, column: Sequence[int]) -> float | None:
    logs = [math.log(ns) for ns in column if ns > 0]
    return math.fsum(logs) / len(logs) if trial.ok and logs else None


_SHARED: Final[dict[str, Callable[[RecordedTrial], float | None]]] = {
    "think": lambda trial: _mean_log(trial, trial.thinks_ns),
    "command": lambda trial: _mean_log(trial, trial.durations_ns),
    "length": lambda trial: math.log(len(trial.durations_ns)) if trial.ok and trial.durations_ns else None,
    "failure": lambda trial: float(not trial.ok),
}
"""Quantity → its value of a trial: mean logarithms of times, the logarithm of the length, whether it failed."""


class _Sums(NamedTuple):
    """What a statistic of clusters needs to know of some of them; sums, so that one can be left out in no time."""

    clusters: int
    size: int  # values
    size_squares: float
    total: float
    squares: float
    mean_squares: float  # Σ (a cluster's total)² / (its count)

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """One cluster, of one value or more."""
        count, total = len(values), math.fsum(values)
        return cls(1, count, float(count * count), total, math.fsum(x * x for x in values), total * total / count)

    @classmethod
    def over(cls, parts: Iterable[_Sums]) -> Self:
        """All of them together."""
        clusters, size, *sums = (list(column) for column in zip(*parts, strict=True))
        return cls(sum(clusters), sum(size), *map(math.fsum, sums))

    def without(self, part: _Sums) -> _Sums:
        """All but one."""
        return _Sums(*(one - other for one, other in zip(self, part, strict=True)))  # type: ignore[arg-type]

    @property
    def common_size(self) -> float:
        """The size of clusters of equal size that would tell as much (Donner's n₀)."""
        return (self.size - self.size_squares / self.size) / (self.clusters - 1)


def _mean(sums: _Sums) -> float:
    return sums.total / sums.size


def _log_sd(sums: _Sums) -> float:
    squares = sums.squares - sums.total**2 / sums.size
    return math.log(max(squares, 0.0) / (sums.size - 1)) / 2 if squares > 0 and sums.size > 1 else -math.inf


def _half_log_ratio(sums: _Sums) -> float:
    """Of the mean square between clusters to that within them."""
    between = (sums.mean_squares - sums.total**2 / sums.size) / (sums.clusters - 1)
    within = (sums.squares - sums.mean_squares) / (sums.size - sums.clusters)
    if within <= 0 or between <= 0:
        return math.inf if between > 0 else -math.inf
    return math.log(between / within) / 2


def jackknife(parts: Sequence[_Sums], statistic: Callable[[_Sums], float], back: Callable[[float], float]) -> Interval:
    """``back(statistic)`` with its interval from leaving out one cluster after the other.

    Without one where there are fewer than three clusters, or where a statistic without one of them is not finite.
    """
    whole = _Sums.over(parts)
    value = statistic(whole)
    if len(parts) < MIN_CLUSTERS:
        return Interval(back(value))
    left = [statistic(whole.without(part)) for part in parts]
    if not all(map(math.isfinite, (value, *left))):
        return Interval(back(value))
    middle = math.fsum(left) / len(left)
    error = math.sqrt((len(left) - 1) / len(left) * math.fsum((one - middle) ** 2 for one in left))
    half = student_t(len(left) - 1) * error
    return Interval(back(value), back(value - half), back(value + half))


def kaplan_meier(ended: Sequence[int], cut: Sequence[int], shares: Sequence[float]) -> list[int | None]:
    """For each share the smallest length that at least so many do not exceed; None where too many were cut off before.

    ``ended`` are whole lengths, ``cut`` those of trajectories that went on beyond.
    """
    ends, gone = Counter(ended), Counter(cut)
    at_risk, survival = len(ended) + len(cut), 1.0
    found: list[int | None] = [None] * len(shares)
    for length in sorted(ends.keys() | gone.keys()):
        survival *= 1 - ends[length] / at_risk
        at_risk -= ends[length] + gone[length]
        for place, share in enumerate(shares):
            if found[place] is None and 1 - survival >= share - 1e-9:
                found[place] = length
    return found


def poisson_interval(count: int) -> tuple[float, float]:
    """The exact interval of a Poisson mean of which ``count`` were seen; beyond 200 by Wilson and Hilferty's cube."""
    tail = (1 - LEVEL) / 2
    if count > 200:
        z = NormalDist().inv_cdf(1 - tail)
        more = count + 1
        low = count * (1 - 1 / (9 * count) - z / (3 * math.sqrt(count))) ** 3
        return low, more * (1 - 1 / (9 * more) + z / (3 * math.sqrt(more))) ** 3
    low = _solved(lambda mean: 1 - _poisson(count - 1, mean), tail) if count else 0.0
    return low, _solved(lambda mean: 1 - _poisson(count, mean), 1 - tail)


def _poisson(count: int, mean: float) -> float:
    """P(at most ``count``)."""
    return math.fsum(math.exp(i * math.log(mean) - mean - math.lgamma(i + 1)) for i in range(count + 1))


def _solved(rising: Callable[[float], float], wanted: float) -> float:
    low, high = 1e-12, 400.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < wanted else (low, middle)
    return high


def _distance(logs: list[float], mean: float, sigma: float) -> float:
    """Kolmogorov's distance between a sample of logarithms and the normal law; 0 where that is one point."""
    if sigma <= 0:
        return 0.0
    law, count = NormalDist(mean, sigma).cdf, len(logs)
    heights = [law(x) for x in sorted(logs)]
    return max(max((i + 1) / count - height, height - i / count) for i, height in enumerate(heights))
