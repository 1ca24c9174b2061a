"""Inputs that nobody measured at a provider, each with the range of values that public sources allow.

Figures of the provider itself count before those of others. Without two different ones the range is the widest of all
providers, because a single value is no range. An input that the user states for the provider is known and has no range.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from costmodel.pricing.sheet import Prices
from costmodel.providers import published_figures
from costmodel.providers.estimation import estimated_at, starts_at_a_time
from costmodel.providers.limits import Profile, known_profiles, load_profile
from costmodel.providers.provider import Dispatch, Provider, Span, StartLaw
from costmodel.toml import Document, Text
from costmodel.training.run import KEEP, MASK, RESAMPLE, TrainingRun
from costmodel.units import NS_PER_S
from costmodel.workload.pool import Pool
from costmodel.workload.scenario_range import Alternatives

DISPATCH, FAILURES, BURST, IMAGE, START, LIMITS, DISK, SPEED = INPUTS = (
    *("dispatch", "failure_rate", "failure_burst", "image", "start", "limits", "disk", "work_speed"),
)
"""Names of the inputs that have a range, in the order in which a page prints them."""
STATED: Final = "stated for this provider"
_FILE: Final = Path(__file__).parent / "data" / "ranges" / "unmeasured.toml"
_GB_S: Final = "image_gb_s"
_LIMIT_FIELDS: Final = ("quota", "create_rate", "create_burst")


class RangeFigure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A printed lowest and highest value of one input, as they are written."""

    input: Literal["dispatch", "failure_rate", "failure_burst", "image", "image_gb_s", "work_speed", "disk"]
    unit: Text
    low: Annotated[float, msgspec.Meta(ge=0)]
    high: Annotated[float, msgspec.Meta(ge=0)]
    source: Text
    date: datetime.date
    provider: str = ""  # "": of no provider in particular

    def __post_init__(self) -> None:
        """Check the order of the ends."""
        if self.low > self.high:
            raise ValueError(f"{self.input} must be from low to high, not {self.low:g} to {self.high:g}")


class RangeFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All printed ranges."""

    figures: tuple[RangeFigure, ...]


@cache
def figures() -> tuple[RangeFigure, ...]:
    """The ranges that ship; read once, because they do not change."""
    return Document(_FILE).convert(RangeFile).figures


class Input(NamedTuple):
    """One unmeasured input of a provider. ``best`` costs least and ``worst`` most."""

    name: str  # of ``INPUTS``
    unit: str
    assumed: float  # in the range
    best: float
    worst: float
    sources: tuple[str, ...]
    of_others: bool = False  # whether the sources are about other providers
    plans: tuple[str, ...] = ()  # where values are numbers of plans: their names
    either: bool = False  # whether either end may cost more

    def label(self, value: float) -> str:
        """A value with its unit, or a plan with its limits."""
        return self.plans[round(value)] if self.plans else f"{value:.3g} {self.unit}"

    def short(self, value: float) -> str:
        """A value without its unit, or the name of a plan."""
        return self.plans[round(value)].partition(" (")[0] if self.plans else f"{value:.3g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A provider where nothing was measured: recorded work there, at any values of its unmeasured inputs."""

    pool: Pool
    provider: Provider
    training_run: TrainingRun
    prices: Prices | None
    inputs: tuple[Input, ...]
    plans: tuple[Profile | None, ...]  # by the number that ``limits`` has as its value

    @classmethod
    def of(
        cls,
        pool: Pool,
        provider: Provider,
        training_run: TrainingRun,
        prices: Prices | None,
        stated: frozenset[str] = frozenset(),
        images_gb: Sequence[float] = (),
    ) -> Candidate:
        """The work of a recorded pool at a provider.

        ``stated`` names the fields of the training run that the user gave for this provider alone. ``images_gb`` are
        sizes of the images that the run needs, where they are known.
        """
        plans = _plans(provider)
        ranged = Ranges(pool, provider, training_run, prices, stated, tuple(images_gb))
        found = [one for make in _MADE for one in [make(ranged)] if one is not None and one.best != one.worst]
        limits = _limits(ranged, plans)
        if limits is not None:
            found.append(limits)
        order = {name: place for place, name in enumerate(INPUTS)}
        return cls(
            pool=pool,
            provider=provider,
            training_run=training_run,
            prices=prices,
            inputs=tuple(sorted(found, key=lambda one: order[one.name])),
            plans=plans,
        )

    def values(self, end: Literal["assumed", "best", "worst"]) -> dict[str, float]:
        """All inputs at one end of their ranges."""
        return {one.name: getattr(one, end) for one in self.inputs}

    def at(self, values: Mapping[str, float]) -> Alternatives:
        """The work at these values; inputs without one are as assumed.

        Raises:
            TrainingRunError: the training run cannot be answered at these values.
        """
        told = self.values("assumed") | dict(values)
        provider, training_run, prices = self.provider, self.training_run, self.prices
        if DISPATCH in told:
            provider = replace(provider, dispatch=Dispatch(Span(*[told[DISPATCH]] * 3), (), "range"))
        if SPEED in told:
            provider = replace(provider, slowdown=Span(*[told[SPEED]] * 3))
        if LIMITS in told:
            provider = replace(provider, profile=self.plans[round(told[LIMITS])])
        if DISK in told:
            prices = _with_disk(prices, told[DISK])
            provider = replace(provider, prices=_with_disk(provider.prices, told[DISK]))
        if FAILURES in told and training_run.step_rollouts is not None:
            rate, burst = told[FAILURES], round(told.get(BURST, training_run.failure_burst))
            training_run = replace(
                training_run, failure_rate=rate, failure_hazard=None, failure_burst=burst if rate and burst > 1 else 1
            )
        law = provider.start_laws(_at_a_time(self.pool, provider, training_run))[1]
        if START in told:
            law = StartLaw(told[START], told[START] * law.p95_s / law.p50_s)
        return estimated_at(self.pool, provider, training_run, prices, law, told.get(IMAGE, 0.0))

    def times(self, values: Mapping[str, float]) -> float:
        """How many times as much a run without steps costs by its failures: a failed attempt costs half of one."""
        told = self.values("assumed") | dict(values)
        rate = told.get(FAILURES, 0.0)
        return 1.0 if self.training_run.step_rollouts is not None else 1 + rate / (1 - rate) / 2


