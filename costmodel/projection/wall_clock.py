"""Wall-clock of a run and its exact mean occupied time.

A closed form is used where exact: rollouts wait for workers only, and alternate with training. A stream with a create
rate or a warm pool is simulated. Runs in steps beyond that are left to the step model (``attribution``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from costmodel.projection.row import GpuWaiting, Steps
from costmodel.projection.tail_limits import NO_TAIL, TailLimits, tail_limits
from costmodel.simulation.attempts import Retries, Trials, chained, with_retries
from costmodel.simulation.makespan import Draw, Makespan, expected_makespan
from costmodel.statistics.distribution import Distribution
from costmodel.statistics.intervals import Interval
from costmodel.statistics.repetitions import assumed
from costmodel.training.run import TrainingRun, launched
from costmodel.units import NS_PER_HOUR, NS_PER_S
from costmodel.workload.attempts import Attempt
from costmodel.workload.estimator import Tally
from costmodel.workload.pool import HITS, Pool, from_pool, killed_after

if TYPE_CHECKING:
    from costmodel.simulation.run import SimulatedRun

EVENTS: Final = "events"
"""Method of an event simulation."""
Source = Callable[[], Trials]
"""Return the trials for a simulation."""


class WholeRun(NamedTuple):
    """A whole run in time."""

    wall: Makespan  # training included, where steps were asked for
    rollouts: Makespan  # the makespan with the statistical error: of the run, or of a full step
    steps: Steps | None
    gpu: dict[str, GpuWaiting] | None
    parts: list[tuple[int, int, Makespan]]  # number of steps, kept rollouts, makespan
    law: Distribution  # busy time of a worker per trajectory
    outcome: SimulatedRun | None = None  # of a stream with waits


class TimedRun(NamedTuple):
    """A sample of attempts as a run of the training run's size."""

    tally: Tally  # with as many hits as the pool gives
    retries: Retries
    law: Distribution  # busy time of a worker per trajectory
    run: WholeRun


def timed_run(sample: Sequence[Attempt], pool: Pool, training_run: TrainingRun) -> TimedRun | None:
    """None where no attempt succeeds in time."""
    if training_run.create_rate is not None:
        sample = [attempt.unthrottled() for attempt in sample]
    killed = _killed(sample, training_run)
    tallied = _tallied(killed, pool, training_run, None)
    if tallied is None:
        return None
    tally, retries, law = tallied
    success, failure, draw = tally.held_times(ok=True), tally.held_times(ok=False), None
    if success is not None and failure is not None and not training_run.step_model:
        draw = partial(chained, success, failure, retries, round(training_run.backoff_s * NS_PER_S))
    run = run_in_time(law, training_run, partial(Trials, pool, training_run), draw)
    if training_run.warm_pool is not None and run.outcome is not None:
        hits = run.outcome.hits.value / run.outcome.attempts.value
        mixed = _tallied(_killed(from_pool(sample, round(HITS * hits)), training_run), pool, training_run, run.outcome)
        assert mixed is not None  # a hit only saves time
        tally, retries, law = mixed
    return TimedRun(tally, retries, law, run)


def _tallied(
    sample: Sequence[Attempt], pool: Pool, training_run: TrainingRun, outcome: SimulatedRun | None
) -> tuple[Tally, Retries, Distribution] | None:
    tally = Tally(sample, pool.trials, assumed(pool.identity.substrate, training_run.run_sd))
    success = tally.held_times(ok=True)
    if success is None:
        return None
    retries = Retries(tally.failure, training_run.max_attempts)
    if outcome is not None and training_run.max_attempts is not None:
        # A pool may change which attempts fail; the simulation decides.
        retries = retries._replace(simulated=Fraction(outcome.attempts.value / training_run.trajectories))
    backoff_ns = round(training_run.backoff_s * NS_PER_S)
    rng = Random(training_run.precision.seed)
    law = with_retries(success, tally.held_times(ok=False), retries, backoff_ns, rng)
    return tally, retries, law


def _killed(sample: Sequence[Attempt], training_run: TrainingRun) -> Sequence[Attempt]:
    return sample if training_run.timeout_s is None else killed_after(sample, training_run.timeout_s)


