"""From the law of one trajectory to the wall-clock of a run: throttles, steps, trainers."""

from __future__ import annotations

import math
from typing import NamedTuple

from costmodel.demand import POLICIES, Demand, Policy
from costmodel.law import Law
from costmodel.makespan import Makespan, expected_makespan
from costmodel.policies import Step, over_provisioned, throttle_floor_ns, wall_ns
from costmodel.results import GpuStall, Steps

NS_PER_HOUR = 3.6e12


class Run(NamedTuple):
    """A whole run in time."""

    wall: Makespan  # training included, where steps were asked for
    rollouts: Makespan  # what of it has a statistical error: the run's one makespan, or a full step's
    floor_ns: float | None  # the create rate's, for the whole run
    steps: Steps | None
    gpu: dict[Policy, GpuStall] | None


def run_in_time(law: Law, demand: Demand, attempts: float) -> Run:
    """How long the demand takes if one trajectory keeps a worker busy as ``law`` says, in ``attempts`` creates."""
    if demand.batch is None:
        whole = _throttled(_makespan(law, demand, demand.trajectories), law, demand, demand.trajectories, attempts)
        return Run(whole, whole, _floor(law, demand, demand.trajectories, attempts), None, None)
    return _in_steps(law, demand, demand.batch, attempts)


def _in_steps(law: Law, demand: Demand, batch: int, attempts: float) -> Run:
    full, rest = divmod(demand.trajectories, batch)
    sizes = [(times, size) for times, size in ((full, batch), (1, rest)) if times and size]
    simulated = [_step(law, demand, size, attempts) for _, size in sizes]
    timed = [(times, step.value_ns) for (times, _), step in zip(sizes, simulated, strict=True)]
    count = sum(times for times, _ in sizes)
    train_ns = demand.train_s * 1e9
    policy = demand.effective_policy
    whole = Makespan(0.0, 0.0, "not needed")
    if policy == "async" or demand.gpus is not None:
        whole = _throttled(_makespan(law, demand, demand.trajectories), law, demand, demand.trajectories, attempts)

    walls = {name: wall_ns(name, timed, whole.value_ns, train_ns) for name in POLICIES}
    first = simulated[0] if simulated else Step(0.0, 0.0, 0.0, 0.0, "order-statistic")
    step = Makespan(first.value_ns, first.error_ns, first.method)
    rollouts = whole if policy == "async" else step
    error_ns = whole.error_ns if policy == "async" else step.error_ns * count
    workers = demand.usable_workers
    busy = sum(times * one.busy_ns for (times, _), one in zip(sizes, simulated, strict=True)) / NS_PER_HOUR
    held = sum(times * workers * one.value_ns for (times, _), one in zip(sizes, simulated, strict=True)) / NS_PER_HOUR
    wasted = sum(times * one.wasted_ns for (times, _), one in zip(sizes, simulated, strict=True)) / NS_PER_HOUR
    extra = demand.over_provision > 0
    steps = Steps(
        steps=count,
        batch=batch,
        launched=_launched(demand, batch),
        step=step,
        idle_worker_hours=0.0 if policy == "async" else max(0.0, held - busy),
        busy_worker_hours=busy if extra else None,
        wasted_worker_hours=wasted if extra else None,
    )
    gpu = {name: _stall(demand, wall, count * train_ns) for name, wall in walls.items()} if demand.gpus else None
    floor = _floor(law, demand, _launched(demand, batch), attempts)
    return Run(Makespan(walls[policy], error_ns, rollouts.method), rollouts, floor, steps, gpu)


def _step(law: Law, demand: Demand, size: int, attempts: float) -> Step:
    """The rollouts of one step of ``size`` trajectories."""
    launched = _launched(demand, size)
    if demand.over_provision == 0:
        rollouts = _throttled(_makespan(law, demand, size), law, demand, size, attempts)
        return Step(rollouts.value_ns, rollouts.error_ns, size * law.mean, 0.0, rollouts.method)
    step = over_provisioned(law, size, launched, demand.usable_workers, demand.partial_rollouts, demand.seed)
    floor = _floor(law, demand, launched, attempts)
    return step if floor is None or floor <= step.value_ns else step._replace(value_ns=floor, method="create-rate")


def _launched(demand: Demand, size: int) -> int:
    return math.ceil(size * (1 + demand.over_provision) - 1e-9)


def _makespan(law: Law, demand: Demand, jobs: int) -> Makespan:
    return expected_makespan(law, jobs, demand.usable_workers, tolerance=demand.tolerance, seed=demand.seed)


def _throttled(makespan: Makespan, law: Law, demand: Demand, jobs: int, attempts: float) -> Makespan:
    """No sooner than the create rate allows."""
    floor = _floor(law, demand, jobs, attempts)
    if floor is None or floor <= makespan.value_ns:
        return makespan
    return Makespan(floor, makespan.error_ns, "create-rate")


def _floor(law: Law, demand: Demand, jobs: int, attempts: float) -> float | None:
    if demand.create_rate is None or not jobs:
        return None
    return throttle_floor_ns(jobs * attempts, demand.create_rate, demand.create_burst, law.mean)


def _stall(demand: Demand, wall: float, training_ns: float) -> GpuStall:
    """GPUs wait whenever they do not train."""
    assert demand.gpus is not None
    hours = demand.gpus * max(0.0, wall - training_ns) / NS_PER_HOUR
    usd = None if demand.gpu_usd_hour is None else hours * demand.gpu_usd_hour
    return GpuStall(wall / NS_PER_HOUR, hours, usd)
