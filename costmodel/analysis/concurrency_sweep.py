"""A cell at several concurrencies: throughput of each level, saturation point, and the limiting side.

The saturation point is the last level surely within 1.5 times the first level's completion, if the next is surely
beyond. Throughput is slots x successes / time of the slots (J. D. C. Little, Oper. Res. 9, 1961).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, repeat
from operator import sub
from statistics import fmean, median
from typing import Final, NamedTuple

from costmodel.recording.breakdown import has_schedule
from costmodel.recording.events import Health
from costmodel.recording.runner_health import CPU_LIMIT_PERMILLE, WorkerFitness
from costmodel.recording.trial import RecordedTrial
from costmodel.statistics.intervals import Interval, quantile
from costmodel.statistics.repetitions import Basis, Estimate, Origin, assumed, basis, estimate, interval
from costmodel.statistics.verdict import ratio
from costmodel.workload.pool import Pool, by_levels, one_per_level

WITHIN: Final = 1.5
TURNS: Final = 2
"""Turns of the event loop per command at least: sending the command, and reading its result."""
RUNNER: Final = "runner"
SUBSTRATE: Final = "substrate"
UNKNOWN: Final = "unknown"

Blocks = dict[Origin, dict[int, list[RecordedTrial]]]
"""Trials of each block, by worker and in the order of their starts."""


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
    vs_first: Interval  # mean completion / the first level's
    basis: Basis
    runner: RunnerLoad | None  # None: no health sample


class SaturationPoint(NamedTuple):
    """Saturation point; ``at`` is None where no level shows saturation, or the data cannot tell where."""

    at: int | None
    throughput_per_s: Interval  # of the last level surely within the limit
    whose: str  # RUNNER, SUBSTRATE or UNKNOWN
    why: str


class Ladder(NamedTuple):
    """A cell at its levels, ascending."""

    pools: tuple[Pool, ...]
    levels: tuple[LadderLevel, ...]
    knee: SaturationPoint


def ladders(pools: Iterable[Pool], run_sd: float | None = None) -> list[Ladder]:
    """Return the ladders of all cells with two or more levels and full slots; ``run_sd`` as in ``TrainingRun``."""
    full = [pool for pool in pools if not has_schedule(pool.identity.arrival) and pool.succeeded]
    result = []
    for group in filter(lambda group: len(group) > 1, map(one_per_level, by_levels(full))):
        first = _completion(group[0])
        levels = tuple(_level(pool, first, run_sd) for pool in group)
        result.append(Ladder(tuple(group), levels, _saturation(levels)))
    return result


def _completion(pool: Pool) -> Estimate:
    good = pool.successes
    return estimate([t.measures.trajectory_ns for t in good], [1] * len(good), [(t.run, t.block) for t in good])


def _level(pool: Pool, first: Estimate, run_sd: float | None) -> LadderLevel:
    """Return the measurements of a level."""
    good, assume = pool.successes, assumed(pool.identity.substrate, run_sd)
    blocks: Blocks = {}
    for trial in sorted(pool.trials, key=lambda trial: trial.start_ns):
        blocks.setdefault((trial.run, trial.block), {}).setdefault(trial.worker, []).append(trial)
    throughput = interval(_throughput(blocks, pool.identity.concurrency), assume).not_negative()
    completion = _completion(pool)
    actions_ns = sorted(ns for trial in good for ns in trial.durations_ns) or [0]
    return LadderLevel(
        concurrency=pool.identity.concurrency,
        trials=len(pool.trials),
        failures=len(pool.trials) - len(good),
        throughput_per_s=throughput,
        actions_per_s=throughput.times(fmean(len(trial.durations_ns) for trial in good)),
        action_ns=fmean(actions_ns),
        action_p50_ns=quantile(actions_ns, 0.5),
        action_p95_ns=quantile(actions_ns, 0.95),
        completion_ns=completion.value,
        vs_first=ratio(completion, first, assume) or Interval(1.0),
        basis=basis(completion, assume),
        runner=_load(pool, blocks),
    )


def _throughput(blocks: Blocks, concurrency: int) -> Estimate:
    """Return successes per s with all slots taken; a slot's time lasts until the next trial starts.

    The last trials of a block, one per slot, do not count if others do, but for workers with one slot.
    """
    full, every = list[tuple[bool, float, Origin]](), list[tuple[bool, float, Origin]]()
    for origin, workers in blocks.items():
        used = list(map(_slots, workers.values()))
        for trials, slots in zip(workers.values(), used, strict=True):
            ends, starts = sorted(t.freed_ns for t in trials), [t.start_ns for t in trials[slots:]]
            idle = chain(map(sub, starts, ends), repeat(0))
            scale = 1e9 * min(concurrency, sum(used))
            slot_times = zip(trials, idle, strict=False)
            parts = [(t.ok, max(1, t.freed_ns - t.start_ns + idle_ns) / scale, origin) for t, idle_ns in slot_times]
            every += parts
            full += parts[:-slots] if 1 < slots < len(parts) else parts
    successes, seconds, origins = zip(*(full if any(ok for ok, _, _ in full) else every), strict=True)
    return estimate(successes, seconds, origins)


def _slots(trials: Sequence[RecordedTrial]) -> int:
    """Return the most trials at a time: at equal instants ends come before starts."""
    changes = sorted((at_ns, change) for t in trials for at_ns, change in ((t.start_ns, 1), (t.freed_ns, -1)))
    return max(1, *accumulate(change for _, change in changes))


def _load(pool: Pool, blocks: Blocks) -> RunnerLoad | None:
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


def _saturation(levels: Sequence[LadderLevel]) -> SaturationPoint:
    """Return the saturation point. Higher levels are never faster, so lower levels may be unsure."""
    limits = [level.vs_first.limits or (0.0, math.inf) for level in levels]
    beyond = next((place for place, (low, _) in enumerate(limits) if low > WITHIN), len(levels))
    within = max(place for place, (_, high) in enumerate(limits[:beyond]) if high <= WITHIN or not place)
    at, (whose, why) = None, (UNKNOWN, f"not reached with {levels[-1].concurrency:,} at a time: go higher")
    if within + 1 < beyond:
        level, (low, high) = levels[within + 1], limits[within + 1]
        times = f"{level.vs_first.value:.3g} ({low:.3g} to {high:.3g}) times"
        why = f"cannot tell: completion at {level.concurrency:,} is {times} the first level's; plan more trials"
    elif beyond < len(levels):
        at, (whose, why) = levels[within].concurrency, _whose(levels[0], levels[beyond])
    return SaturationPoint(at, levels[within].throughput_per_s, whose, why)


def _whose(first: LadderLevel, level: LadderLevel) -> tuple[str, str]:
    """Return the limiting side and the reason, from the first level beyond saturation."""
    load, where = level.runner, f"at {level.concurrency:,}"
    if load is None:
        return UNKNOWN, f"the level {where} was over before the runner's health was told: plan more trials"
    cpu, lag_ms = f"{load.cpu_permille / 10:.0f} % of a core", load.lag_p50_ns / 1e6
    if load.cpu_permille > CPU_LIMIT_PERMILLE:
        return RUNNER, f"its CPU: {cpu} {where}"
    if load.waits > 0.5:
        return RUNNER, f"its threads: calls waited for one in {load.waits:.0%} of the seconds {where}"
    grown_ns = level.action_ns - first.action_ns
    if TURNS * load.lag_p50_ns > grown_ns / 2:
        return RUNNER, f"its event loop: {lag_ms:.3g} ms late at the median {where}, twice in a command"
    return SUBSTRATE, f"the runner took {cpu} and was {lag_ms:.3g} ms late at the median {where}"
