"""Distributions estimated from recordings, with intervals: think time, lengths, failures, correlation within groups.

They describe a workload for a model of training steps. A cluster is the rollouts of a group where groups are known,
else a trial. Intervals are 95 % and nothing is resampled: a statistic of
clusters is judged by leaving out one after the other (the jackknife: Efron and Stein, Ann. Statist. 9, 1981) on a
scale on which it is about normal, with Student's quantile for the number of clusters less one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from statistics import NormalDist
from typing import Final, NamedTuple, Self

from costmodel.recording.causes import KEPT, policy_of
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
"""Largest argument of ``exp``."""
MIN_GROUPS: Final = 5
"""Groups of two or more needed for an intraclass correlation."""
STARTING: Final = frozenset({"create", "reset", "ready"})
"""Phases of a start; a later failure belongs to the running sandbox."""
AFTERWARDS: Final = frozenset({"verify", "cleanup", "snapshot", "fork", "build"})
"""Phases after the trajectory: their failures do not count."""


class ThinkLaw(NamedTuple):
    """Lognormal distribution of idle times above 0 before an action, in s."""

    thinks: int
    trials: int
    median_s: Interval  # exp of the mean logarithm
    sigma: Interval  # standard deviation of the logarithm
    mean_s: Interval  # of the times, without a model
    distance: float  # Kolmogorov's distance between sample and model


class LengthLaw(NamedTuple):
    """Number of actions per trajectory. A failed trajectory is censored: the full length is unknown.

    The quantiles are those of Kaplan and Meier (J. Amer. Statist. Assoc. 53, 1958), None with too much
    censoring. The mean is over successes, and too small if long trajectories fail more often.
    """

    trials: int  # successes
    censored: int
    mean: Interval
    p50: int | None
    p95: int | None
    shortest: int
    longest: int


class FailureLaw(NamedTuple):
    """Failure rate of starts, and failures of running sandboxes per hour.

    Starts have Wilson's interval. The hazard: the exact interval of a Poisson count (Garwood, Biometrika 28, 1936), or
    the clustered interval where wider.
    """

    attempts: int
    starts_failed: int
    per_start: Interval
    failures: int  # of running sandboxes
    exposure_h: float  # total running time of the sandboxes
    per_hour: Interval | None  # None: no running time
    errors: tuple[tuple[str, int], ...]  # classes of failures, most frequent first


class CauseRate(NamedTuple):
    """Trials with the same cause of their end."""

    cause: str  # as in costmodel.recording.causes
    trials: int
    share: Interval  # of all counted trials
    per_hour: Interval | None  # per hour of sandbox life; None: unknown
    treatment: str  # retried, kept or dropped


class Shared(NamedTuple):
    """Intraclass correlation of a quantity: the share of its variance between groups.

    One-way analysis of variance with groups of unequal size (Donner, Int. Statist. Rev. 54, 1986), the interval on
    Fisher's scale. Below 0: members differ more than non-members, by chance or because of a fixed budget.
    """

    quantity: str
    groups: int  # with two members or more
    trials: int
    correlation: Interval


class Laws(NamedTuple):
    """Distributions of a cell; None or empty: unknown."""

    think: ThinkLaw | None
    length: LengthLaw | None
    failures: FailureLaw
    shared: tuple[Shared, ...]


def laws(trials: Sequence[RecordedTrial]) -> Laws:
    """Estimate all distributions of counted trials, at least one."""
    return Laws(think_law(trials), length_law(trials), failure_law(trials), shared(trials))


def think_law(trials: Sequence[RecordedTrial]) -> ThinkLaw | None:
    """Estimate think time from the actions of all trials; None without think time.

    A time of 0 does not count: the first action of a measured trial has no think time.
    """
    return duration_law(trials, lambda trial: trial.thinks_ns)


def duration_law(trials: Sequence[RecordedTrial], of: Callable[[RecordedTrial], Sequence[int]]) -> ThinkLaw | None:
    """Fit a lognormal distribution to durations above 0 ns, ``of`` each trial; None without a duration."""
    by_cluster: dict[Hashable, list[float]] = {}
    counts, totals_s, clusters = [], [], []
    for index, trial in enumerate(trials):
        values = of(trial)
        logs_of_trial = [math.log(ns / 1e9) for ns in values if ns > 0]
        if not logs_of_trial:
            continue
        cluster = trial.group or index
        by_cluster.setdefault(cluster, []).extend(logs_of_trial)
        counts.append(len(logs_of_trial))
        totals_s.append(sum(values) / 1e9)
        clusters.append(cluster)
    if not counts:
        return None
    logs = [log for logs_of_trial in by_cluster.values() for log in logs_of_trial]
    parts = [_Sums.of(logs_of_trial) for logs_of_trial in by_cluster.values()]
    median = jackknife(parts, _mean, math.exp)
    sigma = jackknife(parts, _log_sd, math.exp) if len(logs) > 1 else Interval(0.0)
    mean = ratio_interval(totals_s, counts, clusters)
    return ThinkLaw(len(logs), len(counts), median, sigma, mean, _distance(logs, math.log(median.value), sigma.value))


def lognormal(values: Sequence[float]) -> tuple[float, float]:
    """Return median and sigma of a lognormal fit to values above 0, at least one."""
    sums = _Sums.of([math.log(value) for value in values])
    return math.exp(_mean(sums)), math.exp(_log_sd(sums))


def length_law(trials: Sequence[RecordedTrial]) -> LengthLaw | None:
    """Estimate lengths; None without a success."""
    ended = [len(trial.durations_ns) for trial in trials if trial.ok]
    if not ended:
        return None
    cut = [len(trial.durations_ns) for trial in trials if not trial.ok]
    clusters = [trial.group or index for index, trial in enumerate(trials) if trial.ok]
    p50, p95 = kaplan_meier(ended, cut, (0.5, 0.95))
    return LengthLaw(len(ended), len(cut), mean_interval(ended, clusters), p50, p95, min(ended), max(ended))


def failure_law(trials: Sequence[RecordedTrial]) -> FailureLaw:
    """Estimate failures of starts and of running sandboxes, from at least one trial."""
    failed = [trial for trial in trials if not trial.ok]
    starts_failed = sum(trial.failed_in in STARTING for trial in failed)
    events = [int(not trial.ok and trial.failed_in not in STARTING | AFTERWARDS) for trial in trials]
    hours = [trial.sandbox_ns / NS_PER_HOUR for trial in trials]
    exposure_h, count = math.fsum(hours), sum(events)
    per_hour = hazard(events, hours, [trial.group or index for index, trial in enumerate(trials)])
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


def hazard(events: Sequence[int], hours: Sequence[float], clusters: Sequence[Hashable]) -> Interval | None:
    """Return events per hour: Garwood's exact interval, or the clustered interval where wider; None without an hour."""
    exposure_h, count = math.fsum(hours), sum(events)
    if exposure_h <= 0:
        return None
    low, high = (end / exposure_h for end in poisson_interval(count))
    clustered = ratio_interval(events, hours, clusters)
    if count and clustered.low is not None and clustered.high is not None:
        low, high = min(low, max(0.0, clustered.low)), max(high, clustered.high)
    return Interval(count / exposure_h, low, high)


