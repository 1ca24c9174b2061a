"""A cell at several concurrencies: throughput of each level, saturation point, and the limiting side.

The saturation point is the last level before a completion beyond 1.5 times the first level's. Intervals are
bootstrapped by block, from three blocks a level on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from statistics import fmean, median
from typing import Final, NamedTuple

from costmodel.recording.breakdown import has_schedule
from costmodel.recording.events import Health
from costmodel.recording.runner_health import CPU_LIMIT_PERMILLE, WorkerFitness
from costmodel.recording.throughput import Rate, summed, together
from costmodel.recording.trial import RecordedTrial
from costmodel.statistics.intervals import MIN_CLUSTERS, Interval, quantile
from costmodel.statistics.repetitions import RunKey
from costmodel.workload.pool import Pool, by_levels, one_per_level

DRAWS: Final = 400
WITHIN: Final = 1.5
TURNS: Final = 2
"""Turns of the event loop per command at least: sending the command, and reading its result."""
RUNNER: Final = "runner"
SUBSTRATE: Final = "substrate"
UNKNOWN: Final = "unknown"


class RunnerLoad(NamedTuple):
    """Load of the measuring process during a level, over the seconds with health samples."""

    seconds: int
    cpu_permille: float  # medians
    lag_p50_ns: float
    lag_p99_ns: float
    waits: float  # share of seconds without a free thread


class LadderLevel(NamedTuple):
    """Measurements at a concurrency."""

    concurrency: int
    trials: int
    failures: int
    throughput_per_s: Interval  # of successful trials
    actions_per_s: Interval
    action_ns: float  # mean
    action_p50_ns: int
    action_p95_ns: int
    completion_ns: float  # mean
    runner: RunnerLoad | None  # None: no health sample


class SaturationPoint(NamedTuple):
    """Saturation point; ``at`` is None where no level shows saturation."""

    at: int | None
    throughput_per_s: Interval  # of the level; of the last level where none shows saturation
    whose: str  # RUNNER, SUBSTRATE or UNKNOWN
    why: str


class Ladder(NamedTuple):
    """A cell at its levels, ascending."""

    pools: tuple[Pool, ...]
    levels: tuple[LadderLevel, ...]
    knee: SaturationPoint


def ladders(pools: Iterable[Pool]) -> list[Ladder]:
    """Return the ladders of all cells with two or more levels and full slots."""
    full = [pool for pool in pools if not has_schedule(pool.identity.arrival) and pool.succeeded]
    result = []
    for group in filter(lambda group: len(group) > 1, map(one_per_level, by_levels(full))):
        levels = tuple(map(_level, group))
        limit_ns = WITHIN * levels[0].completion_ns
        beyond = next((place for place, level in enumerate(levels) if level.completion_ns > limit_ns), None)
        last = levels[-1 if beyond is None else beyond - 1]
        at = None if beyond is None else last.concurrency
        knee = SaturationPoint(at, last.throughput_per_s, *_whose(levels, beyond))
        result.append(Ladder(tuple(group), levels, knee))
    return result


def _level(pool: Pool) -> LadderLevel:
    """Return the measurements of a level."""
    good, concurrency = pool.successes, pool.identity.concurrency
    blocks: dict[tuple[RunKey, int], dict[int, list[RecordedTrial]]] = {}
    for trial in pool.trials:
        blocks.setdefault((trial.run, trial.block), {}).setdefault(trial.worker, []).append(trial)
    rates = []
    for workers in blocks.values():
        spans = ([(t.start_ns, t.freed_ns, t.ok) for t in trials] for trials in workers.values())
        rates.append(together(list(map(Rate.of, spans)), concurrency))
    throughput = _throughput(rates, concurrency)
    actions_ns = sorted(ns for trial in good for ns in trial.durations_ns) or [0]
    return LadderLevel(
        concurrency=concurrency,
        trials=len(pool.trials),
        failures=len(pool.trials) - len(good),
        throughput_per_s=throughput,
        actions_per_s=throughput.times(fmean(len(trial.durations_ns) for trial in good)),
        action_ns=fmean(actions_ns),
        action_p50_ns=quantile(actions_ns, 0.5),
        action_p95_ns=quantile(actions_ns, 0.95),
        completion_ns=fmean(trial.measures.trajectory_ns for trial in good),
        runner=_load(pool, blocks),
    )


def _load(pool: Pool, blocks: dict[tuple[RunKey, int], dict[int, list[RecordedTrial]]]) -> RunnerLoad | None:
    recordings = {recording.run_id: recording for recording in pool.recordings}
    seconds: list[Health] = []
    for (run, _), workers in blocks.items():
        for worker, trials in workers.items():
            fitness = recordings[run.run_id].workers.get(worker, WorkerFitness())
            seconds += fitness.within(min(t.start_ns for t in trials), max(t.freed_ns for t in trials))
    if not seconds:
        return None
    return RunnerLoad(
        seconds=len(seconds),
        cpu_permille=median(second.cpu_permille for second in seconds),
        lag_p50_ns=median(second.lag_p50_ns for second in seconds),
        lag_p99_ns=median(second.lag_p99_ns for second in seconds),
        waits=sum(second.pool_waits > 0 for second in seconds) / len(seconds),
    )


def _throughput(spans: Sequence[Rate], seed: int) -> Interval:
    """Return successes per s, with the middle 95 % of resampled blocks from three blocks on."""
    value = summed(spans).per_s
    if len(spans) < MIN_CLUSTERS:
        return Interval(value)
    source = Random(seed)
    ordered = sorted(summed(source.choices(spans, k=len(spans))).per_s for _ in range(DRAWS))
    low, high = (ordered[round(share * (DRAWS - 1))] for share in (0.025, 0.975))
    return Interval(value, min(value, low), max(value, high))


def _whose(levels: Sequence[LadderLevel], beyond: int | None) -> tuple[str, str]:
    """Return the limiting side and the reason, from the first level ``beyond`` saturation."""
    if beyond is None:
        return UNKNOWN, f"not reached with {levels[-1].concurrency:,} at a time: go higher"
    level = levels[beyond]
    load, where = level.runner, f"at {level.concurrency:,}"
    if load is None:
        return UNKNOWN, f"the level {where} was over before the runner's health was told: plan more trials"
    cpu, lag_ms = f"{load.cpu_permille / 10:.0f} % of a core", load.lag_p50_ns / 1e6
    if load.cpu_permille > CPU_LIMIT_PERMILLE:
        return RUNNER, f"its CPU: {cpu} {where}"
    if load.waits > 0.5:
        return RUNNER, f"its threads: calls waited for one in {load.waits:.0%} of the seconds {where}"
    grown_ns = level.action_ns - levels[0].action_ns
    if TURNS * load.lag_p50_ns > grown_ns / 2:
        return RUNNER, f"its event loop: {lag_ms:.3g} ms late at the median {where}, twice in a command"
    return SUBSTRATE, f"the runner took {cpu} and was {lag_ms:.3g} ms late at the median {where}"
