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

from costmodel.statistics.intervals import (
    LEVEL,
    Interval,
    correlation_time,
    difference,
    ratio_interval,
    student_t,
)
from costmodel.toml import Document, Text

MIN_RUNS: Final = 3
"""With fewer, how much runs differ is assumed, not measured."""
NORMAL: Final = NormalDist().inv_cdf((1 + LEVEL) / 2)


class RunKey(NamedTuple):
    """One complete run: a repetition of those that a recording holds."""

    run_id: str
    repetition: int


Origin = tuple[RunKey, int]
"""The run and the block of a trial."""


class Assumed(NamedTuple):
    """A run-to-run sd that is not measured here, relative to the mean. 0: intervals are of these runs only."""

    sd: float
    source: str
    given: bool = False  # by whoever asks: it then stands in for what three runs or more would show, too


WITHIN_ONLY: Final = Assumed(0.0, "left out", given=True)


def assumed(substrate: str, run_sd: float | None = None) -> Assumed:
    """What is assumed of a substrate's runs: ``run_sd`` where it is given, else what ships in run_spread.toml."""
    if run_sd is not None:
        return Assumed(run_sd, "given", given=True)
    shipped = _shipped()
    spread = shipped.substrates.get(substrate, shipped.default)
    return Assumed(spread.sd, f"{spread.source}; {shipped.date}")


