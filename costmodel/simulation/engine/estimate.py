"""Expectations of what the engine finds: how often it is repeated, what of a long run is simulated, how far off it is.

Repeated with one seed's stream of random numbers until the wall-clock's error is below the tolerance, or the events
are used up. Attempts are drawn independently, so that the mean of what they hold is known: how far a sample of them
is off takes the same noise out of everything that follows from it (a control variate).

A run of more attempts than can be simulated is simulated for as long as its throttles need to settle and a good while
more; the rest goes on as that while did, in whole waves of all workers. A system that is too large even for that is
made smaller in proportion, and what a smaller system can lose is part of the error: a queue that is shared by fewer
is longer, and the longest of fewer is shorter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final, NamedTuple

from costmodel.simulation.engine.events import Counts
from costmodel.simulation.engine.rules import Rules
from costmodel.simulation.engine.settling import WAVES, Start, attempts_per_rollout, start
from costmodel.simulation.engine.timeline import TimelineRun, Window, in_steps, stream
from costmodel.simulation.engine.tries import Source
from costmodel.simulation.renewal import expected_max
from costmodel.statistics.distribution import Distribution
from costmodel.statistics.intervals import student_t

ATTEMPTS: Final = 64_000
"""That one estimate may cost: about a tenth of a second."""
ASIDE: Final = 16_000
"""... where it is not what was asked, and stands beside it: under other policies, under stress."""
MIN_RUNS: Final = 8
MAX_RUNS: Final = 768
ENOUGH: Final = 5
"""Of what it may cost, at least this part is used before a small error is believed."""
MAX_STEPS: Final = 40
LONGEST: Final = 2 * WAVES + 1
"""Rollouts per worker that are simulated of one step."""
CONFIDENCE: Final = 0.997
_NOTHING: Final = 1e-9
"""Of a value: what its error is by rounding alone."""


class SimulatedValue(NamedTuple):
    """An expectation, and half its 99.7 % interval with what a smaller system may lose."""

    value: float
    error: float = 0.0


class SimulatedRun(NamedTuple):
    """What a demand takes under one policy. ns."""

    wall_ns: SimulatedValue
    step_ns: SimulatedValue  # the rollouts of a full step; of all, where there are no steps
    steps_ns: SimulatedValue  # ... summed over the steps
    attempts: SimulatedValue
    hits: SimulatedValue
    held_ns: SimulatedValue
    backoff_ns: SimulatedValue
    waited_ns: SimulatedValue
    wasted_ns: SimulatedValue
    idle_ns: SimulatedValue
    clocks: dict[int, float]

    @property
    def busy_ns(self) -> float:
        """Worker time: in attempts, between them, and waiting for a create."""
        return self.held_ns.value + self.backoff_ns.value + self.waited_ns.value

    @property
    def busy_error_ns(self) -> float:
        """How far off that may be."""
        return self.held_ns.error + self.backoff_ns.error + self.waited_ns.error


class _Plan(NamedTuple):
    """What of a demand is simulated."""

    rules: Rules
    scale: int
    rollouts: float  # that it stands for, in the smaller system


def simulate(
    rules: Rules, source: Source, rollouts: int, *, tolerance: float, seed: int, batch: int | None, most: int = ATTEMPTS
) -> SimulatedRun:
    """Expect what ``rollouts`` take by these rules, with at ``most`` so many attempts.

    ``batch`` are a training step where rollouts are a stream; where they are not, the rules know.
    """
    per_rollout = attempts_per_rollout(rules, source)
    budget = most / MIN_RUNS
    begun = start(rules, source, rollouts)
    rules, settling, everything = begun.rules, begun.settling, rollouts
    rollouts -= begun.leapt
    if rules.batch is not None:
        batch_size = min(rules.batch, rollouts)
        launched = min(rules.launched(batch_size), (LONGEST + 1) * rules.workers)
        full, rest = divmod(rollouts, rules.batch)
        needed = min(full + (rest > 0), 3 + 2 * settling / max(1, launched)) * launched
    else:
        needed = min(rollouts, settling + WAVES * rules.workers)
    scale = min(rules.workers, max(1, math.ceil(needed * per_rollout / budget)))
    if settling * per_rollout > scale * budget:  # nor can the smallest system be simulated until it has settled
        begun = begun._replace(error_ns=begun.error_ns + everything * per_rollout * source.saved_ns / rules.workers)
        settling = scale * budget / per_rollout / 2
    small = rules.smaller(scale)
    if rules.batch is not None:
        sizes, missing, steady = _steps(small, rules, rollouts, settling / scale, budget / per_rollout)
        longest = LONGEST * small.workers
        run_cost = sum(min(small.launched(size), longest + small.workers) for size in sizes) * per_rollout
        stands_for = sum(sizes) + missing * sizes[0]
    else:
        jobs = rollouts
        if scale > 1:
            waves, more = divmod(rollouts, rules.workers)
            jobs = waves * small.workers + math.ceil(more * small.workers / rules.workers)
        jobs, window = _window(jobs, small, settling / scale, budget / per_rollout)
        per_step = None if batch is None else max(1, min(jobs, round(batch / scale)))
        stands_for = jobs + (window.missing if window else 0)
        if per_step is not None and batch is not None:
            small = _retimed(small, stands_for / per_step, rollouts, batch)
    larger = rollouts / stands_for
    draws = source.draws(Random(seed))
    runs: list[TimelineRun] = []
    spent = 0.0
    while True:
        if rules.batch is not None:
            run = in_steps(small, draws, sizes, missing, steady, longest)
            spent += run_cost
        else:
            run = stream(small, draws, jobs, window, per_step)
            spent += jobs * per_rollout
        runs.append(run)
        if len(runs) >= MIN_RUNS and (spent >= most or (spent >= most / ENOUGH and _looks(len(runs)))):
            outcome = _outcome(runs, source, larger, controlled=rules.over_provision == 0)
            sure = outcome.wall_ns.error <= tolerance / 2 * outcome.wall_ns.value
            if sure or spent >= most or len(runs) >= MAX_RUNS:
                break
    if scale > 1:
        outcome = _with_size(outcome, rules, source, rollouts, scale)
        if rules.pool is not None and small.pool is not None and rules.pool.group is None:
            lost = abs(rules.pool.size - small.pool.size * scale)  # a part of a sandbox is none
            outcome = outcome._replace(hits=outcome.hits._replace(error=outcome.hits.error + lost))
    return _with_start(outcome, begun, source, per_rollout, everything)


def _looks(runs: int) -> bool:
    """Whether to look at the error: at 8, 16, 32 … runs only, for who always looks stops at a lucky moment."""
    return runs % MIN_RUNS == 0 and (runs // MIN_RUNS).bit_count() == 1


def _rare(runs: Sequence[TimelineRun], source: Source, found: SimulatedValue) -> SimulatedValue:
    """With what an outcome that none of the runs had could add, where all had the same."""
    least, most = source.shortest_ns, source.longest_ns
    if len({run.wall_ns for run in runs}) > 1 or least == most:
        return found
    return found._replace(error=found.error + (most - least) * _unseen(len(runs)))


def _exact(found: SimulatedValue) -> bool:
    return found.error <= _NOTHING * found.value


def _unseen(runs: int) -> float:
    """How likely at most an outcome is that none of so many runs had."""
    return 1 - math.pow(1 - CONFIDENCE, 1 / runs)


def _steps(small: Rules, rules: Rules, rollouts: int, settling: float, budget: float) -> tuple[list[int], float, int]:
    """The sizes of the steps to simulate, how many more full ones there are, and from which on all are alike."""
    assert small.batch is not None
    assert rules.batch is not None
    full, rest = divmod(rollouts, rules.batch)
    rest = math.ceil(rest * small.batch / rules.batch)
    launched = min(small.launched(small.batch), (LONGEST + 1) * small.workers)
    settled = 1 + math.ceil(settling / launched) if small.gap_ns or small.pool else 1
    count = min(full, max(2 * settled + 1, min(MAX_STEPS, int(budget / launched))))
    steady = min(settled, count - 1) if count < full else 0
    sizes = [small.batch] * count + [rest] * (rest > 0)
    return sizes, full - count, max(0, steady)


def _window(jobs: int, small: Rules, settling: float, budget: float) -> tuple[int, Window | None]:
    """How many rollouts to simulate, and what part of them the others are like: whole waves, so that steps are kept."""
    workers = small.workers
    waves = math.ceil(max(budget - settling - workers, WAVES * workers) / workers)
    simulated = math.ceil(settling / workers) * workers + waves * workers + workers + jobs % workers
    if jobs <= simulated or jobs <= 1.3 * budget:
        return jobs, None
    begin = simulated - workers - waves * workers
    return simulated, Window(max(1, begin), max(1, begin) + waves * workers, float(jobs - simulated))


def _retimed(small: Rules, steps: float, rollouts: int, batch: int) -> Rules:
    """Training that lasts as long in all, where the smaller system has fewer steps."""
    wanted = -(-rollouts // batch)
    return replace(small, train_ns=round(small.train_ns * wanted / max(1.0, math.ceil(steps))))


def _outcome(runs: Sequence[TimelineRun], source: Source, larger: float, *, controlled: bool) -> SimulatedRun:
    """Means over the runs, with what is known about the mean of an attempt put to use."""
    off = [
        run.counts.held_ns
        - (run.counts.attempts - run.counts.hits) * source.mean_ns
        - run.counts.hits * source.warm_mean_ns
        for run in runs
    ]
    columns = list(zip(*((run.wall_ns, run.step_ns, run.steps_ns, *run.counts) for run in runs), strict=True))
    found = [estimated(column, off if controlled else None) for column in columns]
    if min(columns[3]) < max(columns[3]) and _exact(found[3]):
        # Tries of one length each tell by their time how many there were, but not of a rollout that is given up.
        unseen = _unseen(len(runs))
        for at, column in enumerate(columns):
            if _exact(found[at]):
                found[at] = found[at]._replace(error=(max(column) - min(column)) * unseen)
    clocks: dict[int, float] = {}
    for run in runs:
        for ns, often in run.clocks.items():
            clocks[ns] = clocks.get(ns, 0.0) + often * larger / len(runs)
    times, counts = (
        [_rare(runs, source, one) for one in found[:3]],
        [SimulatedValue(one.value * larger, one.error * larger) for one in found[3:]],
    )
    return SimulatedRun._make([*times, *counts, clocks])


def estimated(values: Sequence[float], off: Sequence[float] | None) -> SimulatedValue:
    """The mean with its error; ``off`` is what of the noise has an expectation of 0."""
    count = len(values)
    mean = math.fsum(values) / count
    deviations = [value - mean for value in values]
    freedom = count - 1
    if off is not None:
        center = math.fsum(off) / count
        around = [one - center for one in off]
        square = math.fsum(one * one for one in around)
        if square > 0:
            slope = math.fsum(d * one for d, one in zip(deviations, around, strict=True)) / square
            deviations = [d - slope * one for d, one in zip(deviations, around, strict=True)]
            mean -= slope * center
            freedom -= 1
    variance = math.fsum(d * d for d in deviations) / freedom
    return SimulatedValue(mean, student_t(freedom, CONFIDENCE) * math.sqrt(variance / count))


def _with_start(outcome: SimulatedRun, begun: Start, source: Source, per_rollout: float, rollouts: int) -> SimulatedRun:
    """With what was leapt over, and what that may be off by."""
    if not begun.leapt and not begun.error_ns:
        return outcome
    longer, attempts = begun.leapt_ns, begun.leapt * per_rollout
    share = rollouts / (rollouts - begun.leapt)

    def later(one: SimulatedValue) -> SimulatedValue:
        return SimulatedValue(one.value + longer, one.error + begun.error_ns)

    def more(one: SimulatedValue, by: float) -> SimulatedValue:
        return SimulatedValue(one.value + by, one.error)

    return outcome._replace(
        wall_ns=later(outcome.wall_ns),
        step_ns=later(outcome.step_ns) if begun.rules.batch is None else outcome.step_ns,
        steps_ns=later(outcome.steps_ns),
        attempts=more(outcome.attempts, attempts),
        hits=SimulatedValue(
            outcome.hits.value * share + begun.later_hits,
            outcome.hits.error * share + (share - 1) * outcome.hits.value + begun.later_hits / 20,
        ),
        held_ns=more(outcome.held_ns, attempts * source.mean_ns - begun.later_hits * source.saved_ns),
        backoff_ns=more(outcome.backoff_ns, begun.leapt * (per_rollout - 1) * begun.rules.backoff_ns),
        idle_ns=SimulatedValue(outcome.idle_ns.value * share, outcome.idle_ns.error * share),
    )


def _with_size(outcome: SimulatedRun, rules: Rules, source: Source, rollouts: int, scale: int) -> SimulatedRun:
    """With what the smaller system may be off by."""
    law = Distribution({one.held_ns: 0 for one in source.tries} | _weights(source))
    at_once = min(rollouts, rules.batch or rollouts)
    missed = 0.0
    if rules.over_provision == 0:
        missed = expected_max(law, at_once) - expected_max(law, max(1, round(at_once / scale)))
    counts = Counts._make(one.value for one in outcome[3:10])
    steps = 1 if rules.batch is None else -(-rollouts // rules.batch)
    least = max(
        (counts.held_ns + counts.backoff_ns) / rules.workers,
        (counts.attempts - rules.burst) * rules.gap_ns,
    )
    lost = 1 - 1 / math.sqrt(scale)
    queued = max(0.0, outcome.steps_ns.value - least) * lost if rules.gap_ns or rules.pool else 0.0
    error = steps * missed + queued
    wall, step, whole = outcome.wall_ns, outcome.step_ns, outcome.steps_ns
    return outcome._replace(
        wall_ns=wall._replace(error=wall.error + error),
        step_ns=step._replace(error=step.error + error / steps),
        steps_ns=whole._replace(error=whole.error + error),
        waited_ns=outcome.waited_ns._replace(error=outcome.waited_ns.error + outcome.waited_ns.value * lost),
    )


def _weights(source: Source) -> dict[int, int]:
    weights: dict[int, int] = {}
    for one, weight in zip(source.tries, source.weights, strict=True):
        weights[one.held_ns] = weights.get(one.held_ns, 0) + weight
    return weights
