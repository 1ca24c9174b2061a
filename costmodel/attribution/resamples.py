"""Weights of trials in a resample: what recordings of other trials of the same places might have been."""

from __future__ import annotations

import math
from random import Random

from costmodel.statistics.intervals import correlation_time
from costmodel.statistics.repetitions import MIN_RUNS, Assumed
from costmodel.workload.pool import Pool


def draws_runs(runs: int, spread: Assumed) -> bool:
    """Return whether resamples draw whole repetitions: enough of them show how much repetitions differ."""
    return runs >= MIN_RUNS and not spread.given


def resampled(pool: Pool, spread: Assumed, rng: Random) -> tuple[list[int], float]:
    """Return how often a resample has each trial, and the factor of an assumed repetition effect.

    Where whole repetitions are drawn, the factor is 1. Within a repetition, stretches of neighbouring trials are drawn,
    as long as neighbours correlate.
    """
    runs = _by_run(pool)
    factor = 1.0
    if draws_runs(len(runs), spread):
        runs = rng.choices(runs, k=len(runs))
    else:
        share = math.sqrt(sum(len(run) ** 2 for run in runs)) / len(pool.trials)
        factor = math.exp(rng.gauss(0, spread.sd * share))
    times = [0] * len(pool.trials)
    for run in runs:
        stretch = min(len(run), _stretch(pool, run))
        drawn: list[int] = []
        while len(drawn) < len(run):
            begin = rng.randrange(len(run))
            drawn += [run[(begin + place) % len(run)] for place in range(stretch)]
        for index in drawn[: len(run)]:
            times[index] += 1
    return _with_a_success(pool, times), factor


def halved(pool: Pool, spread: Assumed, rng: Random) -> tuple[list[int], float]:
    """Return weights of half of the trials of each repetition, in stretches, and the factor as ``resampled``.

    The mean of half of the trials differs from the mean of all by as much as the mean of all differs from the truth.
    Every other half lacks the longest trial; a resample of as many trials lacks it in one of three cases. So resamples
    show too little about amounts that depend on the longest trial. Whole repetitions are resampled where
    ``draws_runs``.
    """
    times, factor = resampled(pool, spread, rng)
    runs = _by_run(pool)
    if draws_runs(len(runs), spread):
        return times, factor
    times = [0] * len(pool.trials)
    for run in runs:
        length = _stretch(pool, run)
        stretches = [run[place : place + length] for place in range(0, len(run), length)]
        for drawn in rng.sample(stretches, max(1, len(stretches) // 2)):
            for index in drawn:
                times[index] = 1
    return _with_a_success(pool, times), factor


def _by_run(pool: Pool) -> list[list[int]]:
    by_run: dict[object, list[int]] = {}
    for index, trial in enumerate(pool.trials):
        by_run.setdefault(trial.run, []).append(index)
    return list(by_run.values())


def _stretch(pool: Pool, run: list[int]) -> int:
    """Return the number of neighbouring trials that are worth one."""
    held = [float(pool.trials[index].measures.held_ns) for index in run]
    mean = math.fsum(held) / len(held)
    return max(1, math.ceil(correlation_time([[ns - mean for ns in held]], only_if_seen=True)))


def _with_a_success(pool: Pool, times: list[int]) -> list[int]:
    """Return the weights, or those of all trials where no success has a weight."""
    drawn = any(times[index] for index, trial in enumerate(pool.trials) if trial.ok)
    return times if drawn else [1] * len(times)