class Ranges(NamedTuple):
    """All that the range of an input depends on."""

    pool: Pool
    provider: Provider
    training_run: TrainingRun
    prices: Prices | None
    stated: frozenset[str]
    images_gb: tuple[float, ...]

    def published(self, name: str) -> tuple[list[RangeFigure], bool]:
        """The provider's own figures; all figures where its own are no range. Whether they are of others."""
        all_of_it = [one for one in figures() if one.input == name]
        own = [one for one in all_of_it if one.provider == self.provider.substrate]
        if own and min(one.low for one in own) < max(one.high for one in own):
            return own, False
        return all_of_it, True

    def input(self, name: str, assumed: float, *, either: bool = False, reverse: bool = False) -> Input:
        """The published range of an input; ``reverse``: the highest value costs least."""
        printed, of_others = self.published(name)
        low, high = min(one.low for one in printed), max(one.high for one in printed)
        ends = (high, low) if reverse else (low, high)
        sources = tuple(f"{one.source} ({one.date})" for one in printed)
        return Input(name, printed[0].unit, min(max(assumed, low), high), *ends, sources, of_others, either=either)


def _at_a_time(pool: Pool, provider: Provider, training_run: TrainingRun) -> int:
    return starts_at_a_time(training_run, provider, [trial for trial in pool.trials if trial.ok])


def _dispatch(ranges: Ranges) -> Input | None:
    own = ranges.provider.dispatch
    if own is not None:
        low, value, high = own.seconds
        return Input(DISPATCH, "s per action", value, low, high, (STATED,))
    good = [trial.measures.dispatch_ns for trial in ranges.pool.trials if trial.ok]
    actions = sum(len(trial.durations_ns) for trial in ranges.pool.trials if trial.ok)
    return ranges.input(DISPATCH, sum(good) / max(1, actions) / NS_PER_S)


def _failures(ranges: Ranges) -> Input | None:
    if {"failure_rate", "failure_hazard"} & ranges.stated:
        return None
    one = ranges.input(FAILURES, ranges.training_run.failure_rate or 0.0)
    return one._replace(either=ranges.training_run.effective_on_failure in (MASK, KEEP))


def _burst(ranges: Ranges) -> Input | None:
    training_run = ranges.training_run
    if training_run.step_rollouts is None or {"failure_burst", "failure_hazard"} & ranges.stated:
        return None
    if "failure_rate" in ranges.stated and not training_run.failure_rate:
        return None
    either = training_run.effective_on_failure in (MASK, KEEP, RESAMPLE)
    return ranges.input(BURST, float(training_run.failure_burst), either=either, reverse=True)


def _image(ranges: Ranges) -> Input | None:
    if "images" in ranges.stated or ranges.training_run.images is not None:
        return None
    if not ranges.images_gb:
        return ranges.input(IMAGE, 0.0)
    printed, _ = ranges.published(_GB_S)
    mean_gb = math.fsum(ranges.images_gb) / len(ranges.images_gb)
    slowest = min(one.low for one in printed)
    sources = tuple(f"{mean_gb:.3g} GB on average; {one.source} ({one.date})" for one in printed if one.low == slowest)
    return Input(IMAGE, "s per start", 0.0, 0.0, mean_gb / slowest, sources, of_others=True)


