"""Wall-clock of a run and its exact mean occupied time.

A closed form is used where exact: rollouts wait for workers only, and alternate with training. A stream with a create
rate or a warm pool is simulated. Runs in steps beyond that are left to the step model (``attribution``).

The end of N jobs depends on jobs rarer than K trials can show. Order statistics bound how much sooner it may come, for
any distribution. How much later is bounded by a longer job among the trials, or by a time limit; else the run takes "at
least" this long. docs/statistics.md, "Tails".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise
from random import Random
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from costmodel.projection.row import GpuWaiting, Steps, TailLimits
from costmodel.recording.causes import RETRIED
from costmodel.simulation.attempts import Retries, Trials, chained, with_retries
from costmodel.simulation.makespan import Draw, Makespan, expected_makespan
from costmodel.statistics.distribution import Distribution
from costmodel.statistics.intervals import LEVEL, Interval
from costmodel.statistics.repetitions import NORMAL, assumed
from costmodel.training.run import TrainingRun, launched
from costmodel.units import NS_PER_HOUR, NS_PER_S
from costmodel.workload.attempts import Attempt
from costmodel.workload.estimator import Tally
from costmodel.workload.pool import HITS, Pool, from_pool, killed_after

if TYPE_CHECKING:
    from costmodel.simulation.run import SimulatedRun

RISK: Final = (1 - LEVEL) / 2
TOP: Final = 200
"""Number of longest trials used one by one; other trials are represented by as many quantiles."""
SUMMED: Final = 30
"""Largest number of excess jobs with an exact Poisson sum; beyond it the square root is normal."""
NO_TAIL: Final = TailLimits(0.0, 0.0, None)


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
        sample = [replace(each, held_ns=each.held_ns - each.queued_ns, queued_ns=0) for each in sample]
    tallied = _tallied(sample, pool, training_run, None)
    if tallied is None:
        return None
    tally, retries, law, draw = tallied
    run = run_in_time(law, training_run, draw, pool)
    if training_run.warm_pool is not None and run.outcome is not None:
        hits = run.outcome.hits.value / run.outcome.attempts.value
        mixed = _tallied(from_pool(sample, round(HITS * hits)), pool, training_run, run.outcome)
        assert mixed is not None  # a hit only saves time
        tally, retries, law, _ = mixed
    return TimedRun(tally, retries, law, run)


def _tallied(
    sample: Sequence[Attempt], pool: Pool, training_run: TrainingRun, outcome: SimulatedRun | None
) -> tuple[Tally, Retries, Distribution, Draw | None] | None:
    limit_ns = math.inf
    if training_run.timeout_s is not None:
        limit_ns, sample = round(training_run.timeout_s * NS_PER_S), killed_after(sample, training_run.timeout_s)
    tally = Tally(sample, pool.trials, assumed(pool.identity.substrate, training_run.run_sd))
    retries_of = [training_run.on_failure is not None or trial.treatment == RETRIED for trial in pool.trials]

    def is_retried(attempt: Attempt) -> bool:  # a killed attempt always is
        return not attempt.ok and (retries_of[attempt.trial] or attempt.held_ns >= limit_ns)

    last, failure = tally.held_times(lambda attempt: not is_retried(attempt)), tally.held_times(is_retried)
    if last is None or not tally.successes:
        return None
    retried = tally.total(is_retried) / len(pool.trials)
    retries = Retries(retried, training_run.max_attempts, success=(1 - tally.failure) / (1 - retried))
    if outcome is not None and training_run.max_attempts is not None:
        # A pool may change which attempts fail; the simulation decides.
        retries = retries._replace(simulated=Fraction(outcome.attempts.value / training_run.trajectories))
    backoff_ns = round(training_run.backoff_s * NS_PER_S)
    draw = None
    if failure is not None and not training_run.step_model:
        draw = partial(chained, last, failure, retries, backoff_ns)
    law = with_retries(last, failure, retries, backoff_ns, Random(training_run.precision.seed))
    return tally, retries, law, draw


def run_in_time(
    law: Distribution, training_run: TrainingRun, draw: Draw | None = None, pool: Pool | None = None
) -> WholeRun:
    """Return the duration of a run with ``law`` as a worker's busy time per trajectory.

    ``draw``: as for ``expected_makespan``. ``pool``: the same trajectories by attempt, for a create rate or
    a warm pool. The step model replaces the result for what its fields ask.
    """
    workers, precision = training_run.usable_workers, training_run.precision

    def makespan(jobs: int) -> Makespan:
        return expected_makespan(law, jobs, workers, precision, draw)

    if training_run.step_rollouts is None:
        limited = training_run.create_rate is not None or training_run.warm_pool is not None
        if limited and training_run.trajectories:
            from costmodel.simulation.run import simulate_run

            assert pool is not None
            outcome = simulate_run(Trials(pool, training_run), training_run, law)
            wall = Makespan(*outcome.wall_ns, "events")
            return WholeRun(wall, wall, None, None, [], law, outcome)
        whole = makespan(training_run.trajectories)
        return WholeRun(whole, whole, None, None, [], law)
    policy, train_ns, batch = training_run.effective_policy, training_run.train_s * NS_PER_S, training_run.step_rollouts
    full, rest = divmod(training_run.trajectories, batch)
    parts = [(times, size, makespan(size)) for times, size in ((full, batch), (1, rest)) if times and size]
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
    if mean.limits is None or not mean.value:
        return WallClockLimits(), WallClockLimits()
    policy, wall = training_run.effective_policy, run.wall.value_ns / NS_PER_HOUR
    steps_wait = bool(run.parts) and policy.barrier
    count = 1 if steps_wait else sum(times for times, *_ in run.parts) or 1  # steps of a part with common limits
    whole = 1, training_run.trajectories, run.rollouts
    off = 1 - mean.limits[0] / mean.value, mean.limits[1] / mean.value - 1
    parts = []
    for times, size, makespan in run.parts if steps_wait else [whole]:
        low, high, tail = _limits(run, makespan, training_run, size, off)
        low, high = (end and end / count for end in (low, high))
        parts.append((times * count, makespan.value_ns / NS_PER_HOUR / count, WallClockLimits(low, high, tail)))
    if not run.parts:
        return parts[0][2], WallClockLimits()
    train = training_run.train_s / 3600

    def takes(hours: float) -> float:
        return max(hours, train) if policy.overlaps else hours + train

    def moved(limit: str) -> float | None:
        ends = [(times, value, getattr(part_limits, limit)) for times, value, part_limits in parts]
        if any(end is None for *_, end in ends):
            return None
        return wall + math.fsum(times * (takes(end) - takes(value)) for times, value, end in ends)

    tails = [part_limits.tail for *_, part_limits in parts]
    tail = max(tails, key=lambda tail: (tail.needs_trials or 0, tail.sooner_ns))
    return WallClockLimits(moved("low"), moved("high"), tail), parts[0][2] if steps_wait else WallClockLimits()


def _limits(
    run: WholeRun, makespan: Makespan, training_run: TrainingRun, size: int, off: tuple[float, float]
) -> WallClockLimits:
    """Return limits of rollouts that keep ``size`` trajectories; ``off``: relative limits of the mean."""
    jobs = size
    if run.parts and training_run.effective_policy.barrier:
        jobs = launched(size, training_run.over_provision)
    tail = tail_limits(run.law, jobs, makespan.value_ns, training_run, excess=jobs - size)
    soonest, latest = max(0.0, makespan.value_ns - makespan.error_ns), makespan.value_ns + makespan.error_ns
    low = soonest - math.hypot(soonest * off[0], tail.sooner_ns)
    if tail.later_ns is None:
        return WallClockLimits(max(0.0, low) / NS_PER_HOUR, None, tail)
    high = latest + math.hypot(latest * off[1], tail.later_ns)
    return WallClockLimits(max(0.0, low) / NS_PER_HOUR, high / NS_PER_HOUR, tail)


def tail_limits(
    law: Distribution, jobs: int, end_ns: float, training_run: TrainingRun, *, excess: int = 0
) -> TailLimits:
    """Return limits of the end of ``jobs`` on the usable workers at ``end_ns``, without the last ``excess`` of them.

    There are none where the last jobs take less than the tolerated share of the time. The wall-clock is then
    worker-hours divided by workers, equally certain.
    """
    workers, tolerance = training_run.usable_workers, training_run.precision.tolerance
    room_ns = end_ns - jobs * law.mean / workers if law.mean else 0.0
    if not jobs or (room_ns <= tolerance * end_ns and not excess):
        return NO_TAIL
    trials = law.trials
    highest = min(trials, TOP)
    values = [law.quantile((rank + 0.5) / trials) for rank in range(trials - 1, trials - 1 - highest, -1)]
    rest = trials - highest
    body = [law.quantile(rest / trials * (1 - (group + 0.5) / TOP)) for group in range(TOP)] if rest else []

    def last(beyond: Sequence[float]) -> float:
        """E[the last of the jobs but for the excess] if the highest values are met so often among K."""
        unseen = max(0.0, trials - beyond[-1])
        spread = [beyond[-1] + unseen * (group + 1) / TOP for group in range(len(body))]
        return _last(values + body, [min(1.0, count / trials) for count in [*beyond, *spread]], jobs, excess)

    seen = last(range(1, highest + 1))
    if seen <= tolerance * end_ns and not excess:  # another limit, such as a create rate, takes the time
        return NO_TAIL
    sooner = max(0.0, min(seen - last([_count(rank, -1) for rank in range(1, highest + 1)]), room_ns))
    behind = jobs / (excess + 0.5)  # the median of the r-th longest of N is met by r − ½ in N, nearly
    needs = math.ceil(behind * -math.log(RISK))
    if trials >= needs:
        counts = [_count(rank, 1) for rank in range(1, highest + 1)]
        rank = sum(count <= trials / behind * (1 + 1e-9) for count in counts)  # as rare with 97.5 % probability
        later = max(last(counts), values[rank - 1]) - seen
    elif training_run.timeout_s is not None:
        later = _timed_out(values[0], trials, jobs, excess, training_run) - seen
    else:
        return TailLimits(sooner, None, needs)
    return TailLimits(sooner, max(0.0, later), None)


def _last(values: Sequence[float], met: Sequence[float], jobs: int, excess: int) -> float:
    """Return E[the longest of ``jobs`` without the ``excess`` longest]; ``met``: the share at or above each value."""
    parts = zip(pairwise([*values, 0.0]), met, strict=True)
    return math.fsum((high - low) * _more_than(excess, jobs, share) for (high, low), share in parts)


def _more_than(excess: int, jobs: int, share: float) -> float:
    """P(more than ``excess`` of ``jobs`` last so long), each with probability ``share``."""
    if share >= 1:
        return 1.0
    expected = -jobs * math.log1p(-share)
    if excess == 0:
        return -math.expm1(-expected)
    if excess > SUMMED:
        return NormalDist().cdf(2 * (math.sqrt(expected) - math.sqrt(excess + 1)))
    term = total = math.exp(-expected)
    for number in range(1, excess + 1):
        term *= expected / number
        total += term
    return max(0.0, 1 - total)


def _count(rank: int, side: int) -> float:
    """Return how many of K durations exceed the value of a rank: the 2.5 % or 97.5 % quantile of K·Beta(rank, K + 1 −
    rank).

    P(X ≥ X_(i)) of K independent trials has this distribution, or lies above it. Exact for the first rank and large K;
    else the gamma quantiles of Wilson and Hilferty (1931).
    """
    if rank == 1:
        return -math.log1p(-RISK) if side < 0 else -math.log(RISK)
    return rank * (1 - 1 / (9 * rank) + side * NORMAL / (3 * math.sqrt(rank))) ** 3


def _timed_out(longest_ns: int, trials: int, jobs: int, excess: int, training_run: TrainingRun) -> float:
    """Return E[the last end] if unseen attempts reach the time limit, at each retry again.

    No distribution compatible with the trials is worse: an attempt slower than all trials ends at the limit at worst.
    """
    missed = -math.expm1(math.log(RISK) / trials)
    kills = math.ceil(math.log(1e-3 / jobs) / math.log(missed))
    if training_run.max_attempts is not None:
        kills = min(kills, training_run.max_attempts - 1)
    workers, limit_ns = training_run.usable_workers, round((training_run.timeout_s or 0.0) * NS_PER_S)
    lost_ns, longest = limit_ns + round(training_run.backoff_s * NS_PER_S), max(longest_ns, limit_ns)
    ends = [kill * lost_ns + longest for kill in range(kills, -1, -1)]
    more_work = jobs * missed / (1 - missed) * lost_ns / workers if jobs > workers else 0.0
    return _last(ends, [missed**kill for kill in range(kills, -1, -1)], jobs, excess) + more_work
