"""From the law of one trajectory to the wall-clock of a run: throttles, steps, trainers."""

from __future__ import annotations

import math
from typing import NamedTuple

from costmodel.demand import Demand
from costmodel.distribution import Distribution
from costmodel.makespan import Makespan, expected_makespan
from costmodel.overprovision import Rollouts, TrainingStep, Usage, over_provisioned, total
from costmodel.policies import POLICIES
from costmodel.results import GpuStall, Steps
from costmodel.retries import throttle_floor_ns
from costmodel.tails import Reach, Timeout, reach
from costmodel.uncertainty import Interval

NS_PER_HOUR = 3.6e12


class WholeRun(NamedTuple):
    """A whole run in time."""

    wall: Makespan  # training included, where steps were asked for
    rollouts: Makespan  # what of it has a statistical error: the run's one makespan, or a full step's
    floor_ns: float | None  # the create rate's, for the whole run
    steps: Steps | None
    gpu: dict[str, GpuStall] | None
    parts: list[tuple[int, Makespan]]  # the rollouts of a step and how many steps are alike; none without steps
    law: Distribution  # of how long a worker is busy with one trajectory
    usage: Usage | None = None  # what over-provisioned steps take; None: what the trajectories take


def run_in_time(law: Distribution, demand: Demand, attempts: float, rollouts: Rollouts | None = None) -> WholeRun:
    """How long the demand takes if one trajectory keeps a worker busy as ``law`` says, in ``attempts`` creates.

    ``rollouts`` are the same trajectories attempt by attempt, for over-provisioned steps; None: as the law has them.
    """
    if demand.batch is None:
        whole = _throttled(_makespan(law, demand, demand.trajectories), law, demand, demand.trajectories, attempts)
        return WholeRun(whole, whole, _floor(law, demand, demand.trajectories, attempts), None, None, [], law)
    return _in_steps(law, demand, demand.batch, attempts, rollouts or Rollouts.of(law))


def _in_steps(law: Distribution, demand: Demand, batch: int, attempts: float, source: Rollouts) -> WholeRun:
    full, rest = divmod(demand.trajectories, batch)
    sizes = [(times, size) for times, size in ((full, batch), (1, rest)) if times and size]
    usage = None
    if demand.over_provision > 0:
        simulated = [(times, _step(law, demand, size, attempts, source)) for times, size in sizes]
        parts = [(times, step.makespan) for times, step in simulated]
        usage = total([*((times, step.usage) for times, step in simulated), *((1, s.left) for _, s in simulated[-1:])])
    else:
        parts = [
            (times, _throttled(_makespan(law, demand, size), law, demand, size, attempts)) for times, size in sizes
        ]
    timed = [(times, step.value_ns) for times, step in parts]
    count = sum(times for times, _ in sizes)
    train_ns = demand.train_s * 1e9
    policy = demand.effective_policy
    whole = Makespan(0.0, 0.0, "not needed")
    if not policy.barrier or demand.gpus is not None:
        whole = _throttled(_makespan(law, demand, demand.trajectories), law, demand, demand.trajectories, attempts)

    walls = {name: one.wall(timed, whole.value_ns, train_ns) for name, one in POLICIES.items()}
    step = parts[0][1] if parts else Makespan(0.0, 0.0, "order-statistic")
    rollouts = step if policy.barrier else whole
    error_ns = step.error_ns * count if policy.barrier else whole.error_ns
    workers = demand.usable_workers
    busy = (sum(times * (size * law.mean) for times, size in sizes) if usage is None else usage.busy_ns) / NS_PER_HOUR
    held = sum(times * workers * value for times, value in timed) / NS_PER_HOUR
    steps = Steps(
        steps=count,
        batch=batch,
        launched=_launched(demand, batch),
        step=step,
        idle_worker_hours=max(0.0, held - busy) if policy.barrier else 0.0,
        busy_worker_hours=None if usage is None else busy,
        wasted_worker_hours=None if usage is None else usage.wasted_ns / NS_PER_HOUR,
    )
    gpu = {name: _stall(demand, wall, count * train_ns) for name, wall in walls.items()} if demand.gpus else None
    floor = _floor(law, demand, _launched(demand, batch), attempts)
    return WholeRun(
        Makespan(walls[policy.name], error_ns, rollouts.method), rollouts, floor, steps, gpu, parts, law, usage
    )


class Ends(NamedTuple):
    """Between which hours something ends; both None where the mean has no interval."""

    low: float | None = None
    high: float | None = None  # None beside a lower limit: at least that
    tail: Reach = Reach(0.0, 0.0, None)  # what of it the last jobs account for: of the run's, or of one step's


class Limits(NamedTuple):
    """The ends of a run, and of the rollouts of one full step where steps wait for them."""

    run: Ends
    step: Ends


