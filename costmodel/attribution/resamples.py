"""Weights of trials in a resample: what recordings of other trials of the same places might have been."""

from __future__ import annotations

import math
from random import Random

from costmodel.statistics.intervals import correlation_time
from costmodel.statistics.repetitions import MIN_RUNS, Assumed
from costmodel.workload.pool import Pool


def draws_runs(runs: int, spread: Assumed) -> bool:
    """Whether a resample is of whole runs: there are enough of them to show how much they differ."""
    return runs >= MIN_RUNS and not spread.given


def resampled(pool: Pool, spread: Assumed, rng: Random) -> tuple[list[int], float]:
    """How often each trial is in a resample, and how much slower its runs were: 1 where the runs themselves were drawn.

    Stretches of neighbouring trials are drawn, as long as trials hang together.
    """
    by_run: dict[object, list[int]] = {}
    for index, trial in enumerate(pool.trials):
        by_run.setdefault(trial.run, []).append(index)
    runs = list(by_run.values())
    factor = 1.0
    if draws_runs(len(runs), spread):
        runs = rng.choices(runs, k=len(runs))
    else:
        share = math.sqrt(sum(len(run) ** 2 for run in runs)) / len(pool.trials)
        factor = math.exp(rng.gauss(0, spread.sd * share))
    times = [0] * len(pool.trials)
    for run in runs:
        held = [float(pool.trials[index].measures.held_ns) for index in run]
        mean = math.fsum(held) / len(held)
        stretch = min(len(run), math.ceil(correlation_time([[ns - mean for ns in held]], only_if_seen=True)))
        drawn: list[int] = []
        while len(drawn) < len(run):
            begin = rng.randrange(len(run))
            drawn += [run[(begin + place) % len(run)] for place in range(stretch)]
        for index in drawn[: len(run)]:
            times[index] += 1
    if not any(times[index] for index, trial in enumerate(pool.trials) if trial.ok):
        times = [1] * len(times)  # without a success there is nothing to draw
    return times, factor


def halved(pool: Pool, spread: Assumed, rng: Random) -> tuple[list[int], float]:
    """Half of the trials of each run, in stretches of neighbours, and the assumed factor between runs.

    A mean of half of them is as far from that of all as that of all is from the truth. The longest trial is missing
    from every other half, whereas a resample of as many trials lacks it in one of three cases: resamples tell too
    little about what hangs on the longest. Whole runs are resampled where there are enough of them.
    """
    times, factor = resampled(pool, spread, rng)
    by_run: dict[object, list[int]] = {}
    for index, trial in enumerate(pool.trials):
        by_run.setdefault(trial.run, []).append(index)
    if draws_runs(len(by_run), spread):
        return times, factor
    times = [0] * len(pool.trials)
    for run in by_run.values():
        held = [float(pool.trials[index].measures.held_ns) for index in run]
        mean = math.fsum(held) / len(held)
        stretch = max(1, math.ceil(correlation_time([[ns - mean for ns in held]], only_if_seen=True)))
        stretches = [run[place : place + stretch] for place in range(0, len(run), stretch)]
        for drawn in rng.sample(stretches, max(1, len(stretches) // 2)):
            for index in drawn:
                times[index] = 1
    if not any(times[index] for index, trial in enumerate(pool.trials) if trial.ok):
        times = [1] * len(times)
    return times, factor
