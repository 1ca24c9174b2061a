"""From attempts to a run: what they hold on average, exactly, and when the run ends.

A closed form answers where one is exact: rollouts that wait for nothing but workers, and training in turn with them.
Everything else is simulated from event to event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from costmodel.projection.row import GpuWaiting, Steps
from costmodel.projection.tail_limits import NO_TAIL, TailLimits, Timeout, tail_limits
from costmodel.simulation.makespan import Makespan, bounds, expected_makespan
from costmodel.simulation.retries import Retries, retried
from costmodel.statistics.distribution import Distribution
from costmodel.statistics.intervals import Interval
from costmodel.statistics.repetitions import assumed
from costmodel.training.run import Demand, launched
from costmodel.units import NS_PER_HOUR, NS_PER_S
from costmodel.workload.attempts import Attempt, Sample
from costmodel.workload.estimator import Tally
from costmodel.workload.pool import HITS, Pool, from_pool, killed_after

if TYPE_CHECKING:
    from costmodel.simulation.attempts import Trials
    from costmodel.simulation.run import SimulatedRun

EVENTS: Final = "events"
"""The method of a makespan that is simulated from event to event."""
Source = Callable[[], "tuple[Trials, tuple[float, float] | None]"]
"""Makes the trials that a simulation draws from, and what an attempt holds its worker for on average: with a sandbox
that has to be made, and with one of the pool, ns; None: unknown."""


class WholeRun(NamedTuple):
    """A whole run in time."""

    wall: Makespan  # training included, where steps were asked for
    rollouts: Makespan  # what of it has a statistical error: the run's one makespan, or a full step's
    steps: Steps | None
    gpu: dict[str, GpuWaiting] | None
    parts: list[tuple[int, int, Makespan]]  # how many steps keep how many rollouts, which take so long
    law: Distribution  # of how long a worker is busy with one trajectory
    outcome: SimulatedRun | None = None  # where it was simulated from event to event


class TimedRun(NamedTuple):
    """A sample of attempts as a run of the demand's size."""

    tally: Tally  # with as many hits as the pool gives
    retries: Retries
    law: Distribution  # of how long a worker is busy with one trajectory
    source: Source
    run: WholeRun


def timed_run(sample: Sequence[Attempt], pool: Pool, demand: Demand) -> TimedRun | None:
    """None where no attempt succeeds in time."""
    if demand.create_rate is not None:
        sample = Sample.of(sample).unthrottled()
    killed = _killed(sample, demand)
    found = _tallied(killed, pool, demand, None)
    if found is None:
        return None
    tally, retries, law = found

    def source() -> tuple[Trials, tuple[float, float]]:
        from costmodel.simulation.attempts import Trials  # a closed form needs neither the module nor the trials

        made_ns = pooled_ns = _mean_ns(killed)
        if demand.warm_pool is not None:
            pooled_ns = _mean_ns(_killed([attempt.warm(attempt.weight) for attempt in sample], demand))
        return Trials(pool, demand), (made_ns, pooled_ns)

    run = run_in_time(law, demand, source, failing=tally.failure > 0)
    if demand.warm_pool is not None and run.outcome is not None:
        hits = run.outcome.hits.value / run.outcome.attempts.value
        mixed = _tallied(_killed(from_pool(sample, round(HITS * hits)), demand), pool, demand, run.outcome)
        assert mixed is not None  # a hit only saves time
        tally, retries, law = mixed
    return TimedRun(tally, retries, law, source, run)


def launched_amount(one_by_one: Interval, value: float, outcome: SimulatedRun) -> Interval:
    """An amount for all that was launched: as sure, in proportion, as one by one, less the simulation's error."""
    if one_by_one.low is None or one_by_one.high is None or not one_by_one.value:
        return Interval(value)
    off = outcome.held_ns.error / outcome.held_ns.value if outcome.held_ns.value else 0.0
    low, high = (end / one_by_one.value for end in (one_by_one.low, one_by_one.high))
    return Interval(value, max(0.0, 1 - off) * value * low, (1 + off) * value * high)


def _mean_ns(sample: Sequence[Attempt]) -> float:
    columns = Sample.of(sample)
    return sum(map(int.__mul__, columns.held_ns, columns.weight)) / sum(columns.weight)


def _tallied(
    sample: Sequence[Attempt], pool: Pool, demand: Demand, outcome: SimulatedRun | None
) -> tuple[Tally, Retries, Distribution] | None:
    tally = Tally(sample, pool.trials, assumed(pool.identity.substrate, demand.run_sd))
    success = tally.held_times(ok=True)
    if success is None:
        return None
    retries = Retries(tally.failure, demand.max_attempts)
    if outcome is not None and demand.max_attempts is not None and demand.over_provision == 0:
        # Attempts that find a sandbox ready may fail less, and which ones do is for the simulation to say.
        retries = retries._replace(simulated=Fraction(outcome.attempts.value / demand.trajectories))
    backoff_ns = round(demand.backoff_s * NS_PER_S)
    law = retried(success, tally.held_times(ok=False), retries, backoff_ns, demand.seed)
    return tally, retries, law


