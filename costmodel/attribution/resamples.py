"""Resamples of trials, and intervals from simulations with recorded and with resampled trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from random import Random
from typing import Final

from costmodel.statistics.intervals import Interval, correlation_time, student_t
from costmodel.statistics.repetitions import MIN_RUNS, Assumed
from costmodel.workload.pool import Pool


def draws_runs(runs: int, spread: Assumed) -> bool:
    """Return whether resamples draw whole repetitions, because there are enough of them."""
    return runs >= MIN_RUNS and not spread.by_user


def resampled(pool: Pool, spread: Assumed, rng: Random, *, halved: bool = False) -> tuple[list[int], float]:
    """Return how often a resample has each trial, and the factor of an assumed repetition effect.

    The factor is 1 if whole repetitions are drawn. Within a repetition, stretches of neighbouring trials are drawn,
    as long as neighbours correlate.

    ``halved``: half of the trials of each repetition, once, unless whole repetitions are drawn. Their mean differs from
    the mean of all as much as the mean of all from the truth. Every other half lacks the longest trial, but only one of
    three resamples of full size, which hides how amounts depend on the longest trial.
    """
    runs = _by_run(pool)
    factor = 1.0
    if draws_runs(len(runs), spread):
        runs, halved = rng.choices(runs, k=len(runs)), False
    else:
        share = math.sqrt(sum(len(run) ** 2 for run in runs)) / len(pool.trials)
        factor = math.exp(rng.gauss(0, spread.sd * share))
    times = [0] * len(pool.trials)
    for run in runs:
        stretch = min(len(run), _stretch(pool, run))
        drawn: list[int] = []
        if halved:
            stretches = [run[place : place + stretch] for place in range(0, len(run), stretch)]
            drawn = list(chain.from_iterable(rng.sample(stretches, max(1, len(stretches) // 2))))
        while not halved and len(drawn) < len(run):
            begin = rng.randrange(len(run))
            drawn += [run[(begin + place) % len(run)] for place in range(stretch)]
        for index in drawn[: len(run)]:
            times[index] += 1
    drawn_a_success = any(times[index] for index, trial in enumerate(pool.trials) if trial.ok)
    return times if drawn_a_success else [1] * len(times), factor


def _by_run(pool: Pool) -> list[list[int]]:
    by_run: dict[object, list[int]] = {}
    for index, trial in enumerate(pool.trials):
        by_run.setdefault(trial.run, []).append(index)
    return list(by_run.values())


def _stretch(pool: Pool, run: list[int]) -> int:
    """Return the number of neighbouring trials with the information of one."""
    held = [float(pool.trials[index].measures.held_ns) for index in run]
    mean = math.fsum(held) / len(held)
    return max(1, math.ceil(correlation_time([[ns - mean for ns in held]], only_if_seen=True)))


CHANCE_AT_MOST: Final = 0.5
"""Largest share of the variance between streams and twins attributed to chance. With few twins a full subtraction would
give intervals with a coverage of 8 in 10."""
LONGEST: Final = math.sqrt(2)
"""Half of the trials understate a difference of the longest trials of a step. With this factor an equal pair is a
verdict in at most 5 % (``tests/studies/study_decide.py``)."""
ANOTHER: Final = math.sqrt(2)
"""Factor for other random numbers, which have the same error."""
Steps = list[float]
"""Amount of each simulated step under one stream, multiplied by its weight."""


def interval_of(
    plain: Sequence[Steps],
    twins: Sequence[Steps],
    stands_for: Steps,
    *,
    signed: bool = False,
    repetitions: int = 0,
) -> Interval:
    """Return the mean over streams with its limits.

    Two variances add up. The variance between a stream and its twin, less the variance from step to step, is the
    uncertainty of the trials. Nothing is subtracted from a ``signed`` difference, which a few longest trials decide.
    The variance between streams is the simulation error. An amount that is not ``signed`` has no negative limit where
    no stream is negative. Twins of n whole ``repetitions`` differ by (n − 1)/n of the variance between repetitions, and
    Student's t has n − 1 degrees of freedom.
    """
    totals = [math.fsum(stream) for stream in plain]
    value = math.fsum(totals) / len(totals)
    differences = [
        [a - b for a, b in zip(twin, plain_steps, strict=True)] for twin, plain_steps in zip(twins, plain, strict=True)
    ]
    differing = _variance([math.fsum(steps) for steps in differences])
    left_open = differing
    if not signed:
        left_open = max(differing - _from_step_to_step(differences, stands_for), (1 - CHANCE_AT_MOST) * differing)
    freedom = len(twins) - 1
    if repetitions:
        left_open *= repetitions / (repetitions - 1)
        freedom = min(freedom, repetitions - 1)
    of_trials = student_t(freedom) * math.sqrt(left_open) * (LONGEST if signed else 1.0)
    of_chance = student_t(len(totals) - 1) * standard_error(totals) * ANOTHER
    half = math.hypot(of_trials, of_chance)
    low = value - half
    return Interval(value, max(0.0, low) if min(totals) >= 0 and not signed else low, value + half)


def _from_step_to_step(sums: Sequence[Steps], stands_for: Steps) -> float:
    """Return the variance of a sum over steps due to chance within steps.

    This is the residual of a table of streams × steps without the means of both. The uncertainty of the trials is the
    same in every step. Each step has the same weight here.
    """
    streams, steps = len(sums), len(stands_for)
    if steps < 2:
        return 0.0
    values = [
        [value / times for value, times in zip(steps_of_world, stands_for, strict=True)] for steps_of_world in sums
    ]
    rows = [math.fsum(steps_of_world) / steps for steps_of_world in values]
    columns = [math.fsum(column) / streams for column in zip(*values, strict=True)]
    mean = math.fsum(rows) / streams
    squares = math.fsum(
        (value - row - column + mean) ** 2
        for row, steps_of_world in zip(rows, values, strict=True)
        for column, value in zip(columns, steps_of_world, strict=True)
    )
    return math.fsum(times * times for times in stands_for) * squares / ((streams - 1) * (steps - 1))


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean."""
    return math.sqrt(_variance(values) / len(values))


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
