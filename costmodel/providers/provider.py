"""Published facts of a provider: start-up times, limits, prices.

A value is the latest of the sources; ``low`` … ``high`` covers all sources of any date.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from costmodel.errors import SourceError, TrainingRunError
from costmodel.pricing.sheet import SHIPPED_PRICES, Prices, load_prices
from costmodel.recording.published import Published, PublishedFigure, read_published
from costmodel.statistics.intervals import Interval
from costmodel.toml import Count, Text, load_document
from costmodel.workload.rescaling import Assumption, Level, LevelCurve

SHIPPED_FIGURES: Final = Path(__file__).parent / "data" / "published"
_USUAL_PLAN: Final = {"e2b": "e2b-pro", "novita": "novita-enterprise", "vercel": "vercel-pro"}
"""Default plan of a provider with several."""
SHIPPED_LIMITS: Final = Path(__file__).parent / "data" / "limits"
AS_RECORDED: Final = Interval(1.0, 1.0, 1.0)
_LIMITS: Final = {"concurrent": "quota", "creates_per_s": "create_rate", "burst": "create_burst"}
"""Limit → the filled field of a training run."""
PerSecond = Annotated[float, msgspec.Meta(gt=0, le=1e9)]


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a plan of a provider. None: no known limit."""

    substrate: Text
    # Date of the source, or of reading the source.
    date: Annotated[
        datetime.date, msgspec.Meta(description="limits change, so a profile needs its date; add date = YYYY-MM-DD")
    ]
    source: Text
    name: str = ""  # of the file
    title: str = ""
    concurrent: Count | None = None  # sandboxes at a time
    creates_per_s: PerSecond | None = None
    burst: Count | None = None  # creates at once, before the rate counts
    notes: tuple[str, ...] = ()
    disputed: bool = False  # another source's values of a shipped plan

    def __post_init__(self) -> None:
        if all(getattr(self, limit) is None for limit in _LIMITS):
            raise ValueError(f"no limit; give at least one of {', '.join(_LIMITS)}")
        if self.burst is not None and self.creates_per_s is None:
            raise ValueError("a burst is an exception to a rate; add creates_per_s = ?")

    def filled(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Fill unset fields of a training run with the limits of this plan.

        A burst belongs to its rate: a rate of the user has no burst from here.
        """
        limits = {field: getattr(self, limit) for limit, field in _LIMITS.items()}
        if fields.get("create_rate") is not None:
            limits["create_burst"] = None
        unset = {field: value for field, value in limits.items() if value is not None and fields.get(field) is None}
        return {**fields, **unset}


def known_profiles() -> list[str]:
    """Return the names of the shipped plans."""
    return sorted(path.stem for path in SHIPPED_LIMITS.glob("*.toml"))


def load_profile(name: str | Path) -> Profile:
    """Load a shipped plan by name, or a TOML file.

    Raises:
        TrainingRunError: unknown name, or a missing or impossible value.
    """
    file, plan = load_document(name, Profile, TrainingRunError, SHIPPED_LIMITS)
    return msgspec.structs.replace(plan, name=file.stem, title=plan.title or file.stem)


@cache
def published_figures() -> tuple[Published, ...]:
    """Return the shipped files of start-up times and other figures, cached."""
    return tuple(map(read_published, sorted(SHIPPED_FIGURES.glob("*.toml"))))


class StartTime(NamedTuple):
    """Lognormal distribution of start times with the published median and 95th percentile."""

    p50_s: float
    p95_s: float

    def strata(self, count: int) -> list[float]:
        """Return means over ``count`` equally likely parts, ascending, in s; the overall mean is exact."""
        normal = NormalDist()
        sigma = max(0.0, math.log(self.p95_s / self.p50_s) / normal.inv_cdf(0.95))
        if sigma == 0:
            return [self.p50_s] * count
        edges = [-math.inf, *(normal.inv_cdf(part / count) for part in range(1, count)), math.inf]
        below = [normal.cdf(edge - sigma) for edge in edges]
        mean_s = self.p50_s * math.exp(sigma**2 / 2)
        return [count * mean_s * (upper - lower) for lower, upper in pairwise(below)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Published facts of one provider, with sources."""

    substrate: str
    starts: tuple[PublishedFigure, ...]  # at least one has a median
    dispatch_s: Interval | None = None  # of a command, with the range of the sources; None: not stated
    slowdown: Interval = AS_RECORDED
    profile: Profile | None = None
    prices: Prices | None = None
    stated: frozenset[str] = frozenset()  # options of the user, without a range

    @property
    def newest(self) -> list[PublishedFigure]:
        """Starts of the latest date with a median, by concurrency."""
        with_median = [start for start in self.starts if start.p50 is not None]
        latest = max(start.date for start in with_median)
        newest = (start for start in with_median if start.date == latest)
        return sorted(newest, key=lambda start: start.concurrency or 1)

    @property
    def at_a_time(self) -> int:
        """Highest concurrency with a published start."""
        return self.newest[-1].concurrency or 1

    def start_times(self, at_a_time: int) -> tuple[StartTime, StartTime, StartTime]:
        """Return the fastest published start, the start at a concurrency, and the slowest start."""
        newest = self.newest
        spread = max((start.p95 or start.p50 or 0.0) / (start.p50 or 1.0) for start in newest)

        def p95_s(start: PublishedFigure) -> float:
            return start.p95 or (start.p50 or 0.0) * spread  # earlier dates have medians only

        times = [StartTime(start.p50, p95_s(start)) for start in self.starts if start.p50 is not None]
        p50 = LevelCurve.of([Level(start.concurrency or 1, start.p50 or 0.0) for start in newest])
        p95 = LevelCurve.of([Level(start.concurrency or 1, p95_s(start)) for start in newest])
        covered = min(at_a_time, self.at_a_time)  # no extrapolation: rows beyond carry a warning
        latest = StartTime(p50.at(covered).value, p95.at(covered).value)
        return min(times), latest, max(times)

    def assumptions(self, at_a_time: int) -> list[Assumption]:
        """Return every value with source and date, for ``at_a_time`` concurrent starts."""
        low, start, high = self.start_times(at_a_time)
        newest = self.newest[-1]
        dates = sorted({str(start.date) for start in self.starts})
        speed = "given" if "slowdown" in self.stated else "assumed: as fast as where the work was recorded"
        assumptions = [
            Assumption(
                "start",
                f"median {start.p50_s:.3g} s, 95th percentile {start.p95_s:.3g} s (lognormal); "
                f"medians from {low.p50_s:.3g} to {high.p50_s:.3g} s since {dates[0]}",
                f"{newest.source}, {newest.date}, {newest.measure}, up to {self.at_a_time} at a time",
            ),
            Assumption("work speed", _format_range(self.slowdown, "{:.3g} times as long"), speed),
        ]
        if self.dispatch_s is not None:
            source = "given" if "dispatch" in self.stated else "range"
            assumptions.append(Assumption("dispatch", _format_range(self.dispatch_s, "{:.3g} s"), source))
        if self.profile is not None:
            plan, values = self.profile, {limit: getattr(self.profile, limit) for limit in _LIMITS}
            lines = [f"{limit} {value:,g} ({plan.source}, {plan.date})" for limit, value in values.items() if value]
            lines += plan.notes
            assumptions += [Assumption("limits", f"{plan.title}: {line}", f"profile {plan.name}") for line in lines]
        if self.prices is not None:
            assumptions += [Assumption("prices", price.sheet, price.cited) for price in self.prices.sandboxes]
        return assumptions


def load_provider(spec: str) -> Provider:
    """Load a provider by name or from a file, with the options of the user.

    ``spec`` is ``NAME[:key=value,…]``: ``dispatch`` is a duration or a range (``100ms..300ms``), ``slowdown`` a factor
    or a range; ``profile`` and ``prices`` are names or files.

    Raises:
        TrainingRunError: unknown provider or option.
        PriceError, SourceError: a sheet or a file is wrong.
    """
    name, _, options = spec.partition(":")
    provider = _from_file(Path(name)) if name.endswith(".toml") else _shipped(name)
    for option in filter(None, options.split(",")):
        key, _, value = option.partition("=")
        if not value or key not in _OPTIONS:
            expected = ", ".join(f"{name}=…" for name in _OPTIONS)
            raise TrainingRunError(f"--compose {spec}: {option!r} is none of {expected}")
        field, read = _OPTIONS[key]
        provider = replace(provider, **{field: read(value)}, stated=provider.stated | {key})
    return provider


def known_providers() -> list[str]:
    """Return the providers with a published median start."""
    return sorted({start.substrate for file in published_figures() for start in file.starts if start.p50 is not None})


def _shipped(name: str) -> Provider:
    starts = [start for file in published_figures() for start in file.starts if start.substrate == name]
    if not any(start.p50 is not None for start in starts):
        raise TrainingRunError(f"no start of {name!r} is published; known are {', '.join(known_providers())}")
    if len({start.variant for start in starts}) > 1:
        variants = ", ".join(dict.fromkeys(start.variant for start in starts))
        raise TrainingRunError(f"the starts of {name!r} are of {variants}: measure it, or write a file of your own")
    profile = _USUAL_PLAN.get(name, name)
    return Provider(
        substrate=name,
        starts=tuple(starts),
        profile=load_profile(profile) if profile in known_profiles() else None,
        prices=load_prices(name) if (SHIPPED_PRICES / f"{name}.toml").is_file() else None,
    )


def _from_file(path: Path) -> Provider:
    """Load a file of a substrate's starts."""
    facts = read_published(path)
    if len({(start.substrate, start.variant) for start in facts.starts}) != 1:
        raise SourceError(f"{path}: a provider is one substrate; give [[starts]] of one, with p50")
    if all(start.p50 is None for start in facts.starts):
        raise SourceError(f"{path}: no start has a median; add p50 = ?")
    return Provider(substrate=facts.starts[0].substrate, starts=facts.starts)


def _range(text: str, key: str, units: dict[str, float], expected: str) -> Interval:
    """Parse ``120ms`` or ``100ms..300ms``; the value of a range is the middle."""
    matches = [re.fullmatch(r"(\d*\.?\d+(?:e-?\d+)?|\d+\.)(ms|s|)", part) for part in text.split("..")]
    ends = [float(match[1]) * units.get(match[2], math.nan) if match else math.nan for match in matches]
    if len(ends) > 2 or not 0 <= ends[0] <= ends[-1] <= 1e6 or (key == "slowdown" and not ends[0]):
        raise TrainingRunError(f"{key} must be {expected}, or a range of two (least..most), not {text!r}")
    return Interval(math.fsum(ends) / len(ends), ends[0], ends[-1])


_OPTIONS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "dispatch": ("dispatch_s", lambda text: _range(text, "dispatch", {"ms": 1e-3, "s": 1.0}, "a duration in ms or s")),
    "slowdown": ("slowdown", lambda text: _range(text, "slowdown", {"": 1.0}, "a factor above 0")),
    "profile": ("profile", load_profile),
    "prices": ("prices", load_prices),
}
"""Option of a user → field of ``Provider``, and the function that reads a value."""


def _format_range(interval: Interval, form: str) -> str:
    value, low, high = map(form.format, interval)
    return value if low == high else f"{value}, from {low} to {high}"