def _killed(sample: Sequence[Attempt], demand: Demand) -> Sequence[Attempt]:
    return sample if demand.timeout_s is None else killed_after(sample, demand.timeout_s)


def run_in_time(
    law: Distribution,
    demand: Demand,
    source: Source | None = None,
    *,
    failing: bool = False,
) -> WholeRun:
    """How long the demand takes if one trajectory keeps a worker busy as ``law`` says.

    ``source`` is of the same trajectories attempt by attempt, some of them ``failing``; None: as the law has them.
    """
    if not _closed_form(law, demand, failing=failing):
        from costmodel.simulation.attempts import Trials
        from costmodel.simulation.run import simulate_run

        trials, attempt_ns = source() if source is not None else (Trials.of(law), (law.mean, law.mean))
        return _simulated(law, demand, simulate_run(trials, demand, law, attempt_ns))
    if demand.step_rollouts is None:
        whole = _makespan(law, demand, demand.trajectories)
        return WholeRun(whole, whole, None, None, [], law)
    policy, train_ns, batch = demand.effective_policy, demand.train_s * NS_PER_S, demand.step_rollouts
    parts = [(times, size, _makespan(law, demand, size)) for times, size in _sizes(demand, batch)]
    step = parts[0][2] if parts else Makespan(0.0, 0.0, "order-statistic")
    wall = rollouts = _makespan(law, demand, demand.trajectories) if not policy.barrier else step
    if policy.barrier:
        value = math.fsum(times * (one.value_ns + train_ns) for times, _, one in parts)
        wall = Makespan(value, math.fsum(times * one.error_ns for times, _, one in parts), step.method)
    busy = demand.trajectories * law.mean / NS_PER_HOUR
    held = math.fsum(times * demand.usable_workers * one.value_ns for times, _, one in parts) / NS_PER_HOUR
    return _in_steps(wall, rollouts, parts, step, held - busy, law, demand)


def _closed_form(law: Distribution, demand: Demand, *, failing: bool) -> bool:
    """Whether a closed form is exact for what is asked, or ``attribution`` simulates the run anyway.

    With retries the law of a trajectory is put together from a few thousand; that is good enough where only its
    moments matter, and not where the longest of many decides.
    """
    if not demand.trajectories or demand.step_model:
        return True
    if demand.create_rate is not None or demand.warm_pool is not None or demand.over_provision > 0:
        return False
    if demand.train_s and demand.effective_policy.overlaps:
        return False
    if not failing or law.mean == 0:
        return True
    low, high = bounds(law, demand.step_rollouts or demand.trajectories, demand.usable_workers)
    return high - low <= 2 * demand.tolerance * low


def _simulated(law: Distribution, demand: Demand, outcome: SimulatedRun) -> WholeRun:
    wall = Makespan(*outcome.wall_ns, EVENTS)
    if demand.step_rollouts is None:
        return WholeRun(wall, wall, None, None, [], law, outcome)
    sizes = _sizes(demand, demand.step_rollouts)
    step = Makespan(*outcome.step_ns, EVENTS)
    parts = [(times, size, step) for times, size in sizes]
    if not demand.effective_policy.barrier:
        parts = [(times, size, _makespan(law, demand, size)) for times, size in sizes]
        step = parts[0][2]
    elif len(sizes) > 1:
        last_ns = max(0.0, outcome.rollouts_ns.value - sizes[0][0] * step.value_ns)
        parts[1] = (*sizes[1], step._replace(value_ns=last_ns))
    rollouts = step if demand.effective_policy.barrier else Makespan(*outcome.rollouts_ns, EVENTS)
    idle_ns = demand.usable_workers * outcome.rollouts_ns.value - outcome.held_ns.value
    return _in_steps(wall, rollouts, parts, step, idle_ns / NS_PER_HOUR, law, demand, outcome)


