"""Recorded trials rescaled to another place or concurrency: start, dispatch and command time.

Over concurrency a duration follows one curve through the measured levels, which never falls: values that do are pooled
with their neighbours (Ayer et al., Ann. Math. Statist. 26, 1955). Between two levels the curve is linear in both
logarithms. Beyond the highest level the value is constant. Up to twice that level the value has an upper limit; above,
the value is a lower limit only.
"""

from __future__ import annotations

import copy
import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Self

import msgspec

from costmodel.pricing.sheet import Prices
from costmodel.recording.breakdown import UNKNOWN, Split
from costmodel.recording.trial import RecordedTrial
from costmodel.statistics.intervals import Interval, mean_interval, student_t
from costmodel.training.run import TrainingRun
from costmodel.units import NS_PER_S
from costmodel.workload.pool import Pool, one_per_level

_PARTS: Final = ("startup", "work", "dispatch", "unsplit", "harness")
"""Parts of ``Measures`` with a curve of their own over concurrency; think time and throttles are constant."""


FARTHEST: Final = 2
"""Largest multiple of the highest level with an upper limit."""


class Level(NamedTuple):
    """A measured mean at one concurrency, with the variance of the mean; 0: unknown."""

    at_a_time: int
    value: float
    variance: float = 0.0


class LevelCurve(NamedTuple):
    """A curve through ascending levels of different concurrency."""

    levels: tuple[Level, ...]  # made monotone

    @classmethod
    def of(cls, levels: Sequence[Level]) -> Self:
        return cls(_rising(sorted(levels)))

    def beyond(self, at_a_time: int) -> float:
        """Return the multiple of the highest level, or 1 up to that level."""
        return max(1.0, at_a_time / self.levels[-1].at_a_time)

    def at(self, at_a_time: int) -> Interval:
        """Return the value at a concurrency.

        Between levels the limits are the values of the neighbours, the only bounds of a curve that never falls; their
        sampling error is added where known. Above the highest level its value stays, with the upper limit of a
        bottleneck just above: time grows in proportion to the concurrency, or faster if it already did before.
        """
        last = self.levels[-1]
        if (times := self.beyond(at_a_time)) > 1:
            slope = 0.0
            if len(self.levels) > 1 and (before := self.levels[-2]).value:
                slope = math.log(last.value / before.value) / math.log(last.at_a_time / before.at_a_time)
            off = student_t(1_000) * math.sqrt(last.variance)
            high = None if times > FARTHEST else (last.value + off) * times ** max(1.0, slope)
            return Interval(last.value, max(0.0, last.value - off), high)
        below = max((level for level in self.levels if level.at_a_time <= at_a_time), default=self.levels[0])
        above = min(level for level in self.levels if level.at_a_time >= at_a_time)
        value = below.value
        if above.at_a_time > below.at_a_time:
            share = math.log(at_a_time / below.at_a_time) / math.log(above.at_a_time / below.at_a_time)
            if below.value > 0 and above.value > 0:
                value = below.value ** (1 - share) * above.value**share
            else:  # no logarithm exists
                value = (1 - share) * below.value + share * above.value
        under, over = (student_t(1_000) * math.sqrt(level.variance) for level in (below, above))
        return Interval(value, max(0.0, below.value - under), above.value + over)