def run_in_time(
    law: Distribution, training_run: TrainingRun, source: Source | None = None, draw: Draw | None = None
) -> WholeRun:
    """Return the duration of a run with ``law`` as a worker's busy time per trajectory.

    ``source`` returns the same trajectories by attempt, for a create rate or a pool. ``draw``: as for
    ``expected_makespan``.
    The step model replaces the result for what its fields ask.
    """
    makespan = partial(_makespan, law, training_run, draw=draw)
    if training_run.step_rollouts is None:
        limited = training_run.create_rate is not None or training_run.warm_pool is not None
        if limited and training_run.trajectories:
            from costmodel.simulation.run import simulate_run

            assert source is not None
            outcome = simulate_run(source(), training_run, law)
            wall = Makespan(*outcome.wall_ns, EVENTS)
            return WholeRun(wall, wall, None, None, [], law, outcome)
        whole = makespan(training_run.trajectories)
        return WholeRun(whole, whole, None, None, [], law)
    policy, train_ns, batch = training_run.effective_policy, training_run.train_s * NS_PER_S, training_run.step_rollouts
    parts = [(times, size, makespan(size)) for times, size in _sizes(training_run, batch)]
    step = parts[0][2] if parts else Makespan(0.0, 0.0, "order-statistic")
    wall = rollouts = makespan(training_run.trajectories) if not policy.barrier else step
    if policy.barrier:
        value = math.fsum(times * (part.value_ns + train_ns) for times, _, part in parts)
        wall = Makespan(value, math.fsum(times * part.error_ns for times, _, part in parts), step.method)
    busy_ns = training_run.trajectories * law.mean
    held_ns = math.fsum(times * training_run.usable_workers * part.value_ns for times, _, part in parts)
    count = sum(times for times, *_ in parts)
    steps = Steps(
        steps=count,
        batch=batch,
        launched=launched(batch, training_run.over_provision),
        step=step,
        idle_worker_hours=max(0.0, held_ns - busy_ns) / NS_PER_HOUR if policy.barrier else 0.0,
    )
    gpu = None
    if training_run.gpus is not None:  # GPUs wait whenever they do not train
        waiting_ns = max(0.0, wall.value_ns - count * train_ns)
        waiting = GpuWaiting(wall.value_ns / NS_PER_HOUR, training_run.gpus * waiting_ns / NS_PER_HOUR)
        gpu = {policy.name: waiting.priced(training_run.gpu_usd_hour)}
    return WholeRun(wall, rollouts, steps, gpu, parts, law)


def _sizes(training_run: TrainingRun, batch: int) -> list[tuple[int, int]]:
    """How many steps keep how many trajectories."""
    full, rest = divmod(training_run.trajectories, batch)
    return [(times, size) for times, size in ((full, batch), (1, rest)) if times and size]


class WallClockLimits(NamedTuple):
    """Limits of an end in hours; both None where the mean has no interval."""

    low: float | None = None
    high: float | None = None  # None with a lower limit: at least
    tail: TailLimits = NO_TAIL  # part of the last jobs: of the run, or of one step


def limits(run: WholeRun, training_run: TrainingRun, mean: Interval) -> tuple[WallClockLimits, WallClockLimits]:
    """Return limits of the run, and of the rollouts of a full step where steps wait for them.

    They follow from ``mean``, the interval of the worker-hours, and from the unseen tail, added in squares (as in
    ``intervals.difference``). The makespan's own error is added to both. Training time is certain, and hides
    simultaneous rollouts.
    """
    if mean.low is None or mean.high is None or not mean.value:
        return WallClockLimits(), WallClockLimits()
    policy, wall = training_run.effective_policy, run.wall.value_ns / NS_PER_HOUR
    if not run.parts or not policy.barrier:
        whole = _limits(run, run.rollouts, training_run, training_run.trajectories, mean)
        if not run.parts:
            return whole, WallClockLimits()
        count, value = sum(times for times, *_ in run.parts), run.rollouts.value_ns / NS_PER_HOUR
        parts = [(count, value / count, whole._replace(low=_part(whole.low, count), high=_part(whole.high, count)))]
        step = WallClockLimits()
    else:
        parts = [
            (times, makespan.value_ns / NS_PER_HOUR, _limits(run, makespan, training_run, size, mean))
            for times, size, makespan in run.parts
        ]
        step = parts[0][2]
    train = training_run.train_s / 3600

    def takes(hours: float) -> float:
        return max(hours, train) if policy.overlaps else hours + train

    def moved(ends: Callable[[WallClockLimits], float | None]) -> float | None:
        ends_of_parts = [(times, value, ends(part_limits)) for times, value, part_limits in parts]
        bounded = [(times, value, end) for times, value, end in ends_of_parts if end is not None]
        if len(bounded) < len(ends_of_parts):
            return None
        return wall + math.fsum(times * (takes(end) - takes(value)) for times, value, end in bounded)

    tail = max(
        (part_limits.tail for *_, part_limits in parts), key=lambda tail: (tail.needs_trials or 0, tail.sooner_ns)
    )
    return WallClockLimits(
        moved(lambda part_limits: part_limits.low), moved(lambda part_limits: part_limits.high), tail
    ), step


def _part(hours: float | None, count: int) -> float | None:
    return None if hours is None else hours / count


def _limits(run: WholeRun, makespan: Makespan, training_run: TrainingRun, size: int, mean: Interval) -> WallClockLimits:
    """Return limits of rollouts that keep ``size`` trajectories; ``mean`` has limits."""
    assert mean.low is not None
    assert mean.high is not None
    jobs = size
    if run.parts and training_run.effective_policy.barrier:
        jobs = launched(size, training_run.over_provision)
    tail = tail_limits(run.law, jobs, makespan.value_ns, training_run, excess=jobs - size)
    soonest, latest = max(0.0, makespan.value_ns - makespan.error_ns), makespan.value_ns + makespan.error_ns
    low = soonest - math.hypot(soonest * (1 - mean.low / mean.value), tail.sooner_ns)
    if tail.later_ns is None:
        return WallClockLimits(max(0.0, low) / NS_PER_HOUR, None, tail)
    high = latest + math.hypot(latest * (mean.high / mean.value - 1), tail.later_ns)
    return WallClockLimits(max(0.0, low) / NS_PER_HOUR, high / NS_PER_HOUR, tail)


def _makespan(law: Distribution, training_run: TrainingRun, jobs: int, *, draw: Draw | None) -> Makespan:
    return expected_makespan(law, jobs, training_run.usable_workers, training_run.precision, draw)
