"""What each cause costs, with how sure that is.

A value is the mean over the worlds that draw from the trials as they are; how these differ is the simulation's own
error. How much each differs from its twin, which draws from a resample of the trials, is what the trials leave open.
Both variances add up, with Student's t of as many worlds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from costmodel.demand import Demand
from costmodel.pricing import Prices
from costmodel.results import Attribution, GpuWaiting, Share
from costmodel.runs import Basis
from costmodel.samples import Pool
from costmodel.step.assumptions import assumptions
from costmodel.step.worlds import RunTaken, Worlds
from costmodel.uncertainty import Interval, student_t

SURE: Final = 0.997
RUN, IDEAL, THINKLESS = 0, -2, -1
"""Where a world has the run as it is, with an ideal sandbox, and that without think time."""


class Amounts(NamedTuple):
    """What a run takes, in the units of a share."""

    step_s: float
    worker_hours: float
    gpu_hours: float
    usd: float


class Rates(NamedTuple):
    """Dollars per hour."""

    lasting: float  # of the run: its GPUs and nodes
    worker: float
    idle_sandbox: float
    known: bool  # whether anything has a price

    @classmethod
    def of(cls, demand: Demand, pool: Pool, prices: Prices | None) -> Rates:
        """Those that are asked for, and the sheet's."""
        lasting = (demand.gpus or 0) * (demand.gpu_usd_hour or 0.0) + (demand.nodes or 0) * (demand.node_usd_hour or 0)
        known = prices is not None or demand.gpu_usd_hour is not None or demand.node_usd_hour is not None
        if prices is None:
            return cls(lasting, 0.0, 0.0, known)
        idle = prices.sandbox(pool.identity).usd_hour(pool.identity)
        return cls(lasting, prices.worker_usd_hour or 0.0, idle, known)


def attribution(found: Worlds, demand: Demand, pool: Pool, prices: Prices | None, basis: Basis) -> Attribution:
    """From the worlds to shares; ``basis`` is what the run-to-run part of the intervals rests on."""
    rates = Rates.of(demand, pool, prices)

    def amounts(run: RunTaken) -> Amounts:
        waiting = (demand.gpus or 0) * max(0.0, run.wall_hours - found.plan.steps * demand.train_s / 3600)
        idle = run.idle_hours * rates.idle_sandbox
        usd = run.wall_hours * rates.lasting + run.worker_hours * rates.worker + run.sandbox_usd + idle
        return Amounts(run.wall_hours * 3600 / found.plan.steps, run.worker_hours, waiting, usd)

    plain, twins = ([[amounts(run) for run in world] for world in one] for one in (found.plain, found.twins))

    def share(of: Sequence[Sequence[float]], twin: Sequence[Sequence[float]]) -> Share:
        step, hours, gpu, usd = (
            _interval(own, other) for own, other in zip(zip(*of, strict=True), zip(*twin, strict=True), strict=True)
        )
        return Share(step, hours, None if demand.gpus is None else gpu, usd if rates.known else None)

    def saved(worlds: Sequence[Sequence[Amounts]], look: int) -> list[list[float]]:
        return [[a - b for a, b in zip(world[RUN], world[look], strict=True)] for world in worlds]

    causes: dict[str, Share | None] = {}
    summed = [[[0.0] * len(Amounts._fields) for _ in one] for one in (plain, twins)]
    place = RUN
    for cause, acts in found.causes.items():
        if not acts:
            causes[cause] = None if acts is None else share(*([[0.0] * 4] * len(one) for one in (plain, twins)))
            continue
        place += 1
        own = [saved(one, place) for one in (plain, twins)]
        causes[cause] = share(*own)
        summed = [
            [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(total, more, strict=True)]
            for total, more in zip(summed, own, strict=True)
        ]
    ideal = [saved(one, IDEAL) for one in (plain, twins)]
    rest = [
        [[a - b for a, b in zip(x, y, strict=True)] for x, y in zip(one, total, strict=True)]
        for one, total in zip(ideal, summed, strict=True)
    ]
    run = share([world[RUN] for world in plain], [world[RUN] for world in twins])
    steps = found.plan.steps
    return Attribution(
        causes=causes,
        sandbox=share(*ideal),
        interaction=share(*rest),
        run=run,
        waiting=None if demand.gpus is None else _waiting(plain, found, demand, pool),
        usd_per_critical_second=steps * rates.lasting / 3600 if rates.lasting else None,
        assumptions=assumptions(
            demand, basis, failures=sum(not trial.ok for trial in pool.trials), trials=len(pool.trials)
        ),
        steps=steps,
        simulated_steps=found.plan.simulated,
        replicates=len(plain) + len(twins),
        error_s=student_t(len(plain) - 1, SURE) * _sd([world[RUN].step_s for world in plain]) / math.sqrt(len(plain)),
    )


def _interval(plain: Sequence[float], twins: Sequence[float]) -> Interval:
    count = len(plain)
    value = math.fsum(plain) / count
    spread = _sd([twin - own for twin, own in zip(twins, plain, strict=True)])
    half = student_t(count - 1) * math.hypot(spread, _sd(plain) / math.sqrt(count))
    low = value - half
    return Interval(value, max(0.0, low) if value >= 0 and min(plain) >= 0 else low, value + half)


def _sd(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _waiting(plain: Sequence[Sequence[Amounts]], found: Worlds, demand: Demand, pool: Pool) -> GpuWaiting:
    """Of the run as it is, under its own policy."""
    count = len(plain)
    run, ideal, thinkless = (
        math.fsum(world[look].gpu_hours for world in plain) / count for look in (RUN, IDEAL, THINKLESS)
    )
    known = found.causes["dispatch"] is not None
    thinks = demand.think is not None or any(trial.measures.think_ns for trial in pool.trials)
    hours = math.fsum(world[RUN].wall_hours for world in found.plain) / count
    return GpuWaiting(
        hours,
        run,
        ideal - thinkless if thinks else None,
        thinkless if known else None,
        run - ideal if known else None,
    ).priced(demand.gpu_usd_hour)