def cause_rates(trials: Sequence[RecordedTrial]) -> tuple[CauseRate, ...]:
    """Return rates by cause, most frequent first, from at least one trial."""
    hours = [max(0, trial.sandbox_ns) / NS_PER_HOUR for trial in trials]
    clusters: list[Hashable] = [trial.group or index for index, trial in enumerate(trials)]
    causes = Counter((trial.cause, _treatment(trial)) for trial in trials if trial.cause)
    rates = []
    for (cause, treatment), count in sorted(causes.items(), key=lambda item: (-item[1], item[0])):
        events = [int((trial.cause, _treatment(trial)) == (cause, treatment)) for trial in trials]
        rates.append(
            CauseRate(cause, count, wilson_interval(count, len(trials)), hazard(events, hours, clusters), treatment)
        )
    return tuple(rates)


def _treatment(trial: RecordedTrial) -> str:
    return KEPT if trial.ok else policy_of(trial.cause, trial.error).treatment if trial.cause else ""


def shared(trials: Sequence[RecordedTrial]) -> tuple[Shared, ...]:
    """Return correlations within groups; empty with too few groups of two or more."""
    grouped = [trial for trial in trials if trial.group]
    correlations = [correlation(name, [(trial.group, of(trial)) for trial in grouped]) for name, of in _SHARED.items()]
    return tuple(quantity for quantity in correlations if quantity is not None)


def correlation(quantity: str, values: Iterable[tuple[Hashable, float | None]]) -> Shared | None:
    """Return the intraclass correlation of a quantity by group.

    None: fewer than five groups have two values, or all values are equal.
    """
    groups: dict[Hashable, list[float]] = {}
    for group, value in values:
        if value is not None:
            groups.setdefault(group, []).append(value)
    parts = [_Sums.of(group_values) for group_values in groups.values() if len(group_values) > 1]
    if len(parts) < MIN_GROUPS or len({value for group_values in groups.values() for value in group_values}) < 2:
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
"""Quantity → value of a trial: mean logarithm of times, logarithm of the length, or failure (1, 0)."""


