"""Recorded trials rescaled to another place or concurrency: start, dispatch and command time."""

from __future__ import annotations

import copy
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from costmodel.pricing.sheet import Prices
from costmodel.recording.breakdown import UNKNOWN, Measures, Split
from costmodel.recording.trial import RecordedTrial
from costmodel.statistics.intervals import mean_interval
from costmodel.statistics.scalability import Level, LevelCurve
from costmodel.training.run import TrainingRun
from costmodel.units import NS_PER_S
from costmodel.workload.pool import Pool, one_per_level

Part = Callable[[Measures], int]
_PARTS: Final[dict[str, Part]] = {
    "startup": lambda measures: measures.startup_ns,
    "work": lambda measures: measures.work_ns,
    "dispatch": lambda measures: measures.dispatch_ns,
    "unsplit": lambda measures: measures.unsplit_ns,
    "harness": lambda measures: measures.harness_ns,
}
"""Parts with a curve of their own over concurrency; think time and throttles are constant."""


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
    whole = _curve(ordered, _held)
    limits_of_whole, base_ns = whole.at(at_a_time), whole.at(base.identity.concurrency).value
    factors = {name: _factor(_curve(ordered, part), base, at_a_time) for name, part in _PARTS.items()}
    value = sum(factors[name] * _mean(base, part) for name, part in _PARTS.items()) or 1.0
    limits = [end for end in (limits_of_whole.low, limits_of_whole.high) if end is not None]
    ends = [_scaled(base, {name: factor * end / value for name, factor in factors.items()}) for end in limits]
    exact = at_a_time == base.identity.concurrency
    return Alternatives(
        value=base if at_a_time >= base.identity.concurrency else _scaled(base, factors),
        training_run=training_run,
        prices=prices,
        ends=() if exact or len(ends) < 2 else tuple(ends),
        at_least=limits_of_whole.high is None,
        levels=MeasuredLevels(
            tuple((level.at_a_time, level.value / NS_PER_S) for level in whole.levels),
            at_a_time,
            whole.beyond(at_a_time),
            _in_words(whole, at_a_time, value / (base_ns or 1.0)),
        ),
    )


def _held(measures: Measures) -> int:
    return sum(part(measures) for part in _PARTS.values())


def _mean(pool: Pool, part: Part) -> float:
    return sum(part(trial.measures) for trial in pool.successes) / len(pool.successes)


def _curve(pools: Sequence[Pool], part: Part) -> LevelCurve:
    levels = []
    for pool in pools:
        values = [part(trial.measures) for trial in pool.successes]
        mean = mean_interval(values)
        half = 0.0 if mean.low is None or mean.high is None else (mean.high - mean.low) / 4
        levels.append(Level(pool.identity.concurrency, mean.value, half**2))
    return LevelCurve.of(levels)


def _factor(curve: LevelCurve, base: Pool, at_a_time: int) -> float:
    base_ns = curve.at(base.identity.concurrency).value
    return curve.at(at_a_time).value / base_ns if base_ns > 0 else 1.0


def _scaled(base: Pool, factors: dict[str, float]) -> Pool:
    new = copy.copy(base)
    new.trials = [remade(trial, _scaling(trial.measures, factors)) if trial.ok else trial for trial in base.trials]
    return new


def _scaling(measures: Measures, factors: dict[str, float]) -> Remaking:
    startup_ns = (measures.create_ns, measures.ready_ns, measures.preload_ns)
    create_ns, ready_ns, preload_ns = (round(ns * factors["startup"]) for ns in startup_ns)
    return Remaking(
        startup_ns=(create_ns, ready_ns, preload_ns),
        work=factors["work"],
        dispatch=factors["dispatch"],
        unsplit=factors["unsplit"],
        harness=factors["harness"],
    )


