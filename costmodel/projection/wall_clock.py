"""From the law of one trajectory to the wall-clock: in closed form where that is exact, else event by event."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from costmodel.projection.row import GpuWaiting, Steps
from costmodel.projection.tail_limits import Reach, Timeout, reach
from costmodel.simulation.engine.estimate import ASIDE, ATTEMPTS, SimulatedRun, simulate
from costmodel.simulation.engine.rules import Rules, launched
from costmodel.simulation.engine.tries import Source
from costmodel.simulation.makespan import Makespan, expected_makespan
from costmodel.simulation.renewal import bounds, expected_max
from costmodel.statistics.distribution import Distribution
from costmodel.statistics.intervals import Interval
from costmodel.training.policies import POLICIES, OneStepOff, Policy, Sync
from costmodel.training.run import Demand
from costmodel.units import NS_PER_HOUR

LEAST: Final = 500
"""Attempts that a simulation has however many rows share the effort."""


class WholeRun(NamedTuple):
    """A whole run in time."""

    wall: Makespan  # training included, where steps were asked for
    rollouts: Makespan  # what of it has a statistical error: the run's one makespan, or a full step's
    steps: Steps | None
    gpu: dict[str, GpuWaiting] | None
    parts: list[tuple[int, Makespan]]  # the rollouts of a step and how many steps are alike; none without steps
    law: Distribution  # of how long a worker is busy with one trajectory
    outcome: SimulatedRun | None = None  # where it was simulated event by event: what else it takes


def run_in_time(law: Distribution, demand: Demand, source: Source | None = None, *, aside: bool = False) -> WholeRun:
    """How long the demand takes if one trajectory keeps a worker busy as ``law`` says.

    ``source`` are the same trajectories attempt by attempt, for what a closed form does not know; None: as the law
    has them. ``aside`` is what is asked beside the demand, and simulated less.
    """
    source = source or Source.of(law)
    if _by_events(law, demand, source):
        return _simulated(law, demand, source, aside=aside)
    if demand.step_rollouts is None:
        whole = _makespan(law, demand, demand.trajectories)
        return WholeRun(whole, whole, None, None, [], law)
    return _in_steps(law, demand, demand.step_rollouts, source)


def _by_events(law: Distribution, demand: Demand, source: Source) -> bool:
    """Whether no closed form is exact for what is asked.

    With retries the law of a trajectory is put together from a few thousand; that is good enough where only its
    moments matter, and not where the longest of many decides.
    """
    if not demand.trajectories:
        return False
    if demand.create_rate is not None or demand.warm_pool is not None or demand.over_provision > 0:
        return True
    if source.failures == 0 or law.mean == 0:
        return False
    low, high = bounds(law, demand.step_rollouts or demand.trajectories, demand.usable_workers)
    return high - low > 2 * demand.tolerance * low


def _in_steps(law: Distribution, demand: Demand, batch: int, source: Source) -> WholeRun:
    sizes = _sizes(demand, batch)
    parts = [(times, _makespan(law, demand, size)) for times, size in sizes]
    step = parts[0][1] if parts else Makespan(0.0, 0.0, "order-statistic")
    count = sum(times for times, _ in sizes)
    policy = demand.effective_policy
    rollouts = step if policy.barrier else _makespan(law, demand, demand.trajectories)
    asked = POLICIES.values() if demand.gpus is not None else [policy]
    walls = {one.name: _wall(one, law, demand, parts, source) for one in asked}
    busy = demand.trajectories * law.mean / NS_PER_HOUR
    held = sum(times * demand.usable_workers * one.value_ns for times, one in parts) / NS_PER_HOUR
    steps = Steps(
        steps=count,
        batch=batch,
        launched=batch,
        step=step,
        idle_worker_hours=max(0.0, held - busy) if policy.barrier else 0.0,
        busy_worker_hours=None,
        wasted_worker_hours=None,
    )
    return WholeRun(walls[policy.name], rollouts, steps, _gpu(demand, count, walls), parts, law)


def _wall(
    policy: Policy, law: Distribution, demand: Demand, parts: list[tuple[int, Makespan]], source: Source
) -> Makespan:
    """The wall-clock of steps whose rollouts nothing but workers holds up."""
    train_ns = demand.train_s * 1e9
    if not parts:
        return Makespan(0.0, 0.0, "order-statistic")
    method = parts[0][1].method
    if policy.barrier and (policy.linear or not train_ns):
        value = policy.wall([(times, one.value_ns) for times, one in parts], 0.0, train_ns)
        return Makespan(value, sum(times * one.error_ns for times, one in parts), method)
    if not policy.barrier and not train_ns:
        return _makespan(law, demand, demand.trajectories)
    if isinstance(policy, OneStepOff) and demand.step_rollouts and demand.step_rollouts <= demand.usable_workers:
        longer = [times * expected_max(law, size, train_ns) for times, size in _sizes(demand, demand.step_rollouts)]
        first = expected_max(law, min(demand.step_rollouts, demand.trajectories), train_ns)
        return Makespan(sum(longer) - first + parts[0][1].value_ns + train_ns, 0.0, method)
    outcome = _expect(demand, source, policy)
    return Makespan(*outcome.wall_ns, "events")


def _simulated(law: Distribution, demand: Demand, source: Source, *, aside: bool) -> WholeRun:
    policy = demand.effective_policy
    names = list(POLICIES) if demand.gpus is not None else [policy.name]
    if demand.step_rollouts is not None and not policy.barrier and Sync.name not in names:
        names.append(Sync.name)  # for what a step alone would take
    outcomes = {name: _expect(demand, source, POLICIES[name], aside=aside) for name in names}
    own = outcomes[policy.name]
    walls = {name: Makespan(*outcome.wall_ns, "events") for name, outcome in outcomes.items()}
    if demand.step_rollouts is None:
        return WholeRun(walls[policy.name], walls[policy.name], None, None, [], law, own)
    one_step = own if policy.barrier else outcomes[Sync.name]
    sizes = _sizes(demand, demand.step_rollouts)
    step = Makespan(*one_step.step_ns, "events")
    last_ns = max(0.0, one_step.steps_ns.value - sizes[0][0] * step.value_ns)
    parts = [
        (times, step if not i else Makespan(last_ns, step.error_ns, "events")) for i, (times, _) in enumerate(sizes)
    ]
    count = sum(times for times, _ in sizes)
    held = demand.usable_workers * own.steps_ns.value
    cut = demand.over_provision > 0
    steps = Steps(
        steps=count,
        batch=demand.step_rollouts,
        launched=launched(demand.step_rollouts, demand.over_provision),
        step=step,
        idle_worker_hours=max(0.0, held - own.busy_ns) / NS_PER_HOUR if policy.barrier else 0.0,
        busy_worker_hours=own.busy_ns / NS_PER_HOUR if cut else None,
        wasted_worker_hours=own.wasted_ns.value / NS_PER_HOUR if cut else None,
    )
    rollouts = step if policy.barrier else Makespan(*own.steps_ns, "events")
    return WholeRun(walls[policy.name], rollouts, steps, _gpu(demand, count, walls), parts, law, own)


def _sizes(demand: Demand, batch: int) -> list[tuple[int, int]]:
    """How many steps keep how many trajectories."""
    full, rest = divmod(demand.trajectories, batch)
    return [(times, size) for times, size in ((full, batch), (1, rest)) if times and size]


def _expect(demand: Demand, source: Source, policy: Policy, *, aside: bool = False) -> SimulatedRun:
    most = ATTEMPTS if policy is demand.effective_policy and not aside else ASIDE
    return simulate(
        Rules.of(demand, policy),
        source,
        demand.trajectories,
        tolerance=demand.tolerance,
        seed=demand.seed,
        batch=None if policy.barrier else demand.step_rollouts,
        most=max(LEAST, round(demand.effort * most)),
    )


class Ends(NamedTuple):
    """Between which hours something ends; both None where the mean has no interval."""

    low: float | None = None
    high: float | None = None  # None beside a lower limit: at least that
    tail: Reach = Reach(0.0, 0.0, None)  # what of it the last jobs account for: of the run's, or of one step's


class RunLimits(NamedTuple):
    """The ends of a run, and of the rollouts of one full step where steps wait for them."""

    run: Ends
    step: Ends


def limits(run: WholeRun, demand: Demand, mean: Interval) -> RunLimits:
    """Between which hours the run ends, for all that ``mean``, the interval of its worker-hours, and the trials say.

    Two doubts are independent enough to add up in squares (as in ``intervals.difference``): how long trajectories
    last, in proportion to the mean, and how much the end hangs on jobs rarer than any trial. The makespan's own error
    comes on top. Training takes what it takes, so that no limit is below the run's training alone.
    """
    if mean.low is None or mean.high is None or not mean.value:
        return RunLimits(Ends(), Ends())
    policy = demand.effective_policy
    if not run.parts or not policy.barrier:
        whole = _ends(run, run.rollouts, demand, demand.trajectories, mean)
        parts = [(times, Ends(0.0, 0.0)) for times, _ in run.parts]
    else:
        whole, sizes = Ends(0.0, 0.0), (demand.step_rollouts or 0, demand.trajectories % (demand.step_rollouts or 1))
        parts = [
            (times, _ends(run, step, demand, size, mean))
            for (times, step), size in zip(run.parts, (size for size in sizes if size), strict=True)
        ]
    if not run.parts:
        return RunLimits(whole, Ends())

    def wall(steps: list[tuple[int, float | None]], rollouts: float | None) -> float | None:
        known = [(times, end) for times, end in steps if end is not None]
        if rollouts is None or len(known) < len(steps):
            return None
        return policy.wall(known, rollouts, demand.train_s / 3600)

    low = wall([(times, ends.low) for times, ends in parts], whole.low)
    high = wall([(times, ends.high) for times, ends in parts], whole.high)
    tails = [whole.tail, *(ends.tail for _, ends in parts)]
    tail = max(tails, key=lambda tail: (tail.needs_trials or 0, tail.sooner_ns))
    return RunLimits(Ends(low, high, tail), parts[0][1] if policy.barrier else Ends())


def _ends(run: WholeRun, makespan: Makespan, demand: Demand, size: int, mean: Interval) -> Ends:
    """Of rollouts that keep ``size`` trajectories; ``mean`` has limits."""
    assert mean.low is not None
    assert mean.high is not None
    jobs, timeout = size, None
    if run.parts and demand.effective_policy.barrier:
        jobs = launched(size, demand.over_provision)
    if demand.timeout_s is not None:
        timeout = Timeout(round(demand.timeout_s * 1e9), round(demand.backoff_s * 1e9), demand.max_attempts)
    tail = reach(
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
        return Ends(max(0.0, low) / NS_PER_HOUR, None, tail)
    high = latest + math.hypot(latest * (mean.high / mean.value - 1), tail.later_ns)
    return Ends(max(0.0, low) / NS_PER_HOUR, high / NS_PER_HOUR, tail)


def _makespan(law: Distribution, demand: Demand, jobs: int) -> Makespan:
    return expected_makespan(
        law, jobs, demand.usable_workers, tolerance=demand.tolerance, seed=demand.seed, effort=demand.effort
    )


def _gpu(demand: Demand, steps: int, walls: dict[str, Makespan]) -> dict[str, GpuWaiting] | None:
    """GPUs wait whenever they do not train."""
    if demand.gpus is None:
        return None
    waiting = {}
    for name in POLICIES:
        wall_ns = walls[name].value_ns
        hours = demand.gpus * max(0.0, wall_ns - steps * demand.train_s * 1e9) / NS_PER_HOUR
        waiting[name] = GpuWaiting(wall_ns / NS_PER_HOUR, hours)
    return waiting