class _Sums(NamedTuple):
    """Sums over clusters; removing a cluster takes constant time."""

    clusters: int
    size: int  # values
    size_squares: float
    total: float
    squares: float
    mean_squares: float  # Σ over clusters of total² / count

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        count, total = len(values), math.fsum(values)
        return cls(1, count, float(count * count), total, math.fsum(x * x for x in values), total * total / count)

    @classmethod
    def over(cls, parts: Iterable[_Sums]) -> Self:
        clusters, size, *sums = (list(column) for column in zip(*parts, strict=True))
        return cls(sum(clusters), sum(size), *map(math.fsum, sums))

    def without(self, part: _Sums) -> _Sums:
        return _Sums(*(total - removed for total, removed in zip(self, part, strict=True)))  # type: ignore[arg-type]

    @property
    def common_size(self) -> float:
        """Size of equal clusters with the same information (Donner's n₀)."""
        return (self.size - self.size_squares / self.size) / (self.clusters - 1)


def _mean(sums: _Sums) -> float:
    return sums.total / sums.size


def _log_sd(sums: _Sums) -> float:
    squares = sums.squares - sums.total**2 / sums.size
    return math.log(max(squares, 0.0) / (sums.size - 1)) / 2 if squares > 0 and sums.size > 1 else -math.inf


def _half_log_ratio(sums: _Sums) -> float:
    """Return half the logarithm of the mean squares' ratio, between clusters to within."""
    between = (sums.mean_squares - sums.total**2 / sums.size) / (sums.clusters - 1)
    within = (sums.squares - sums.mean_squares) / (sums.size - sums.clusters)
    if within <= 0 or between <= 0:
        return math.inf if between > 0 else -math.inf
    return math.log(between / within) / 2


def jackknife(parts: Sequence[_Sums], statistic: Callable[[_Sums], float], back: Callable[[float], float]) -> Interval:
    """Return ``back(statistic)`` with the interval of the jackknife over clusters.

    No interval with fewer than three clusters, or if a partial statistic is not finite.
    """
    whole = _Sums.over(parts)
    value = statistic(whole)
    if len(parts) < MIN_CLUSTERS:
        return Interval(back(value))
    partial = [statistic(whole.without(part)) for part in parts]
    if not all(map(math.isfinite, (value, *partial))):
        return Interval(back(value))
    middle = math.fsum(partial) / len(partial)
    error = math.sqrt((len(partial) - 1) / len(partial) * math.fsum((part - middle) ** 2 for part in partial))
    half = student_t(len(partial) - 1) * error
    return Interval(back(value), back(value - half), back(value + half))


def kaplan_meier(ended: Sequence[int], cut: Sequence[int], shares: Sequence[float]) -> list[int | None]:
    """Return for each share the smallest length that at least this share does not exceed; None: censored.

    ``ended`` are complete lengths, ``cut`` are censored ones.
    """
    ends, gone = Counter(ended), Counter(cut)
    at_risk, survival = len(ended) + len(cut), 1.0
    quantiles: list[int | None] = [None] * len(shares)
    for length in sorted(ends.keys() | gone.keys()):
        survival *= 1 - ends[length] / at_risk
        at_risk -= ends[length] + gone[length]
        for place, share in enumerate(shares):
            if quantiles[place] is None and 1 - survival >= share - 1e-9:
                quantiles[place] = length
    return quantiles


def poisson_interval(count: int) -> tuple[float, float]:
    """Return the exact interval of a Poisson mean for an observed count; beyond 200 by Wilson and Hilferty."""
    tail = (1 - LEVEL) / 2
    if count > 200:
        z = NormalDist().inv_cdf(1 - tail)
        more = count + 1
        low = count * (1 - 1 / (9 * count) - z / (3 * math.sqrt(count))) ** 3
        return low, more * (1 - 1 / (9 * more) + z / (3 * math.sqrt(more))) ** 3
    low = _solved(lambda mean: 1 - _poisson(count - 1, mean), tail) if count else 0.0
    return low, _solved(lambda mean: 1 - _poisson(count, mean), 1 - tail)


def _poisson(count: int, mean: float) -> float:
    """Return P(X ≤ ``count``)."""
    return math.fsum(math.exp(i * math.log(mean) - mean - math.lgamma(i + 1)) for i in range(count + 1))


def _solved(rising: Callable[[float], float], wanted: float) -> float:
    low, high = 1e-12, 400.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < wanted else (low, middle)
    return high


def _distance(logs: list[float], mean: float, sigma: float) -> float:
    """Return Kolmogorov's distance between logarithms and a normal distribution; 0 for a single point."""
    if sigma <= 0:
        return 0.0
    law, count = NormalDist(mean, sigma).cdf, len(logs)
    heights = [law(x) for x in sorted(logs)]
    return max(max((i + 1) / count - height, height - i / count) for i, height in enumerate(heights))