def _in_words(curve: LevelCurve, at_a_time: int, factor: float) -> str:
    below = max((level.at_a_time for level in curve.levels if level.at_a_time <= at_a_time), default=0)
    above = min((level.at_a_time for level in curve.levels if level.at_a_time >= at_a_time), default=0)
    if below == above:
        return f"measured at {below}"
    if not below:
        return f"as at {above}, the lowest level"
    if above:
        return f"between {below} and {above}, x{factor:.3g} of the latter"
    beyond = f"{curve.beyond(at_a_time):.3g} times the highest level of {curve.last}"
    high = curve.at(at_a_time).high
    if high is None:
        return f"{beyond}: at least as there; measure it with --concurrency {at_a_time}"
    return (
        f"{beyond}: as there, or at most x{high / (curve.levels[-1].value or 1.0):.3g}; --concurrency {at_a_time} tells"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaking:
    """Factors and replacements for the parts of a trial. Unset parts stay."""

    startup_ns: tuple[int, int, int]  # create, ready and preload
    work: float = 1.0  # factor, of CPU time too
    dispatch: float = 1.0  # factor, for commands with known in-sandbox time
    dispatch_ns: int | None = None  # of each command, instead of the factor
    unsplit: float = 1.0  # factor, for commands with unknown in-sandbox time
    unsplit_more_ns: int = 0  # and addition per command
    harness: float = 1.0
    ends: bool = True  # keep clean-up and throttles; False: unknown, counted as none


def remade(trial: RecordedTrial, change: Remaking) -> RecordedTrial:
    """Rescale a complete success; commands and think time stay, milestones are dropped."""
    new, old = copy.copy(trial), trial.measures
    new.setup = _setup(trial, change)
    new.durations_ns, new.runs_ns = _commands(trial, change)
    new.actions = Split.of(new.durations_ns, new.runs_ns, new.wrappers_ns)
    new.gaps_ns = array("q", (round(gap * change.harness) for gap in trial.gaps_ns))
    new.gap_ns = sum(new.gaps_ns)
    harness_ns = round((old.harness_ns - trial.gap_ns) * change.harness) + new.gap_ns
    create_ns, ready_ns, preload_ns = change.startup_ns
    queued_ns = old.queued_ns if change.ends else 0
    commands = new.setup.plus(new.actions)
    held_ns = queued_ns + create_ns + ready_ns + preload_ns + commands.taken_ns + harness_ns + old.think_ns
    new.cpu_ns = None if trial.cpu_ns is None else round(trial.cpu_ns * change.work)
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
        cleanup_ns=old.cleanup_ns if change.ends else None,
        verify_ns=None,
        orchestration_ns=None,
        wrapper_ns=commands.wrapper_ns,
        waiting_ns=None if old.waiting_ns is None else round(old.waiting_ns * change.work),
    )
    new.sandbox_ns = max(0, trial.sandbox_ns + held_ns - old.held_ns) if change.ends else held_ns
    new.end_ns = trial.start_ns + held_ns
    return new


def _setup(trial: RecordedTrial, change: Remaking) -> Split:
    setup, dispatch = trial.setup, change.dispatch
    if change.dispatch_ns is not None and trial.actions.dispatch_ns:
        # The number of set-up commands is not recorded, so the set-up's dispatch scales as the actions'.
        dispatch = change.dispatch_ns * len(trial.durations_ns) / trial.actions.dispatch_ns
    return Split(
        round(setup.work_ns * change.work),
        round(setup.dispatch_ns * dispatch),
        round(setup.unsplit_ns * change.unsplit),
        setup.divided,
        setup.wrapper_ns,
    )


def _commands(trial: RecordedTrial, change: Remaking) -> tuple[array[int], array[int]]:
    durations, runs = array("q"), array("q")
    columns = zip(trial.durations_ns, trial.runs_ns, trial.wrappers_ns, strict=True)
    for taken_ns, run_ns, wrapper_ns in columns:
        if run_ns == UNKNOWN:
            durations.append(round(taken_ns * change.unsplit) + change.unsplit_more_ns)
            runs.append(UNKNOWN)
            continue
        own_ns = round(run_ns * change.work)
        dispatch_ns = change.dispatch_ns
        if dispatch_ns is None:
            dispatch_ns = round((taken_ns - run_ns - wrapper_ns) * change.dispatch)
        durations.append(own_ns + dispatch_ns + wrapper_ns)
        runs.append(own_ns)
    return durations, runs