def _start(ranges: Ranges) -> Input | None:
    provider = ranges.provider
    at_a_time = _at_a_time(ranges.pool, provider, ranges.training_run)
    quickest, usual, slowest = provider.start_laws(at_a_time)
    dates = sorted({str(start.date) for start in provider.starts})
    sources = [f"{provider.newest[-1].source}, {dates[0]} to {dates[-1]}, up to {provider.at_a_time} at a time"]
    worst = max(slowest.p50_s, usual.p50_s)
    if at_a_time > provider.at_a_time:
        more = [start for file in published_figures.shipped() for start in file.starts if start.p50_s is not None]
        enough = [start for start in more if start.at_a_time >= at_a_time]
        level = min(one.at_a_time for one in enough) if enough else max(one.at_a_time for one in more)
        busiest = max((one for one in more if one.at_a_time == level), key=lambda one: one.p50_s or 0.0)
        if (busiest.p50_s or 0.0) > worst:
            worst = busiest.p50_s or 0.0
            sources.append(f"{busiest.substrate} with {level:,} at a time: {busiest.source}, {busiest.date}")
    assumed = min(max(usual.p50_s, quickest.p50_s), worst)
    return Input(START, "s, the median", assumed, min(quickest.p50_s, assumed), worst, tuple(sources), len(sources) > 1)


def _disk(ranges: Ranges) -> Input | None:
    sheet = ranges.provider.prices
    if sheet is None or "prices" in ranges.provider.stated or ranges.prices is not None:
        return None
    billed = [one for one in sheet.sandboxes if one.rates.usd_per_disk_gib_hour > 0]
    if not billed:
        return None
    found = ranges.input(DISK, billed[0].disk_gib)
    worst = max(found.worst, *ranges.images_gb) if ranges.images_gb else found.worst
    return found._replace(worst=worst, best=min(found.best, found.assumed))


def _speed(ranges: Ranges) -> Input | None:
    if "slowdown" in ranges.provider.stated:
        low, value, high = ranges.provider.slowdown
        return Input(SPEED, "times as long", value, low, high, (STATED,))
    return ranges.input(SPEED, ranges.provider.slowdown.value)


_MADE: Final[tuple[Callable[[Ranges], Input | None], ...]] = (
    *(_dispatch, _failures, _burst, _image, _start, _disk, _speed),
)


def _plans(provider: Provider) -> tuple[Profile | None, ...]:
    """The plans that the provider may have sold, the loosest first; of all providers where it publishes none."""
    known = [load_profile(name) for name in known_profiles()]
    own = [one for one in known if one.substrate == provider.substrate]
    plans: list[Profile | None] = list[Profile | None](own or known)
    for one in own:
        if one.disputed:
            plans.append(_disputed(one))
    if provider.profile is not None and provider.profile not in plans:
        plans.append(provider.profile)
    if not own and provider.profile is None:
        plans.append(None)
    return tuple(sorted(plans, key=_looseness, reverse=True))


def _disputed(plan: Profile) -> Profile:
    """The plan as its other sources say; a burst belongs to the rate of its own source."""
    said = {one.limit: one.value for one in plan.disputed}
    rate, concurrent, burst = (said.get(limit) for limit in ("creates_per_s", "concurrent", "burst"))
    return msgspec.structs.replace(
        plan,
        creates_per_s=rate or plan.creates_per_s,
        concurrent=plan.concurrent if concurrent is None else int(concurrent),
        burst=int(burst) if burst is not None else plan.burst if rate is None else None,
        name=f"{plan.name}, disputed",
        title=f"{plan.title}, disputed",
        source="; ".join(one.source for one in plan.disputed),
        disputed=(),
    )


def _looseness(plan: Profile | None) -> tuple[float, float, float]:
    if plan is None:
        return math.inf, math.inf, math.inf
    return (
        math.inf if plan.creates_per_s is None else plan.creates_per_s,
        math.inf if plan.concurrent is None else plan.concurrent,
        plan.burst or 0,
    )


def _limits(ranges: Ranges, plans: Sequence[Profile | None]) -> Input | None:
    """The plan that the account has, unless the user states it or its limits."""
    known = ranges.stated | {name for name in _LIMIT_FIELDS[:2] if getattr(ranges.training_run, name) is not None}
    if "profile" in ranges.provider.stated or known & {"profile", *_LIMIT_FIELDS} or len(plans) < 2:
        return None
    own = any(plan is not None and plan.substrate == ranges.provider.substrate for plan in plans)
    used = plans.index(ranges.provider.profile)
    sources = tuple(dict.fromkeys(f"{plan.title}: {plan.source} ({plan.date})" for plan in plans if plan is not None))
    names = tuple(map(_named, plans))
    return Input(LIMITS, "", float(used), 0.0, float(len(plans) - 1), sources, not own, names)


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
    billed = (replace(one, disk_gib=gib) if one.rates.usd_per_disk_gib_hour > 0 else one for one in prices.sandboxes)
    return replace(prices, sandboxes=tuple(billed))
