"""Unmeasured inputs of a provider, each with the range of public sources.

Figures of the provider take precedence. Without two different figures the range is the widest of all providers,
because a single value is no range. An input that the user states for the provider is known and has no range.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from costmodel.pricing.sheet import Prices
from costmodel.providers.estimation import estimated_at, starts_at_a_time
from costmodel.providers.provider import Profile, Provider, StartTime, known_profiles, load_profile, published_figures
from costmodel.statistics.intervals import Interval
from costmodel.toml import Document
from costmodel.training.run import KEEP, MASK, RESAMPLE, TrainingRun
from costmodel.units import NS_PER_HOUR, NS_PER_S
from costmodel.workload.pool import Pool, attempts
from costmodel.workload.rescaling import Alternatives

DISPATCH, FAILURES, BURST, IMAGE, START, LIMITS, DISK, SPEED = INPUTS = (
    *("dispatch", "failure_rate", "failure_burst", "image", "start", "limits", "disk", "work_speed"),
)
"""Names of the inputs with a range, in the order of a page."""
_FILE: Final = Path(__file__).parent / "data" / "ranges" / "unmeasured.toml"
_LIMIT_FIELDS: Final = ("quota", "create_rate", "create_burst")


class RangeFigure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A published range of an input, as in the file."""

    input: str
    unit: str
    low: float
    high: float
    source: str
    date: datetime.date
    provider: str = ""  # "": of no particular provider


@cache
def figures() -> tuple[RangeFigure, ...]:
    """Return the shipped ranges, cached."""
    return msgspec.convert(Document(_FILE).data["figures"], tuple[RangeFigure, ...])


class Input(NamedTuple):
    """An unmeasured input of a provider. ``best`` is the cheapest value and ``worst`` the most expensive."""

    name: str  # of ``INPUTS``
    unit: str
    assumed: float  # in the range
    best: float
    worst: float
    sources: tuple[str, ...]
    of_others: bool = False  # whether the sources are about different providers
    plans: tuple[str, ...] = ()  # names, if a value is the number of a plan
    either: bool = False  # whether either end may cost more

    def label(self, value: float) -> str:
        """Format a value with unit, or a plan with limits."""
        return self.plans[round(value)] if self.plans else f"{value:.3g} {self.unit}"

    def short(self, value: float) -> str:
        """Format a value without unit, or a plan by name."""
        return self.plans[round(value)].partition(" (")[0] if self.plans else f"{value:.3g}"