def limits(run: WholeRun, demand: Demand, mean: Interval) -> Limits:
    """Between which hours the run ends, for all that ``mean``, the interval of its worker-hours, and the trials say.

    Two doubts are independent enough to add up in squares (as in ``uncertainty.difference``): how long trajectories
    last, in proportion to the mean, and how much the end hangs on jobs rarer than any trial. The makespan's own error
    comes on top. Training takes what it takes, so that no limit is below the run's training alone.
    """
    if mean.low is None or mean.high is None or not mean.value:
        return Limits(Ends(), Ends())
    policy = demand.effective_policy
    if not run.parts or not policy.barrier:
        whole = _ends(run, run.rollouts, demand, demand.trajectories, mean)
        parts = [(times, Ends(0.0, 0.0)) for times, _ in run.parts]
    else:
        whole, sizes = Ends(0.0, 0.0), (demand.batch or 0, demand.trajectories % (demand.batch or 1))
        parts = [
            (times, _ends(run, step, demand, size, mean))
            for (times, step), size in zip(run.parts, (size for size in sizes if size), strict=True)
        ]
    if not run.parts:
        return Limits(whole, Ends())

    def wall(steps: list[tuple[int, float | None]], rollouts: float | None) -> float | None:
        known = [(times, end) for times, end in steps if end is not None]
        if rollouts is None or len(known) < len(steps):
            return None
        return policy.wall(known, rollouts, demand.train_s / 3600)

    low = wall([(times, ends.low) for times, ends in parts], whole.low)
    high = wall([(times, ends.high) for times, ends in parts], whole.high)
    tails = [whole.tail, *(ends.tail for _, ends in parts)]
    tail = max(tails, key=lambda tail: (tail.needs_trials or 0, tail.sooner_ns))
    return Limits(Ends(low, high, tail), parts[0][1] if policy.barrier else Ends())


def _ends(run: WholeRun, makespan: Makespan, demand: Demand, size: int, mean: Interval) -> Ends:
    """Of rollouts that keep ``size`` trajectories; ``mean`` has limits."""
    assert mean.low is not None
    assert mean.high is not None
    launched, timeout = size, None
    if run.parts and demand.effective_policy.barrier:
        launched = _launched(demand, size)
    if demand.timeout_s is not None:
        timeout = Timeout(round(demand.timeout_s * 1e9), round(demand.backoff_s * 1e9), demand.max_attempts)
    tail = reach(
        run.law,
        launched,
        demand.usable_workers,
        makespan.value_ns,
        tolerance=demand.tolerance,
        excess=launched - size,
        timeout=timeout,
    )
    soonest, latest = max(0.0, makespan.value_ns - makespan.error_ns), makespan.value_ns + makespan.error_ns
    low = soonest - math.hypot(soonest * (1 - mean.low / mean.value), tail.sooner_ns)
    if tail.later_ns is None:
        return Ends(max(0.0, low) / NS_PER_HOUR, None, tail)
    high = latest + math.hypot(latest * (mean.high / mean.value - 1), tail.later_ns)
    return Ends(max(0.0, low) / NS_PER_HOUR, high / NS_PER_HOUR, tail)


def _step(law: Distribution, demand: Demand, size: int, attempts: float, source: Rollouts) -> TrainingStep:
    """An over-provisioned step that keeps ``size`` trajectories, no sooner than the create rate allows."""
    launched = _launched(demand, size)
    return over_provisioned(
        source,
        size,
        launched,
        demand.usable_workers,
        partial=demand.partial_rollouts,
        seed=demand.seed,
        no_sooner_ns=_floor(law, demand, launched, attempts) or 0.0,
        attempts=attempts,
    )


def _launched(demand: Demand, size: int) -> int:
    return math.ceil(size * (1 + demand.over_provision) - 1e-9)


def _makespan(law: Distribution, demand: Demand, jobs: int) -> Makespan:
    return expected_makespan(law, jobs, demand.usable_workers, tolerance=demand.tolerance, seed=demand.seed)


def _throttled(makespan: Makespan, law: Distribution, demand: Demand, jobs: int, attempts: float) -> Makespan:
    """No sooner than the create rate allows."""
    floor = _floor(law, demand, jobs, attempts)
    if floor is None or floor <= makespan.value_ns:
        return makespan
    return Makespan(floor, makespan.error_ns, "create-rate")


def _floor(law: Distribution, demand: Demand, jobs: int, attempts: float) -> float | None:
    if demand.create_rate is None or not jobs:
        return None
    return throttle_floor_ns(jobs * attempts, demand.create_rate, demand.create_burst, law.mean)


def _stall(demand: Demand, wall: float, training_ns: float) -> GpuStall:
    """GPUs wait whenever they do not train."""
    assert demand.gpus is not None
    hours = demand.gpus * max(0.0, wall - training_ns) / NS_PER_HOUR
    usd = None if demand.gpu_usd_hour is None else hours * demand.gpu_usd_hour
    return GpuStall(wall / NS_PER_HOUR, hours, usd)
