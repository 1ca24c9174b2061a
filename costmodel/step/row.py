"""A projected row with its attribution, and with all that only the simulation of steps can answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from costmodel.billing import no_surer, nodes_usd, plus
from costmodel.demand import Demand
from costmodel.makespan import Makespan
from costmodel.pricing import Prices
from costmodel.results import Attribution, Cost, PoolUse, Projection, Share, Steps, WallClock
from costmodel.samples import Pool
from costmodel.step.attribution import Rates, attribution, needed, with_run
from costmodel.step.rules import StepRules
from costmodel.step.timeline import StepTaken
from costmodel.step.worlds import Progress, Worlds, worlds
from costmodel.timescale import NS_PER_HOUR
from costmodel.uncertainty import Interval

COARSE: Final = 0.01
"""The effort for a row of which no attribution is wanted, and that nothing else answers."""


def attributed(
    row: Projection,
    pool: Pool,
    demand: Demand,
    prices: Prices | None,
    effort: float,
    progress: Progress | None = None,
) -> Projection:
    """The row of a run in steps with its attribution; with an ``effort`` of 0 without, but answered all the same.

    It is simulated until its own error is small, or as much as the ``effort`` allows, relative to the usual.
    ``progress`` is told the share that is done. Raises ``PriceError``: the sheet lacks a price.
    """
    if row.evidence is None or not demand.trajectories:
        return row
    found = worlds(
        pool,
        demand,
        prices,
        _full_speed(row),
        effort or COARSE,
        needed=lambda found: needed(found, demand, pool, prices),
        progress=progress,
        causes=effort > 0,
    )
    if found is None:
        return row
    told = attribution(found, demand, pool, prices, row.evidence.basis)
    if demand.step_model:
        row = _answered(row, pool, demand, prices, found, told)
    else:
        told = _as_in_the_row(row, demand, told)
    return replace(row, attribution=told) if effort else row


def _as_in_the_row(row: Projection, demand: Demand, told: Attribution) -> Attribution:
    """The attribution of a run that the row knows better: one answer has one wall-clock, and one bill."""
    wall, hours = row.wall_clock_hours, row.worker_hours
    if wall is None or hours is None:
        return told
    asked = Rates.asked(demand) * wall.value
    usd = None if told.run.usd is None else asked + (row.cost.total_usd if row.cost is not None else 0.0)
    found = Share(
        Interval(wall.value * 3600 / told.steps),
        Interval(hours.value),
        told.run.gpu_hours and Interval((demand.gpus or 0) * (wall.value - told.steps * demand.train_s / 3600)),
        usd if usd is None else Interval(usd),
    )
    pairs = zip(found, told.run, strict=True)
    change = Share(*(None if one is None or old is None else Interval(one.value - old.value) for one, old in pairs))  # type: ignore[arg-type]
    return with_run(told, change, sandbox=False)


def _full_speed(row: Projection) -> float | None:
    """The share of the row's work that its reference takes for it."""
    hours = row.by_cause_worker_hours
    if hours is None or hours.work is None or hours.slowdown is None or not hours.work + hours.slowdown:
        return None
    return hours.work / (hours.work + hours.slowdown)


def _answered(
    row: Projection, pool: Pool, demand: Demand, prices: Prices | None, found: Worlds, told: Attribution
) -> Projection:
    """What the closed forms and the stream of attempts have no rule for, as it was simulated."""
    plan, rules = found.plan, StepRules.of(demand)
    part = found.share

    def mean(value: Callable[[StepTaken], float]) -> float:
        each = (zip(plan.stands_for, world[0], strict=True) for world in found.plain)
        return math.fsum(times * value(step) for world in each for times, step in world) / len(found.plain)

    attempts, delivered = part * mean(lambda step: step.attempts), part * mean(lambda step: step.delivered)
    hours, wall = told.run.worker_hours, told.run.step_s.times(plan.steps / 3600)
    fluid = hours.value / demand.usable_workers
    wall_clock = WallClock(wall.value, wall.low, wall.high, fluid, "events", told.error_s * plan.steps / 3600)
    step_s = told.run.step_s.value - demand.train_s * rules.rules.policy.linear
    step = Makespan(step_s * 1e9, told.error_s * 1e9, "events")
    held = demand.usable_workers * step_s * plan.steps / 3600 if rules.rules.policy.linear else hours.value
    launched = rules.rules.launched(rules.size)
    idle_hours = found.times * mean(lambda step: step.idle_ns) / NS_PER_HOUR
    pool_use = None
    if row.warm_pool is not None:
        groups = max(1.0, demand.usable_workers / (demand.group_size or 1))
        idle = (demand.warm_pool or 0) * groups if demand.image_pool else idle_hours / (wall.value or 1.0)
        hit = part * mean(lambda step: step.hits) / (attempts or 1.0)
        pool_use = PoolUse(hit, idle, row.warm_pool.rule)
        idle_hours = idle * wall.value
    return replace(
        row,
        attempts=attempts / demand.trajectories,
        delivered=delivered / demand.trajectories,
        worker_hours=hours,
        tax_worker_hours=told.sandbox.worker_hours if found.causes["dispatch"] is not None else None,
        tax_between_worker_hours=None,
        by_cause_worker_hours=None,
        wall_clock_hours=wall_clock,
        steps=Steps(plan.steps, rules.size, launched, step, max(0.0, held - hours.value), None, None),
        gpu=None if told.waiting is None else {rules.rules.policy.name: told.waiting},
        warm_pool=pool_use,
        cost=row.cost
        and _cost(row.cost, pool, demand, prices, part * mean(lambda step: step.usd), idle_hours, hours, wall_clock),
        stress=None,
    )


def _cost(
    cost: Cost,
    pool: Pool,
    demand: Demand,
    prices: Prices | None,
    sandbox_usd: float,
    idle_hours: float,
    hours: Interval,
    wall_clock: WallClock,
) -> Cost:
    """What sandboxes, pool, workers and the sheet's nodes are charged; GPUs and the demand's nodes are not in it.

    As sure as the worker-hours are, and no surer than the row's bill was: its price may be a range.
    """
    assert prices is not None
    rates = Rates.of(demand, pool, prices)
    idle, worker = idle_hours * rates.idle_sandbox, hours.value * rates.worker
    price = prices.sandbox(pool.identity)
    at_a_time = min(demand.usable_workers, demand.trajectories) + (demand.warm_pool or 0)
    by_node = nodes_usd(price, pool.identity, at_a_time, wall_clock, demand)
    own = no_surer(hours.times(sandbox_usd / (hours.value or 1.0)), cost.sandbox_usd)
    return cost._replace(
        sandbox_usd=plus(own, by_node),
        idle_pool_usd=idle,
        worker_usd=None if prices.worker_usd_hour is None else worker,
        total_usd=sandbox_usd + by_node.value + idle + worker,
    )