def _in_steps(
    wall: Makespan,
    rollouts: Makespan,
    parts: list[tuple[int, int, Makespan]],
    step: Makespan,
    idle_hours: float,
    law: Distribution,
    demand: Demand,
    outcome: SimulatedRun | None = None,
) -> WholeRun:
    batch, count, policy = demand.step_rollouts or 1, sum(times for times, *_ in parts), demand.effective_policy
    cut = outcome if demand.over_provision > 0 else None
    steps = Steps(
        steps=count,
        batch=batch,
        launched=launched(batch, demand.over_provision),
        step=step,
        idle_worker_hours=max(0.0, idle_hours) if policy.barrier else 0.0,
        busy_worker_hours=cut and cut.held_ns.value / NS_PER_HOUR,
        wasted_worker_hours=cut and cut.wasted_ns.value / NS_PER_HOUR,
    )
    gpu = None
    if demand.gpus is not None:  # they wait whenever they do not train
        waiting_ns = max(0.0, wall.value_ns - count * demand.train_s * NS_PER_S)
        waiting = GpuWaiting(wall.value_ns / NS_PER_HOUR, demand.gpus * waiting_ns / NS_PER_HOUR)
        gpu = {policy.name: waiting.priced(demand.gpu_usd_hour)}
    return WholeRun(wall, rollouts, steps, gpu, parts, law, outcome)


def _sizes(demand: Demand, batch: int) -> list[tuple[int, int]]:
    """How many steps keep how many trajectories."""
    full, rest = divmod(demand.trajectories, batch)
    return [(times, size) for times, size in ((full, batch), (1, rest)) if times and size]


class Limits(NamedTuple):
    """Hours between which something ends; both None where the mean has no interval."""

    low: float | None = None
    high: float | None = None  # None beside a lower limit: at least that
    tail: TailLimits = NO_TAIL  # what of it the last jobs account for: of the run's, or of one step's


def limits(run: WholeRun, demand: Demand, mean: Interval) -> tuple[Limits, Limits]:
    """Limits of the run, and of the rollouts of a full step where steps wait for them.

    They follow from ``mean``, the interval of the worker-hours, and from what the trials do not show. Both doubts are
    independent enough to add up in squares (as in ``intervals.difference``). The makespan's own error comes on top.
    Training takes what it takes, and hides rollouts that run meanwhile.
    """
    if mean.low is None or mean.high is None or not mean.value:
        return Limits(), Limits()
    policy, wall = demand.effective_policy, run.wall.value_ns / NS_PER_HOUR
    if not run.parts or not policy.barrier:
        whole = _limits(run, run.rollouts, demand, demand.trajectories, mean)
        if not run.parts:
            return whole, Limits()
        count, value = sum(times for times, *_ in run.parts), run.rollouts.value_ns / NS_PER_HOUR
        each = [(count, value / count, whole._replace(low=_part(whole.low, count), high=_part(whole.high, count)))]
        step = Limits()
    else:
        each = [
            (times, one.value_ns / NS_PER_HOUR, _limits(run, one, demand, size, mean)) for times, size, one in run.parts
        ]
        step = each[0][2]
    train = demand.train_s / 3600

    def takes(hours: float) -> float:
        return max(hours, train) if policy.overlaps else hours + train

    def moved(ends: Callable[[Limits], float | None]) -> float | None:
        found = [(times, value, ends(one)) for times, value, one in each]
        known = [(times, value, end) for times, value, end in found if end is not None]
        if len(known) < len(found):
            return None
        return wall + math.fsum(times * (takes(end) - takes(value)) for times, value, end in known)

    tail = max((one.tail for *_, one in each), key=lambda tail: (tail.needs_trials or 0, tail.sooner_ns))
    return Limits(moved(lambda one: one.low), moved(lambda one: one.high), tail), step


def _part(hours: float | None, count: int) -> float | None:
    return None if hours is None else hours / count


def _limits(run: WholeRun, makespan: Makespan, demand: Demand, size: int, mean: Interval) -> Limits:
    """Of rollouts that keep ``size`` trajectories; ``mean`` has limits."""
    assert mean.low is not None
    assert mean.high is not None
    jobs, timeout = size, None
    if run.parts and demand.effective_policy.barrier:
        jobs = launched(size, demand.over_provision)
    if demand.timeout_s is not None:
        timeout = Timeout(round(demand.timeout_s * NS_PER_S), round(demand.backoff_s * NS_PER_S), demand.max_attempts)
    tail = tail_limits(
        run.law,
        jobs,
        demand.usable_workers,
        makespan.value_ns,
        tolerance=demand.tolerance,
        excess=jobs - size,
        timeout=timeout,
    )
    soonest, latest = max(0.0, makespan.value_ns - makespan.error_ns), makespan.value_ns + makespan.error_ns
    low = soonest - math.hypot(soonest * (1 - mean.low / mean.value), tail.sooner_ns)
    if tail.later_ns is None:
        return Limits(max(0.0, low) / NS_PER_HOUR, None, tail)
    high = latest + math.hypot(latest * (mean.high / mean.value - 1), tail.later_ns)
    return Limits(max(0.0, low) / NS_PER_HOUR, high / NS_PER_HOUR, tail)


def _makespan(law: Distribution, demand: Demand, jobs: int) -> Makespan:
    return expected_makespan(
        law, jobs, demand.usable_workers, tolerance=demand.tolerance, seed=demand.seed, effort=demand.effort
    )