def _rising(levels: Sequence[Level]) -> tuple[Level, ...]:
    """Replace falling neighbours by their mean, weighted by inverse variances where all are known."""
    all_known = all(level.variance > 0 for level in levels)
    blocks: list[list[tuple[Level, float]]] = []
    for level in levels:
        weight = 1 / level.variance if all_known else 1 / level.value**2 if level.value else 1.0
        blocks.append([(level, weight)])
        while len(blocks) > 1 and _pooled(blocks[-2]) > _pooled(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    return tuple(
        level if len(block) == 1 else level._replace(value=_pooled(block)) for block in blocks for level, _ in block
    )


def _pooled(block: Sequence[tuple[Level, float]]) -> float:
    return math.fsum(weight * level.value for level, weight in block) / math.fsum(weight for _, weight in block)


class Assumption(NamedTuple):
    """An unmeasured input of a row."""

    name: str  # field of the training run, or the assumed input
    value: str
    source: str


class MeasuredLevels(NamedTuple):
    """Derivation of a row from cells at several concurrencies."""

    levels: tuple[tuple[int, float], ...]  # concurrency, and occupied time of a success in s without think time
    at_a_time: int  # concurrency of the row
    beyond: float  # multiple of the highest level; 1: not beyond
    law: str  # in words: at a level, between two, or beyond


class Alternatives(NamedTuple):
    """Inputs of one row; without ends the pool is as recorded."""

    value: Pool
    training_run: TrainingRun
    prices: Prices | None
    ends: tuple[Pool, ...] = ()  # low and high scenario of unmeasured inputs
    assumptions: tuple[Assumption, ...] = ()
    flags: tuple[str, ...] = ()
    levels: MeasuredLevels | None = None
    at_least: bool = False  # no upper limit


def at_scale(levels: Sequence[Pool], training_run: TrainingRun, prices: Prices | None) -> Alternatives:
    """Return the row's inputs of a cell at several concurrencies, for the training run's sandboxes per host.

    The trials of the next higher measured concurrency are rescaled: start, dispatch and command time each along a
    curve. The limits are those of the curve of the total. Beyond the highest level the row stays that level's, and from
    ``FARTHEST`` times that level on it has no upper limit.
    """
    at_a_time = training_run.host_concurrency
    ordered = one_per_level(levels)
    if len(ordered) == 1:
        return Alternatives(ordered[0], training_run, prices)
    base = next((pool for pool in ordered if pool.identity.concurrency >= at_a_time), ordered[-1])
    whole = _curve(ordered, *_PARTS)
    limits_of_whole, base_ns = whole.at(at_a_time), whole.at(base.identity.concurrency).value
    factors, value = {}, 0.0
    for part in _PARTS:
        curve, times = _curve(ordered, part), _values(base, part)
        at_base_ns = curve.at(base.identity.concurrency).value
        factors[part] = curve.at(at_a_time).value / at_base_ns if at_base_ns > 0 else 1.0
        value += factors[part] * (sum(times) / len(times))
    value = value or 1.0
    limits = None if at_a_time == base.identity.concurrency else limits_of_whole.limits
    ends = [_scaled(base, {name: factor * end / value for name, factor in factors.items()}) for end in limits or ()]
    return Alternatives(
        value=base if at_a_time >= base.identity.concurrency else _scaled(base, factors),
        training_run=training_run,
        prices=prices,
        ends=tuple(ends),
        at_least=limits_of_whole.high is None,
        levels=MeasuredLevels(
            tuple((level.at_a_time, level.value / NS_PER_S) for level in whole.levels),
            at_a_time,
            whole.beyond(at_a_time),
            _in_words(whole, at_a_time, value / (base_ns or 1.0)),
        ),
    )


def _values(pool: Pool, *parts: str) -> list[int]:
    """Return the sum of these parts for each success."""
    return [sum(getattr(trial.measures, f"{part}_ns") for part in parts) for trial in pool.successes]


def _curve(pools: Sequence[Pool], *parts: str) -> LevelCurve:
    levels = []
    for pool in pools:
        mean = mean_interval(_values(pool, *parts))
        half = 0.0 if mean.low is None or mean.high is None else (mean.high - mean.low) / 4
        levels.append(Level(pool.identity.concurrency, mean.value, half**2))
    return LevelCurve.of(levels)


def _scaled(base: Pool, factors: dict[str, float]) -> Pool:
    """Return the pool with its successes rescaled by a factor for each part."""
    new = copy.copy(base)
    new.trials = [remade(trial, factors) if trial.ok else trial for trial in base.trials]
    return new


def _in_words(curve: LevelCurve, at_a_time: int, factor: float) -> str:
    below = max((level.at_a_time for level in curve.levels if level.at_a_time <= at_a_time), default=0)
    above = min((level.at_a_time for level in curve.levels if level.at_a_time >= at_a_time), default=0)
    if below == above:
        return f"measured at {below}"
    if not below:
        return f"as at {above}, the lowest level"
    if above:
        return f"between {below} and {above}, x{factor:.3g} of the latter"
    beyond = f"{curve.beyond(at_a_time):.3g} times the highest level of {curve.levels[-1].at_a_time}"
    high = curve.at(at_a_time).high
    if high is None:
        return f"{beyond}: at least as there; measure it with --concurrency {at_a_time}"
    return (
        f"{beyond}: as there, or at most x{high / (curve.levels[-1].value or 1.0):.3g}; --concurrency {at_a_time} tells"
    )


def remade(
    trial: RecordedTrial,
    factors: Mapping[str, float],
    *,
    start_ns: int | None = None,
    dispatch_ns: int | None = None,
    unsplit_more_ns: int = 0,
    ends: bool = True,
) -> RecordedTrial:
    """Rescale the parts of a complete success by ``factors``; think time stays, milestones are dropped.

    ``work`` is for CPU time, too. ``dispatch`` and ``unsplit`` are for commands with known and unknown in-sandbox time.
    ``start_ns`` replaces create and ready, ``dispatch_ns`` the dispatch of each command, and ``unsplit_more_ns`` is
    added per command. Without ``ends`` clean-up and throttles are unknown, counted as none.
    """
    startup, work, dispatch, unsplit, harness = (factors.get(part, 1.0) for part in _PARTS)
    new, old, of_setup = copy.copy(trial), trial.measures, dispatch
    if dispatch_ns is not None and trial.actions.dispatch_ns:
        # The number of set-up commands is not recorded, so the set-up's dispatch scales as the actions'.
        of_setup = dispatch_ns * len(trial.durations_ns) / trial.actions.dispatch_ns
    new.setup = Split(
        round(trial.setup.work_ns * work),
        round(trial.setup.dispatch_ns * of_setup),
        round(trial.setup.unsplit_ns * unsplit),
        trial.setup.divided,
        trial.setup.wrapper_ns,
    )
    new.durations_ns, new.runs_ns = array("q"), array("q")
    for taken_ns, run_ns, wrapper_ns in zip(trial.durations_ns, trial.runs_ns, trial.wrappers_ns, strict=True):
        if run_ns == UNKNOWN:
            new.durations_ns.append(round(taken_ns * unsplit) + unsplit_more_ns)
            new.runs_ns.append(UNKNOWN)
            continue
        own_ns = round(run_ns * work)
        rest_ns = round((taken_ns - run_ns - wrapper_ns) * dispatch) if dispatch_ns is None else dispatch_ns
        new.durations_ns.append(own_ns + rest_ns + wrapper_ns)
        new.runs_ns.append(own_ns)
    new.actions = Split.of(new.durations_ns, new.runs_ns, new.wrappers_ns)
    new.gaps_ns = array("q", (round(gap * harness) for gap in trial.gaps_ns))
    new.gap_ns = sum(new.gaps_ns)
    new.cpu_ns = None if trial.cpu_ns is None else round(trial.cpu_ns * work)
    create_ns, ready_ns, preload_ns = (round(ns * startup) for ns in (old.create_ns, old.ready_ns, old.preload_ns))
    if start_ns is not None:
        create_ns, ready_ns, preload_ns = start_ns, 0, old.preload_ns
    commands, queued_ns = new.setup.plus(new.actions), old.queued_ns * ends
    harness_ns = round((old.harness_ns - trial.gap_ns) * harness) + new.gap_ns
    held_ns = queued_ns + create_ns + ready_ns + preload_ns + commands.taken_ns + harness_ns + old.think_ns
    new.measures = msgspec.structs.replace(
        old,
        create_ns=create_ns,
        ready_ns=ready_ns,
        preload_ns=preload_ns,
        setup_ns=old.setup_ns + new.setup.taken_ns - trial.setup.taken_ns,
        work_ns=commands.work_ns,
        dispatch_ns=commands.dispatch_ns,
        unsplit_ns=commands.unsplit_ns,
        harness_ns=harness_ns,
        queued_ns=queued_ns,
        held_ns=held_ns,
        ready_again_ns=None,
        cleanup_ns=old.cleanup_ns if ends else None,
        verify_ns=None,
        orchestration_ns=None,
        wrapper_ns=commands.wrapper_ns,
        waiting_ns=None if old.waiting_ns is None else round(old.waiting_ns * work),
    )
    new.sandbox_ns = max(0, trial.sandbox_ns + held_ns - old.held_ns) if ends else held_ns
    return new
