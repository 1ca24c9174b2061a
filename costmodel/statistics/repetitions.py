"""Intervals of means over trials of a few repetitions (random effects).

Neighbouring trials of a repetition share the state of the machine, so a sample is worth fewer independent trials than
it has. Each repetition has a state of its own. Three or more show how much repetitions differ; fewer do not, and an sd
between repetitions is assumed.
"""

from __future__ import annotations

import datetime
import math
from array import array
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from operator import mul
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Final, NamedTuple

import msgspec

from costmodel.statistics.intervals import LEVEL, Interval, correlation_time, ratio_interval, student_t
from costmodel.toml import Document, Text

MIN_RUNS: Final = 3
"""With fewer runs the sd between runs is assumed, not measured."""
NORMAL: Final = NormalDist().inv_cdf((1 + LEVEL) / 2)
EXCESS: Final = 1e-12
"""Squares this close to their degrees of freedom equal them."""
LEAST_TAU2: Final = 1e-12
"""A smaller τ² is 0 where a run has no variance of its own: such a run would have an infinite weight."""


class RunKey(NamedTuple):
    """One repetition of a recording."""

    run_id: str
    repetition: int


Origin = tuple[RunKey, int]
"""The run and the block of a trial."""


class Assumed(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """A relative sd between repetitions, not measured here. 0: intervals cover these repetitions only."""

    sd: Annotated[float, msgspec.Meta(ge=0, le=1)]
    source: Text
    by_user: bool = False  # replaces the sd that three or more repetitions show


WITHIN_ONLY: Final = Assumed(0.0, "left out", by_user=True)


def assumed(substrate: str, run_sd: float | None = None) -> Assumed:
    """Return ``run_sd`` where it is set, else the sd of a substrate in run_spread.toml."""
    if run_sd is not None:
        return Assumed(run_sd, "given", by_user=True)
    shipped = _shipped()
    spread = shipped.substrates.get(substrate, shipped.default)
    return Assumed(spread.sd, f"{spread.source}; {shipped.date}")


class ShippedSpreads(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of run_spread.toml."""

    date: datetime.date
    default: Assumed
    substrates: dict[str, Assumed]


@cache
def _shipped() -> ShippedSpreads:
    return Document(Path(__file__).parent / "run_spread.toml").convert(ShippedSpreads)


class Basis(NamedTuple):
    """Source of the part of an interval between repetitions."""

    runs: int
    sd: float  # between repetitions, relative to the mean
    measured: bool  # from these repetitions; else assumed
    source: str


class RunPart(NamedTuple):
    """The ratio of sums of one run."""

    run: RunKey
    share: float  # share of the denominators
    value: float  # the run's own ratio
    variance: float  # variance of ``value`` within the run
    deviations: Sequence[float]  # part of each block in the error of ``value``, in time order; the sum is 0


class Estimate(NamedTuple):
    """Σ numerators / Σ denominators over trials, with a part for each repetition."""

    value: float
    within: Interval  # interval without variation between repetitions
    parts: tuple[RunPart, ...]
    moving: float  # amount that the state of a repetition can change: all but intended idle time

    @property
    def runs(self) -> frozenset[RunKey]:
        return frozenset(part.run for part in self.parts)

    def scaled(self, factor: float) -> Estimate:
        """Convert to another unit."""
        parts = tuple(
            part._replace(
                value=part.value * factor,
                variance=part.variance * factor**2,
                deviations=array("d", [d * factor for d in part.deviations]),
            )
            for part in self.parts
        )
        return Estimate(self.value * factor, self.within.times(factor), parts, self.moving * factor)


def estimate(
    numerators: Sequence[float], denominators: Sequence[float], origins: Sequence[Origin], idle: float = 0.0
) -> Estimate:
    """Return a ratio of sums over trials in time order; ``idle`` is the part that no run can change.

    Σ denominators must be above 0. A run without a denominator has no ratio and no part.
    """
    total = sum(denominators)
    value = sum(numerators) / total
    by_run: defaultdict[RunKey, list[tuple[int, float, float]]] = defaultdict(list)
    for (run, block), upper, lower in zip(origins, numerators, denominators, strict=True):
        by_run[run].append((block, upper, lower))
    parts, residuals = [], []
    for run, trials in by_run.items():
        run_total = sum(lower for *_, lower in trials)
        if not run_total:
            continue
        ratio = sum(upper for _, upper, _ in trials) / run_total
        deviations = array("d", [(upper - ratio * lower) / run_total for _, upper, lower in trials])
        variance = variance_of_sum(deviations, correlation_time([deviations]))
        blocks: defaultdict[int, float] = defaultdict(float)
        for (block, *_), deviation in zip(trials, deviations, strict=True):
            blocks[block] += deviation
        parts.append(RunPart(run, run_total / total, ratio, variance, array("d", blocks.values())))
        residuals.append(deviations)
    within = ratio_interval(numerators, denominators, origins)
    if within.low is not None and within.high is not None:  # widen it to correlated trials
        factor = math.sqrt(correlation_time(residuals))
        within = Interval(value, value - factor * (value - within.low), value + factor * (within.high - value))
    return Estimate(value, within, tuple(parts), abs(value - idle))


def variance_of_sum(deviations: Sequence[float], correlation: float) -> float:
    """Return the variance of a sum of deviations; ``correlation`` neighbours are worth one."""
    count = len(deviations)
    if count < 2:
        return 0.0  # unknown: becomes part of the variance between runs
    return float(count / (count - 1) * math.fsum(map(mul, deviations, deviations)) * correlation)


def basis(mean: Estimate, assume: Assumed) -> Basis:
    """Return the source of the between-run part of the interval."""
    sd, quantile = _spread([mean], assume)
    measured = quantile is not None
    return Basis(len(mean.parts), sd, measured, source="measured" if measured else assume.source)


def _spread(sides: Sequence[Estimate], assume: Assumed) -> tuple[float, float | None]:
    """Return the relative sd between runs, common to all sides, with Student's quantile if a side measures the sd."""
    if assume.by_user or max(len(side.parts) for side in sides) < MIN_RUNS:
        return assume.sd, None
    return math.sqrt(between(sides)), student_t(sum(len(side.parts) - 1 for side in sides))


def interval(mean: Estimate, assume: Assumed) -> Interval:
    """Return the 95 % interval of a printed value: within the runs and between them.

    From three runs on: Student's t with runs − 1 degrees of freedom on the random-effects variance, τ² by Paule and
    Mandel (1982), which is Hartung and Knapp's interval with their factor held at 1 or above (Röver, Knapp and Friede,
    BMC Med. Res. Methodol. 15:99, 2015), here for the mean over all trials, for runs of any size. Otherwise the
    interval within the run, and a run effect that is lognormal with the assumed sd; the two distances to each limit
    add in squares (Zou and Donner 2008). The result is never narrower than the interval within the runs.
    """
    within, outer = mean.within.limits, _outer(mean, *_spread([mean], assume)).limits
    if within is None or outer is None:
        return mean.within
    return Interval(mean.value, min(within[0], outer[0]), max(within[1], outer[1]))


def _outer(mean: Estimate, sd: float, quantile: float | None) -> Interval:
    """Return the interval by a measured relative ``sd`` between runs; without ``quantile`` the sd is assumed."""
    value, within = mean.value, mean.within
    if quantile is not None:
        squares = (sd * mean.moving) ** 2 * sum(part.share**2 for part in mean.parts)
        half = quantile * math.sqrt(squares + sum(part.share**2 * part.variance for part in mean.parts))
        return Interval(value, value - half, value + half)
    if within.low is None or within.high is None:
        return within
    factor = math.exp(NORMAL * sd * math.sqrt(sum(part.share**2 for part in mean.parts)))
    below, above = mean.moving * (1 - 1 / factor), mean.moving * (factor - 1)
    low, high = math.hypot(value - within.low, below), math.hypot(within.high - value, above)
    return Interval(value, value - low, value + high)


def between(groups: Sequence[Estimate]) -> float:
    """τ²: the variance between runs relative to the mean, common to all groups, by Paule and Mandel's moments.

    The τ² at which the weighted squares of the runs' means about their group's equal their degrees of freedom; 0 where
    the variance within runs already explains them. R. C. Paule and J. Mandel, J. Res. NBS 87(5), 1982.
    """
    relative = [
        [(part.value / group_mean.moving, part.variance / group_mean.moving**2) for part in group_mean.parts]
        for group_mean in groups
        if group_mean.moving
    ]
    freedom = sum(len(group) - 1 for group in relative)
    if freedom < 1:
        return 0.0
    start = tau2 = 0.0 if all(variance for group in relative for _, variance in group) else LEAST_TAU2
    # The squares are convex and fall as τ² grows, so that Newton's steps from below never pass the root.
    total, fall = _squares(relative, tau2)
    while total > freedom * (1 + EXCESS):
        tau2 += (total - freedom) / fall
        total, fall = _squares(relative, tau2)
    return tau2 if tau2 > start else 0.0


def _squares(groups: Sequence[Sequence[tuple[float, float]]], tau2: float) -> tuple[float, float]:
    """Return the weighted squares of runs' means about their group's mean, and their decrease for a unit of τ²."""
    total, fall = 0.0, 0.0
    for group in groups:
        weights = [1 / (variance + tau2) for _, variance in group]
        middle = sum([w * value for w, (value, _) in zip(weights, group, strict=True)]) / sum(weights)
        parts = [w * (value - middle) ** 2 for w, (value, _) in zip(weights, group, strict=True)]
        total += sum(parts)
        fall += sum(map(mul, weights, parts))
    return total, fall


def margins(first: Estimate, second: Estimate, assume: Assumed) -> tuple[Interval, Interval]:
    """Return both estimates with the intervals from which a difference or a ratio recovers its limits.

    If either has three runs or more, both share a relative sd between runs, estimated from both: Student's t with the
    pooled degrees of freedom. Otherwise the sd is assumed.
    """
    spread = _spread([first, second], assume)
    return _outer(first, *spread), _outer(second, *spread)


def measures(first: Estimate, second: Estimate) -> bool:
    """Return whether the runs of either side measure the sd between runs."""
    return max(len(first.parts), len(second.parts)) >= MIN_RUNS


def spread_under_no_change(first: Estimate, second: Estimate, assume: Assumed) -> float:
    """Return the 95 % quantile of the relative difference of two such means under no change."""
    sd, quantile = _spread([first, second], assume)
    return (quantile or NORMAL) * sd * math.sqrt(sum(part.share**2 for side in (first, second) for part in side.parts))