class ShippedSpread(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """By how much two runs differ."""

    sd: Annotated[float, msgspec.Meta(ge=0, le=1)]  # relative to the mean
    source: Text


class ShippedSpreads(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What ships in run_spread.toml."""

    date: datetime.date
    default: ShippedSpread
    substrates: dict[str, ShippedSpread]


@cache
def _shipped() -> ShippedSpreads:
    return Document(Path(__file__).parent / "run_spread.toml").convert(ShippedSpreads)


class Basis(NamedTuple):
    """What the run-to-run part of an interval rests on."""

    runs: int
    sd: float  # between runs, relative to the mean
    measured: bool  # by these runs; else it is assumed
    source: str


class RunPart(NamedTuple):
    """What one run says of a ratio of sums."""

    run: RunKey
    share: float  # of the denominators
    value: float  # the run's own ratio
    variance: float  # of that, within the run
    deviations: Sequence[float]  # each trial's part in the error of the run's own ratio, in time order; they sum to 0


class Estimate(NamedTuple):
    """Σ numerators / Σ denominators over trials of some runs, taken apart by run."""

    value: float
    within: Interval  # for these runs as they were
    parts: tuple[RunPart, ...]
    moving: float  # as much of the value as a run's state can change: not time spent idle on purpose

    @property
    def runs(self) -> frozenset[RunKey]:
        """Which they are."""
        return frozenset(part.run for part in self.parts)

    def run_variance(self, sd: float) -> float:
        """The variance of ``value`` if runs differ by this relative sd; trials are weighted alike, runs are not."""
        return (sd * self.moving) ** 2 * sum(part.share**2 for part in self.parts)

    def scaled(self, factor: float) -> Estimate:
        """In another unit."""
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
    """A ratio of sums over trials, those of a run in time order; ``idle`` is the part of it that no run can change.

    Σ denominators must be above 0. A run without a denominator has no ratio of its own and is left out of the parts.
    """
    total = sum(denominators)
    value = sum(numerators) / total
    by_run: defaultdict[RunKey, array[int]] = defaultdict(lambda: array("q"))
    for index, (run, _) in enumerate(origins):
        by_run[run].append(index)
    parts, residuals = [], []
    for run, members in by_run.items():
        lowers = [denominators[i] for i in members]
        own = sum(lowers)
        if not own:
            continue
        uppers = [numerators[i] for i in members]
        ratio = sum(uppers) / own
        deviations = array("d", [(upper - ratio * lower) / own for upper, lower in zip(uppers, lowers, strict=True)])
        correlation = correlation_time([deviations])
        parts.append(RunPart(run, own / total, ratio, variance_of_sum(deviations, correlation), deviations))
        residuals.append(deviations)
    within = ratio_interval(numerators, denominators, origins)
    correlation = correlation if len(residuals) == 1 else correlation_time(residuals)
    return Estimate(value, _stretched(within, correlation), tuple(parts), abs(value - idle))


def variance_of_sum(deviations: Sequence[float], correlation: float) -> float:
    """Return the variance of a sum of deviations of which so many neighbours are worth one."""
    count = len(deviations)
    if count < 2:
        return 0.0  # unknown: what varies within is then part of what varies between
    return float(count / (count - 1) * math.fsum(map(mul, deviations, deviations)) * correlation)


def _stretched(interval: Interval, correlation: float) -> Interval:
    """The interval of as many trials as the correlated ones are worth."""
    if interval.low is None or interval.high is None:
        return interval
    factor = math.sqrt(correlation)
    value = interval.value
    return Interval(value, value - factor * (value - interval.low), value + factor * (interval.high - value))


def basis(one: Estimate, assume: Assumed) -> Basis:
    """Where the run-to-run part of this estimate's interval comes from."""
    count = len(one.parts)
    if count < MIN_RUNS or assume.given:
        return Basis(count, assume.sd, measured=False, source=assume.source)
    return Basis(count, math.sqrt(between([one])), measured=True, source="measured")


def interval(one: Estimate, assume: Assumed) -> Interval:
    """The 95 % interval that a quoted value needs: within the runs and between them.

    From three runs on: Student's t with runs − 1 degrees of freedom on the random-effects variance, τ² by Paule and
    Mandel (1982), which is Hartung and Knapp's interval with their factor held at 1 or above (Röver, Knapp and Friede,
    BMC Med. Res. Methodol. 15:99, 2015), here for the mean over all trials, whatever the runs' sizes. Otherwise the
    interval within the run, and a run effect that is lognormal with the assumed sd; the two distances to each limit
    add in squares (Zou and Donner 2008). It is never narrower than the one within.
    """
    within = one.within
    if within.low is None or within.high is None:
        return within
    grounds = basis(one, assume)
    if grounds.measured:
        square = one.run_variance(grounds.sd) + sum(part.share**2 * part.variance for part in one.parts)
        half = student_t(len(one.parts) - 1) * math.sqrt(square)
        return Interval(one.value, min(within.low, one.value - half), max(within.high, one.value + half))
    below, above = run_limits(one, assume.sd)
    return Interval(
        one.value,
        one.value - math.hypot(one.value - within.low, below),
        one.value + math.hypot(within.high - one.value, above),
    )


def run_limits(one: Estimate, sd: float) -> tuple[float, float]:
    """How far below and above an assumed run effect alone lets the truth be."""
    factor = math.exp(NORMAL * sd * math.sqrt(sum(part.share**2 for part in one.parts)))
    return one.moving * (1 - 1 / factor), one.moving * (factor - 1)


def between(groups: Sequence[Estimate]) -> float:
    """τ²: the variance between runs relative to the mean, common to all groups, by Paule and Mandel's moments.

    The τ² at which the weighted squares of the runs' means about their group's equal their degrees of freedom; 0 where
    the variance within runs already explains them. R. C. Paule and J. Mandel, J. Res. NBS 87(5), 1982.
    """
    relative = [
        [(part.value / one.moving, part.variance / one.moving**2) for part in one.parts] for one in groups if one.moving
    ]
    freedom = sum(len(group) - 1 for group in relative)
    if freedom < 1 or _squares(relative, 0.0) <= freedom:
        return 0.0
    low, high = 0.0, max((value - group[0][0]) ** 2 for group in relative for value, _ in group)
    while _squares(relative, high) > freedom:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        if middle in (low, high):  # no number is between them
            break
        low, high = (middle, high) if _squares(relative, middle) > freedom else (low, middle)
    return high


def _squares(groups: Sequence[Sequence[tuple[float, float]]], tau2: float) -> float:
    total = 0.0
    for group in groups:
        weights = [1 / (variance + tau2) if variance + tau2 > 0 else math.inf for _, variance in group]
        if math.inf in weights:  # no variance at all: equal runs agree, others differ without bound
            total += 0.0 if len({value for value, _ in group}) == 1 else math.inf
            continue
        middle = math.fsum(w * value for w, (value, _) in zip(weights, group, strict=True)) / math.fsum(weights)
        total += math.fsum(w * (value - middle) ** 2 for w, (value, _) in zip(weights, group, strict=True))
    return total


def separate(one: Estimate, other: Estimate, assume: Assumed) -> Interval:
    """``one`` − ``other``, measured in different runs. Never narrower than within the runs."""
    value = one.value - other.value
    within = difference(one.within, other.within)
    if within.low is None or within.high is None:
        return within
    outer = difference(*margins(one, other, assume))
    assert outer.low is not None
    assert outer.high is not None
    return Interval(value, min(within.low, outer.low), max(within.high, outer.high))


def margins(one: Estimate, other: Estimate, assume: Assumed) -> tuple[Interval, Interval]:
    """Both with the intervals that what is made of the two, a difference or a ratio, recovers its limits from.

    Where one of them has three runs or more, both are taken to have one relative sd between runs, estimated from both:
    Student's t with the pooled degrees of freedom. Otherwise it is assumed.
    """
    if not measures(one, other) or assume.given:
        given = assume._replace(given=True)
        return interval(one, given), interval(other, given)
    tau, quantile = math.sqrt(between([one, other])), student_t(len(one.parts) + len(other.parts) - 2)

    def about(each: Estimate) -> Interval:
        square = each.run_variance(tau) + sum(part.share**2 * part.variance for part in each.parts)
        return Interval(
            each.value, each.value - quantile * math.sqrt(square), each.value + quantile * math.sqrt(square)
        )

    return about(one), about(other)


def measures(one: Estimate, other: Estimate) -> bool:
    """Whether these runs show by how much runs differ."""
    return max(len(one.parts), len(other.parts)) >= MIN_RUNS


def apart(one: Estimate, other: Estimate, assume: Assumed) -> float:
    """By how much, relative to the mean, two such means differ in 95 % of all cases though nothing has changed."""
    pooled = measures(one, other) and not assume.given
    sd = math.sqrt(between([one, other])) if pooled else assume.sd
    quantile = student_t(len(one.parts) + len(other.parts) - 2) if pooled else NORMAL
    return quantile * sd * math.sqrt(sum(part.share**2 for each in (one, other) for part in each.parts))