@dataclass(frozen=True)
class Candidate:
    """A provider without measurements: a pool's work with values for unmeasured inputs."""

    pool: Pool
    provider: Provider
    training_run: TrainingRun
    prices: Prices | None
    stated: frozenset[str] = frozenset()  # fields of the training run that the user gave for this provider alone
    images_gb: Sequence[float] = ()  # sizes of the images that the run needs, where known

    @cached_property
    def plans(self) -> tuple[Profile | None, ...]:
        """The provider's plans, loosest first; without published plans those of all providers."""
        provider, shipped = self.provider, [load_profile(name) for name in known_profiles()]
        own_plans = [plan for plan in shipped if plan.substrate == provider.substrate]
        plans: list[Profile | None] = [*(own_plans or (plan for plan in shipped if not plan.disputed))]
        if provider.profile is not None and provider.profile not in plans:
            plans.append(provider.profile)
        if not own_plans and provider.profile is None:
            plans.append(None)
        return tuple(sorted(plans, key=_looseness, reverse=True))

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs with a range, in the order of ``INPUTS``."""
        inputs = (make(self) for make in (_dispatch, _failures, _burst, _image, _start, _limits, _disk, _speed))
        return tuple(item for item in inputs if item is not None and item.best != item.worst)

    def values(self, end: Literal["assumed", "best", "worst"]) -> dict[str, float]:
        """Return all inputs at the same end of the ranges."""
        return {item.name: getattr(item, end) for item in self.inputs}

    def at(self, values: Mapping[str, float]) -> Alternatives:
        """Estimate the work at these values; the rest is as assumed.

        Raises:
            TrainingRunError: the training run has no answer at these values.
        """
        inputs = self.values("assumed") | dict(values)
        provider, training_run, prices = self.provider, self.training_run, self.prices
        if DISPATCH in inputs:
            provider = replace(provider, dispatch_s=Interval(*[inputs[DISPATCH]] * 3))
        if SPEED in inputs:
            provider = replace(provider, slowdown=Interval(*[inputs[SPEED]] * 3))
        if LIMITS in inputs:
            provider = replace(provider, profile=self.plans[round(inputs[LIMITS])])
        if DISK in inputs:
            prices = _with_disk(prices, inputs[DISK])
            provider = replace(provider, prices=_with_disk(provider.prices, inputs[DISK]))
        if FAILURES in inputs and training_run.step_rollouts is not None:
            rate, burst = inputs[FAILURES], round(inputs.get(BURST, training_run.failure_burst))
            if training_run.failure_hazard is None or rate != self.values("assumed")[FAILURES]:
                burst = burst if rate and burst > 1 else 1
                training_run = replace(training_run, failure_rate=rate, failure_hazard=None, failure_burst=burst)
        _, start, _ = provider.start_times(starts_at_a_time(training_run, provider, self.pool.successes))
        if START in inputs:
            start = StartTime(inputs[START], inputs[START] * start.p95_s / start.p50_s)
        return estimated_at(self.pool, provider, training_run, prices, start, inputs.get(IMAGE, 0.0))

    def times(self, values: Mapping[str, float]) -> float:
        """Return the cost factor of failures without steps: a failed attempt costs half an attempt."""
        inputs = self.values("assumed") | dict(values)
        rate = inputs.get(FAILURES, 0.0)
        return 1.0 if self.training_run.step_rollouts is not None else 1 + rate / (1 - rate) / 2

    def published(self, name: str) -> tuple[list[RangeFigure], bool]:
        """Return the provider's figures, or all figures if the provider's are no range, and whether all are used."""
        all_of_it = [figure for figure in figures() if figure.input == name]
        own_figures = [figure for figure in all_of_it if figure.provider == self.provider.substrate]
        if own_figures and min(figure.low for figure in own_figures) < max(figure.high for figure in own_figures):
            return own_figures, False
        return all_of_it, True

    def range_of(self, name: str, assumed: float) -> Input:
        """Return the published range of an input; the lowest value is the cheapest."""
        printed, of_others = self.published(name)
        low, high = min(figure.low for figure in printed), max(figure.high for figure in printed)
        sources = tuple(f"{figure.source} ({figure.date})" for figure in printed)
        return Input(name, printed[0].unit, min(max(assumed, low), high), low, high, sources, of_others)


def _dispatch(candidate: Candidate) -> Input | None:
    dispatch_s, good = candidate.provider.dispatch_s, candidate.pool.successes
    if dispatch_s is not None:
        return _stated(DISPATCH, "s per action", dispatch_s)
    dispatch_ns = sum(trial.actions.dispatch_ns for trial in good)
    actions = sum(len(trial.durations_ns) for trial in good)
    return candidate.range_of(DISPATCH, dispatch_ns / max(1, actions) / NS_PER_S)


def _stated(name: str, unit: str, interval: Interval) -> Input:
    low, high = interval.limits or (interval.value, interval.value)
    return Input(name, unit, interval.value, low, high, ("stated for this provider",))


def _failures(candidate: Candidate) -> Input | None:
    """Return the range with what the training run assumes of every substrate."""
    training_run = candidate.training_run
    if {"failure_rate", "failure_hazard"} & candidate.stated:
        return None
    rate, per_hour = training_run.failure_rate or 0.0, training_run.failure_hazard
    if per_hour is not None:
        sample = [attempt for attempt in attempts(candidate.pool, training_run.length, training_run) if attempt.ok]
        failed = [attempt.weight * -math.expm1(-per_hour * attempt.held_ns / NS_PER_HOUR) for attempt in sample]
        rate = math.fsum(failed) / (sum(attempt.weight for attempt in sample) or 1)
    failures = candidate.range_of(FAILURES, rate)
    either = training_run.on_failure in (MASK, KEEP)
    return failures._replace(assumed=rate, worst=max(failures.worst, rate), either=either)


def _burst(candidate: Candidate) -> Input | None:
    training_run = candidate.training_run
    if training_run.step_rollouts is None or {"failure_burst", "failure_hazard"} & candidate.stated:
        return None
    if "failure_rate" in candidate.stated and not training_run.failure_rate:
        return None
    assumed, either = float(training_run.failure_burst), training_run.on_failure in (MASK, KEEP, RESAMPLE)
    burst = candidate.range_of(BURST, assumed)  # many that are lost together are the cheapest
    return burst._replace(assumed=assumed, best=max(burst.worst, assumed), worst=burst.best, either=either)


def _image(candidate: Candidate) -> Input | None:
    if "images" in candidate.stated or candidate.training_run.images is not None:
        return None
    if not candidate.images_gb:
        return candidate.range_of(IMAGE, 0.0)
    printed, _ = candidate.published("image_gb_s")
    mean_gb = math.fsum(candidate.images_gb) / len(candidate.images_gb)
    slowest = min(figure.low for figure in printed)
    sources = tuple(
        f"{mean_gb:.3g} GB on average; {figure.source} ({figure.date})" for figure in printed if figure.low == slowest
    )
    return Input(IMAGE, "s per start", 0.0, 0.0, mean_gb / slowest, sources, of_others=True)


def _start(candidate: Candidate) -> Input | None:
    provider = candidate.provider
    at_a_time = starts_at_a_time(candidate.training_run, provider, candidate.pool.successes)
    quickest, usual, slowest = provider.start_times(at_a_time)
    dates = sorted({str(start.date) for start in provider.starts})
    sources = [f"{provider.newest[-1].source}, {dates[0]} to {dates[-1]}, up to {provider.at_a_time} at a time"]
    worst = max(slowest.p50_s, usual.p50_s)
    if at_a_time > provider.at_a_time:
        more = [start for file in published_figures() for start in file.starts if start.p50 is not None]
        levels = [start.concurrency or 1 for start in more]
        level = min((level for level in levels if level >= at_a_time), default=max(levels))
        busiest = max((start for start in more if start.concurrency == level), key=lambda start: start.p50 or 0.0)
        if (busiest.p50 or 0.0) > worst:
            worst = busiest.p50 or 0.0
            sources.append(f"{busiest.substrate} with {level:,} at a time: {busiest.source}, {busiest.date}")
    assumed = min(max(usual.p50_s, quickest.p50_s), worst)
    return Input(START, "s, the median", assumed, min(quickest.p50_s, assumed), worst, tuple(sources), len(sources) > 1)


def _disk(candidate: Candidate) -> Input | None:
    sheet = candidate.provider.prices
    if sheet is None or "prices" in candidate.provider.stated or candidate.prices is not None:
        return None
    billed = [price for price in sheet.sandboxes if price.rate("usd_per_disk_gib_hour") > 0]
    if not billed:
        return None
    disk = candidate.range_of(DISK, billed[0].disk_gib or 0.0)
    return disk._replace(worst=max([disk.worst, *candidate.images_gb]), best=min(disk.best, disk.assumed))


def _speed(candidate: Candidate) -> Input | None:
    if "slowdown" in candidate.provider.stated:
        return _stated(SPEED, "times as long", candidate.provider.slowdown)
    return candidate.range_of(SPEED, candidate.provider.slowdown.value)


def _looseness(plan: Profile | None) -> tuple[float, float, float]:
    if plan is None:
        return math.inf, math.inf, math.inf
    return plan.creates_per_s or math.inf, plan.concurrent or math.inf, plan.burst or 0


def _limits(candidate: Candidate) -> Input | None:
    """Return the range over plans, unless the user states the plan or its limits."""
    plans = candidate.plans
    limits_given = any(getattr(candidate.training_run, name) is not None for name in _LIMIT_FIELDS[:2])
    stated = "profile" in candidate.provider.stated or candidate.stated & {"profile", *_LIMIT_FIELDS}
    if limits_given or stated or len(plans) < 2:
        return None
    has_own_plan = any(plan is not None and plan.substrate == candidate.provider.substrate for plan in plans)
    used = plans.index(candidate.provider.profile)
    sources = tuple(dict.fromkeys(f"{plan.title}: {plan.source} ({plan.date})" for plan in plans if plan is not None))
    names = tuple(map(_named, plans))
    return Input(LIMITS, "", float(used), 0.0, float(len(plans) - 1), sources, not has_own_plan, names)


def _named(plan: Profile | None) -> str:
    if plan is None:
        return "no limit"
    parts = [] if plan.concurrent is None else [f"{plan.concurrent:,} at a time"]
    if plan.creates_per_s is not None:
        parts.append(f"{plan.creates_per_s:.3g} creates a second")
    return f"{plan.name} ({', '.join(parts)})"


def _with_disk(prices: Prices | None, gib: float) -> Prices | None:
    if prices is None:
        return None
    sandboxes = tuple(msgspec.structs.replace(price, disk_gib=gib) for price in prices.sandboxes)
    return msgspec.structs.replace(prices, sandboxes=sandboxes)
