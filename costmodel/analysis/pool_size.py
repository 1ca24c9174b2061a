"""How many sandboxes to keep ready: what each size of a warm pool costs, and the smallest that keeps waits short.

Every size is simulated with the same random numbers, so that two sizes differ by the pool alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from costmodel.errors import SourceError, TrainingRunError
from costmodel.pricing.sheet import Prices
from costmodel.projection.cost import cost
from costmodel.projection.option_support import option
from costmodel.projection.row import PoolUse, WallClock
from costmodel.projection.wall_clock import timed_run
from costmodel.statistics.distribution import Distribution
from costmodel.statistics.intervals import Interval
from costmodel.training.run import TrainingRun
from costmodel.units import NS_PER_HOUR, NS_PER_S
from costmodel.workload.attempts import Attempt
from costmodel.workload.pool import Pool, attempts

P: Final = 0.95
_ADDS_WAITS: Final = ("create_rate", "timeout_s")
"""What makes attempts wait, or end, in a way that the law of starts does not tell."""


class PoolPoint(NamedTuple):
    """One size of a pool."""

    size: int  # kept ready; 0: no pool
    hit: float  # share of attempts that find a sandbox ready
    p95_wait_s: float  # for a sandbox: nothing on a hit, else create and ready
    worker_hours: float
    wall_clock_hours: float
    idle_sandboxes: float  # that wait, on average
    sandbox_usd: float | None  # of attempts; None: no prices
    idle_usd: float | None
    worker_usd: float | None
    gpu_usd: float | None  # that GPUs wait for, whatever for; None: no price of one
    total_usd: float | None  # of what is known of these; None: nothing is


class PoolChoice(NamedTuple):
    """What was tried, ascending, and which of it to take."""

    points: tuple[PoolPoint, ...]
    smallest: PoolPoint | None  # whose p95 wait is within the limit; None: no size is, or none was asked for
    cheapest: PoolPoint | None  # in dollars; None: nothing has a price


def pool_sizes(
    pool: Pool,
    training_run: TrainingRun,
    prices: Prices | None = None,
    *,
    p95_wait_s: float | None = None,
    most: int | None = None,
) -> PoolChoice:
    """Try pools from none to ``most`` (usually as many as there are workers) for a recorded cell.

    The training run says how a pool refills; its own size does not matter. With ``p95_wait_s`` the smallest size that
    keeps that limit is found to the sandbox, if the wait falls with the size.

    Raises:
        TrainingRunError: it does not say how a pool refills, asks for what is not simulated here, or a limit makes no
        sense. SourceError: no attempt succeeds.
        PriceError: the sheet lacks a price.
    """
    most = _checked(training_run, p95_wait_s, most)
    sample = attempts(pool, training_run.length, training_run)
    found: dict[int, PoolPoint] = {}

    def at(size: int) -> PoolPoint:
        if size not in found:
            found[size] = _point(pool, sample, training_run, prices, size)
        return found[size]

    for size in _doubling(most):
        at(size)
    smallest = None
    if p95_wait_s is not None and (enough := [size for size in sorted(found) if found[size].p95_wait_s <= p95_wait_s]):
        below = max((size for size in found if size < enough[0]), default=enough[0])
        above = enough[0]
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (below, middle) if at(middle).p95_wait_s <= p95_wait_s else (middle, above)
        smallest = at(above)
    points = tuple(found[size] for size in sorted(found))
    told = [point for point in points if point.total_usd is not None]
    return PoolChoice(points, smallest, min(told, key=lambda point: point.total_usd or 0.0, default=None))


def _checked(training_run: TrainingRun, p95_wait_s: float | None, most: int | None) -> int:
    if training_run.warm_pool is None:
        raise TrainingRunError(
            "a pool is as good as its refill: add --warm-pool 1 and --refill-seconds S or --refill-rate R"
        )
    if training_run.refill_s is None and training_run.refill_rate is None:
        raise TrainingRunError("a pool for each image is not sized here: add --refill-seconds S or --refill-rate R")
    refused = [name for name in _ADDS_WAITS if getattr(training_run, name) is not None] + training_run.step_model
    if refused:
        named = ", ".join(map(option, refused))
        raise TrainingRunError(f"the size of a pool does not say what it takes with {named}; leave that out")
    if p95_wait_s is not None and not 0 <= p95_wait_s < math.inf:
        raise TrainingRunError(f"the limit of the wait must be a number of seconds of at least 0, not {p95_wait_s}")
    if most is not None and (not isinstance(most, int) or most < 1):
        raise TrainingRunError(f"the largest pool must be a whole number of at least 1, not {most}")
    return most or training_run.usable_workers


def _doubling(most: int) -> list[int]:
    sizes = [0]
    while sizes[-1] < most:
        sizes.append(min(most, max(1, 2 * sizes[-1])))
    return sizes


def _point(
    pool: Pool, sample: Sequence[Attempt], training_run: TrainingRun, prices: Prices | None, size: int
) -> PoolPoint:
    kept = {"warm_pool": size} if size else {"warm_pool": None, "refill_s": None, "refill_rate": None}
    asked = replace(training_run, **kept)
    timed = timed_run(sample, pool, asked)
    if timed is None:
        raise SourceError(f"{pool.identity.label}: no attempt succeeds, so there is nothing to keep ready")
    run, outcome = timed.run, timed.run.outcome
    wall_hours = run.wall.value_ns / NS_PER_HOUR
    hit = idle = 0.0
    busy_ns = float(timed.law.mean) * training_run.trajectories
    if outcome is not None:
        busy_ns = outcome.held_ns.value
        hit = outcome.hits.value / outcome.attempts.value if size else 0.0
        idle = outcome.idle_ns.value / outcome.wall_ns.value if size and outcome.wall_ns.value else 0.0
    worker_hours = busy_ns / NS_PER_HOUR
    gpu_usd = None
    if run.gpu is not None and training_run.gpu_usd_hour is not None:
        gpu_usd = run.gpu[training_run.effective_policy.name].waiting_gpu_hours * training_run.gpu_usd_hour
    sandbox_usd = idle_usd = worker_usd = None
    if prices is not None:
        clock = WallClock(wall_hours, None, None, wall_hours, run.wall.method, None)
        use = PoolUse(hit, idle, "") if size else None
        bill = cost(timed, pool, prices, asked, Interval(worker_hours), clock, use)
        sandbox_usd, idle_usd, worker_usd = bill.sandbox_usd.value, bill.idle_pool_usd, bill.worker_usd
    parts = [part for part in (sandbox_usd, idle_usd, worker_usd, gpu_usd) if part is not None]
    return PoolPoint(
        size=size,
        hit=hit,
        p95_wait_s=_wait_ns(sample, hit) / NS_PER_S,
        worker_hours=worker_hours,
        wall_clock_hours=wall_hours,
        idle_sandboxes=idle,
        sandbox_usd=sandbox_usd,
        idle_usd=idle_usd,
        worker_usd=worker_usd,
        gpu_usd=gpu_usd,
        total_usd=math.fsum(parts) if parts else None,
    )


def _wait_ns(sample: Sequence[Attempt], hit: float) -> int:
    """The 95th percentile of waits that are nothing on a hit, and a start as recorded on a miss."""
    if 1 - hit <= 1 - P:
        return 0
    weights: dict[int, int] = {}
    for attempt in sample:
        weights[attempt.cold_ns] = weights.get(attempt.cold_ns, 0) + attempt.weight
    return Distribution(weights).quantile((P - hit) / (1 - hit))
