"""What is published of a provider, put together: how long a start takes, limits, prices, the speed of its work.

A value is the latest that a source says; from ``low`` to ``high`` lies all that sources say, of whatever date.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Final, NamedTuple

import msgspec

from costmodel.errors import SourceError, TrainingRunError
from costmodel.pricing.sheet import SHIPPED_PRICES, Prices, load_prices
from costmodel.providers import published_figures
from costmodel.providers.limits import Profile, known_profiles, load_profile
from costmodel.recording import published
from costmodel.recording.breakdown import parted
from costmodel.recording.published import ProviderTable, Published, PublishedSpeed, PublishedStart
from costmodel.recording.reader import Recording
from costmodel.statistics.scalability import Level, LevelCurve
from costmodel.workload.scenario_range import Assumption

NORMAL_95: Final = NormalDist().inv_cdf(0.95)
_USUAL_PLAN: Final = {"e2b": "e2b-pro", "novita": "novita-enterprise", "vercel": "vercel-pro"}
"""Which plan of several counts unless one is named."""
_KEYS: Final = ProviderTable.__struct_fields__
_UNITS: Final = {"ms": 1e-3, "s": 1.0}


class Span(NamedTuple):
    """What sources say."""

    low: float
    value: float
    high: float


AS_RECORDED: Final = Span(1.0, 1.0, 1.0)


class Dispatch(NamedTuple):
    """Getting one command in and its result out, in s."""

    seconds: Span  # of one command
    each_ns: tuple[int, ...]  # of commands that were measured there; (): one value for all
    source: str


class StartLaw(NamedTuple):
    """A lognormal law of how long a start takes, with the printed median and 95th percentile."""

    p50_s: float
    p95_s: float

    @property
    def sigma(self) -> float:
        """The standard deviation of the logarithm."""
        return max(0.0, math.log(self.p95_s / self.p50_s) / NORMAL_95)

    def strata(self, count: int) -> list[float]:
        """Means over as many equally likely parts, ascending, in s: their mean is the law's."""
        sigma, normal = self.sigma, NormalDist()
        if sigma == 0:
            return [self.p50_s] * count
        edges = [-math.inf, *(normal.inv_cdf(part / count) for part in range(1, count)), math.inf]
        below = [normal.cdf(edge - sigma) for edge in edges]
        mean_s = self.p50_s * math.exp(sigma**2 / 2)
        return [count * mean_s * (upper - lower) for lower, upper in pairwise(below)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """What is known of one provider, and from whom."""

    substrate: str
    starts: tuple[PublishedStart, ...]  # at least one has a median
    dispatch: Dispatch | None = None  # None: nobody published it
    slowdown: Span = AS_RECORDED
    slowdown_source: str = "assumed: as fast as where the work was recorded"
    profile: Profile | None = None
    prices: Prices | None = None
    stated: frozenset[str] = frozenset()  # options that the user gave, which are known and have no range

    @property
    def newest(self) -> list[PublishedStart]:
        """The starts of the latest date that have a median, by how many at a time."""
        told = [start for start in self.starts if start.p50_s is not None]
        latest = max(start.date for start in told)
        return sorted((start for start in told if start.date == latest), key=lambda start: start.at_a_time)

    @property
    def at_a_time(self) -> int:
        """The most starts at a time of which something is published."""
        return self.newest[-1].at_a_time

    def start_laws(self, at_a_time: int) -> tuple[StartLaw, StartLaw, StartLaw]:
        """The quickest that a source says, that for so many starts at a time, and the slowest."""
        newest = self.newest
        spread = max((start.p95_s or start.p50_s or 0.0) / (start.p50_s or 1.0) for start in newest)

        def p95_s(start: PublishedStart) -> float:
            return start.p95_s or (start.p50_s or 0.0) * spread  # of earlier dates only medians are kept

        laws = [StartLaw(start.p50_s, p95_s(start)) for start in self.starts if start.p50_s is not None]
        p50 = LevelCurve.of([Level(start.at_a_time, start.p50_s or 0.0) for start in newest])
        p95 = LevelCurve.of([Level(start.at_a_time, p95_s(start)) for start in newest])
        most = min(at_a_time, self.at_a_time)  # beyond what was published it is flagged, not guessed
        own = StartLaw(p50.at(most).value, p95.at(most).value)
        return min(laws), own, max(laws)

    def assumptions(self, at_a_time: int) -> list[Assumption]:
        """Every value with its source and its date, for ``at_a_time`` starts at a time."""
        low, own, high = self.start_laws(at_a_time)
        newest = self.newest[-1]
        dates = sorted({str(start.date) for start in self.starts})
        told = [
            Assumption(
                "start",
                f"median {own.p50_s:.3g} s, 95th percentile {own.p95_s:.3g} s (lognormal); "
                f"medians from {low.p50_s:.3g} to {high.p50_s:.3g} s since {dates[0]}",
                f"{newest.source}, {newest.date}, until {newest.until}, up to {self.at_a_time} at a time",
            ),
            Assumption("work speed", _told(self.slowdown, "{:.3g} times as long"), self.slowdown_source),
        ]
        if self.dispatch is not None:
            told.append(Assumption("dispatch", _told(self.dispatch.seconds, "{:.3g} s"), self.dispatch.source))
        if self.profile is not None:
            told += [Assumption("limits", line, f"profile {self.profile.name}") for line in self.profile.said]
        if self.prices is not None:
            told += [Assumption("prices", price.sheet, price.source) for price in self.prices.sandboxes]
        return told


def load_provider(spec: str, read: Callable[[str], Recording | Published] | None = None) -> Provider:
    """A provider by name or a file of one's own, with what is said of it otherwise.

    ``spec`` is ``NAME[:key=value,…]``: ``dispatch`` is a duration, two of them (``100ms..300ms``) or a recording that
    ``read`` opens; ``slowdown`` is a factor or two; ``profile`` and ``prices`` are names or files.

    Raises:
        TrainingRunError: it is unknown, or an option is.
        PriceError, SourceError: a sheet or a file is wrong.
    """
    name, _, options = spec.partition(":")
    found = _from_file(Path(name)) if name.endswith(".toml") else _shipped(name)
    for option in filter(None, options.split(",")):
        key, _, value = option.partition("=")
        if key not in _KEYS or not value:
            raise TrainingRunError(f"--compose {spec}: {option!r} is none of {', '.join(f'{key}=…' for key in _KEYS)}")
        found = _with_option(found, key, value, read)
        found = replace(found, stated=found.stated | {key})
    return found


def known_providers() -> list[str]:
    """Of which a start is published that a median tells."""
    return sorted(
        {start.substrate for file in published_figures.shipped() for start in file.starts if start.p50_s is not None}
    )


def _shipped(name: str) -> Provider:
    files = published_figures.shipped()
    starts = [start for file in files for start in file.starts if start.substrate == name]
    if not any(start.p50_s is not None for start in starts):
        raise TrainingRunError(f"no start of {name!r} is published; known are {', '.join(known_providers())}")
    if len({start.variant for start in starts}) > 1:
        variants = ", ".join(dict.fromkeys(start.variant for start in starts))
        raise TrainingRunError(f"the starts of {name!r} are of {variants}: measure it, or write a file of your own")
    slowdown, source = _slowdown(name, [speed for file in files for speed in file.speeds])
    profile = _USUAL_PLAN.get(name, name)
    return Provider(
        substrate=name,
        starts=tuple(starts),
        slowdown=slowdown,
        slowdown_source=source,
        profile=load_profile(profile) if profile in known_profiles() else None,
        prices=load_prices(name) if (SHIPPED_PRICES / f"{name}.toml").is_file() else None,
    )


def _slowdown(name: str, speeds: Sequence[PublishedSpeed]) -> tuple[Span, str]:
    """Up to what the same work takes longer than on the fastest that is published."""
    own = [speed for speed in speeds if speed.substrate == name]
    if not own:
        return AS_RECORDED, "assumed: as fast as where the work was recorded"
    factors = [one.seconds / min(other.seconds for other in speeds if other.work == one.work) for one in own]
    source = f"{own[0].source}, {own[0].date}: {own[0].work}, against the fastest there"
    return Span(1.0, math.sqrt(max(factors)), max(factors)), source


def _from_file(path: Path) -> Provider:
    """A file of published figures of one substrate; ``[provider]`` in it holds what options say of a shipped one."""
    facts = published.read_published(path)
    if len({(start.substrate, start.variant) for start in facts.starts}) != 1:
        raise SourceError(f"{path}: a provider is one substrate; give [[starts]] of one, with p50_s")
    if all(start.p50_s is None for start in facts.starts):
        raise SourceError(f"{path}: no start has a median; add p50_s = ?")
    found = Provider(substrate=facts.starts[0].substrate, starts=facts.starts)
    for key, value in msgspec.structs.asdict(facts.provider).items():
        if value is not None:
            beside = path.parent / value  # a file that it names lies where it does
            found = _with_option(found, key, str(beside) if beside.is_file() else value, None)
            found = replace(found, stated=found.stated | {key})
    return found


def _with_option(
    found: Provider, key: str, value: str, read: Callable[[str], Recording | Published] | None
) -> Provider:
    if key == "profile":
        return replace(found, profile=load_profile(value))
    if key == "prices":
        return replace(found, prices=load_prices(value))
    if key == "slowdown":
        return replace(found, slowdown=_span(value, {"": 1.0}, key), slowdown_source="given")
    if value[0].isdigit() or value[0] == ".":
        return replace(found, dispatch=Dispatch(_span(value, _UNITS, key), (), "given"))
    if read is None:
        raise TrainingRunError(f"dispatch must be a duration such as 120ms or 100ms..300ms, not {value!r}")
    source = read(value)
    if not isinstance(source, Recording):
        raise TrainingRunError(f"dispatch={value}: published figures tell no dispatch; give a recording")
    return replace(found, dispatch=_measured_dispatch(source))


def _measured_dispatch(recording: Recording) -> Dispatch:
    trials = [trial for cell in recording.cells for trial in cell.trials if trial.ok]
    each = [ns for trial in trials for ns in parted(trial.durations_ns, trial.runs_ns, trial.wrappers_ns)[1]]
    if not each:
        raise TrainingRunError(f"{recording.name} tells no command's time inside the sandbox, hence no dispatch")
    seconds = sum(each) / len(each) / 1e9
    substrates = ", ".join(dict.fromkeys(cell.identity.label for cell in recording.cells))
    told = f"{len(each):,} commands on {substrates} in {recording.name}"
    return Dispatch(Span(seconds, seconds, seconds), tuple(each), told)


def _span(text: str, units: dict[str, float], key: str) -> Span:
    """``120ms`` or ``100ms..300ms``; the middle of two."""
    ends = [_number(part, units, key) for part in text.split("..")]
    if len(ends) > 2 or ends != sorted(ends):
        raise TrainingRunError(f"{key} must be one value or least..most, not {text!r}")
    return Span(ends[0], math.fsum(ends) / len(ends), ends[-1])


def _number(text: str, units: dict[str, float], key: str) -> float:
    unit = next((unit for unit in sorted(units, key=len, reverse=True) if text.endswith(unit)), None)
    try:
        value = float(text.removesuffix(unit or "")) * units[unit] if unit is not None else math.nan
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf or (key == "slowdown" and not value):
        what = "a factor above 0" if key == "slowdown" else f"a duration in {' or '.join(_UNITS)}"
        raise TrainingRunError(f"{key} must be {what}, not {text!r}")
    return value


def _told(span: Span, form: str) -> str:
    low, value, high = span
    if low == high:
        return form.format(value)
    return f"{form.format(value)}, from {form.format(low)} to {form.format(high)}"
