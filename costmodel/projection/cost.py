"""Money of a run: each attempt on the provider's clock, by the units of its tariff."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from costmodel.pricing.sheet import ACTIVE, FREE, Meter, Prices, SandboxPrice, billed_ns
from costmodel.projection import warnings
from costmodel.projection.row import Cost, PoolUse
from costmodel.projection.wall_clock import TimedRun
from costmodel.recording.breakdown import UNKNOWN
from costmodel.recording.trial import CellIdentity
from costmodel.statistics.intervals import Interval
from costmodel.training.run import Think, TrainingRun
from costmodel.units import NS_PER_HOUR
from costmodel.workload.attempts import Attempt
from costmodel.workload.pool import Pool, attempts


def cost(
    timed: TimedRun,
    pool: Pool,
    prices: Prices,
    training_run: TrainingRun,
    worker_hours: Interval,
    beyond: Interval,
    warm_pool: PoolUse | None,
) -> Cost:
    """Return the bill: each attempt is billed with its own minimum and increment.

    ``beyond``: error of actions beyond the recorded ones, as a share. With over-provisioning each launch is billed
    until its end or cut. Where sources disagree, or usage is known within limits only, the value is the middle.
    """
    price = prices.sandbox(pool.identity)
    lower, upper = (_sandboxes(timed, training_run, price, pool, lowest=lowest) for lowest in (True, False))
    idle = 0.0
    if warm_pool is not None:
        idle = price.idle_usd_hour(pool.identity) * warm_pool.idle_sandboxes * timed.run.wall.value_ns / NS_PER_HOUR
    used = timed.tally.total(lambda attempt: attempt.sandbox_ns)
    billed = timed.tally.total(lambda attempt: billed_ns(attempt.sandbox_ns, price.minimum_ns, price.increment_ns))
    ratio = float(billed / used) if used else 1.0
    sandboxes = _across(lower, upper)
    sandboxes = sandboxes.widened(beyond.times(sandboxes.value)).not_negative()
    return _cost(prices, pool.identity, sandboxes, worker_hours.value, ratio, idle)


def cost_of_mean(
    identity: CellIdentity, trajectory_ns: int, prices: Prices, training_run: TrainingRun, worker_hours: float
) -> Cost:
    """Return the bill if every trajectory took ``trajectory_ns``, without an interval.

    Where sources disagree, or CPU time is billed, it is from the lowest to the highest possible bill.
    """
    price = prices.sandbox(identity)
    most_cpu_ns = trajectory_ns * identity.cpu_milli // 1000
    lower, upper = (
        Interval(training_run.trajectories * Meter.usd(meter.billed(trajectory_ns, cpu_ns)))
        for meter, cpu_ns in ((price.meter(identity, lowest=True), 0), (price.meter(identity), most_cpu_ns))
    )
    ratio = billed_ns(trajectory_ns, price.minimum_ns, price.increment_ns) / trajectory_ns
    return _cost(prices, identity, _across(lower, upper), worker_hours, ratio)


def _cost(
    prices: Prices, identity: CellIdentity, sandbox: Interval, worker_hours: float, ratio: float, idle: float = 0.0
) -> Cost:
    worker = None if prices.worker_usd_hour is None else worker_hours * prices.worker_usd_hour
    return Cost(
        sandbox_usd=sandbox,
        idle_pool_usd=idle,
        worker_usd=worker,
        total_usd=sandbox.value + idle + (worker or 0.0),
        usd_per_sandbox_hour=prices.sandbox(identity).usd_hour(identity),
        billed_ratio=ratio,
        sheet=prices.sandbox(identity).sheet,
    )


def doubts(price: SandboxPrice, *, cpu_known: bool, think: bool) -> list[str]:
    """Return warnings about a row's bill."""
    conditions = {
        warnings.STALE_PRICES: price.stale,
        warnings.PRICES_DISPUTED: price.disputed,
        warnings.CPU_UNKNOWN: price.cpu == ACTIVE and not cpu_known,
        warnings.IDLE_UNKNOWN: price.idle == FREE and think,
        warnings.EGRESS_LEFT_OUT: price.rate("usd_per_egress_gib") > 0,
    }
    return [flag for flag, holds in conditions.items() if holds]


def _usage(price: SandboxPrice, pool: Pool, attempt: Attempt, *, lowest: bool) -> tuple[int, int]:
    """Return the billed existence and CPU time of an attempt, in ns.

    At the lowest, idle time is free where the tariff says so, and unknown CPU time is none. At the highest, idle time
    is billed, and all vCPUs are busy where CPU time is unknown.
    """
    exists, cpu = attempt.sandbox_ns, attempt.cpu_ns
    if lowest:
        return max(0, exists - attempt.think_ns) if price.idle == FREE else exists, max(0, cpu)
    if cpu == UNKNOWN:
        busy = attempt.unsplit_ns if attempt.run_ns == UNKNOWN else attempt.run_ns
        cpu = busy * pool.identity.cpu_milli // 1000
    return exists, cpu


def _sandboxes(
    timed: TimedRun, training_run: TrainingRun, price: SandboxPrice, pool: Pool, *, lowest: bool
) -> Interval:
    """Return the bill of all attempts, without nodes and idle pool sandboxes."""
    meter, usage = price.meter(pool.identity, lowest=lowest), partial(_usage, price, pool, lowest=lowest)
    billed = timed.tally.per_success(
        lambda attempt: meter.billed(*usage(attempt)),
        lambda attempt: meter.exists * (usage(attempt)[0] - attempt.sandbox_ns + attempt.think_ns),
    )
    return billed.times(Meter.usd(float(training_run.trajectories * timed.retries.delivered)))


def by_clock(
    pool: Pool, price: SandboxPrice | None, training_run: TrainingRun
) -> tuple[Callable[[Sequence[int], float], float], float]:
    """Return a function from running and suspended time of sandboxes to dollars, and half the range as a share.

    CPU time is proportional to lifetime, suspended time included, as over all attempts. Where sources disagree, or
    usage is known within limits, the dollars are the middle.
    """
    if price is None or not any(usd for _, usd in price.rates.values()):
        return (lambda clocks_ns, suspended_ns: 0.0), 0.0
    as_recorded = training_run.failure_rate is None and training_run.failure_hazard is None
    think = training_run.think and Think(round(training_run.think.mean_ns))  # a single version of each attempt
    sample = attempts(pool, training_run.length, replace(training_run, think=think, think_correlation=0.0))
    sample = [attempt for attempt in sample if attempt.ok or as_recorded]
    whole_ns = sum(attempt.weight * attempt.sandbox_ns for attempt in sample) or 1
    bills = set()  # a single one, where both limits agree
    for lowest in (True, False):
        meter, usage = price.meter(pool.identity, lowest=lowest), partial(_usage, price, pool, lowest=lowest)
        used = ([attempt.weight * ns for ns in usage(attempt)] for attempt in sample)
        bills.add((meter, *(sum(ns) / whole_ns for ns in zip(*used, strict=True))))

    def costs(clocks_ns: Sequence[int], suspended_ns: float = 0) -> list[int]:
        running = sum(clocks_ns) or 1
        whole = (running + suspended_ns) / running  # lifetime / running time
        return [
            sum(meter.billed(round(ns * min(1.0, whole * exists)), round(ns * whole * cpu)) for ns in clocks_ns)
            for meter, exists, cpu in bills
        ]

    ends = costs([attempt.sandbox_ns for attempt in sample])
    share = (max(ends) - min(ends)) / (sum(ends) or 1)
    return (lambda clocks_ns, suspended_ns: Meter.usd(sum(costs(clocks_ns, suspended_ns)) / len(bills))), share


def _across(lower: Interval, upper: Interval) -> Interval:
    """Return the middle with the outer limits of both; equal intervals stay as they are."""
    if lower == upper:
        return upper
    low = lower.value if lower.low is None else lower.low
    high = upper.value if upper.high is None else upper.high
    return Interval((lower.value + upper.value) / 2, low, high)


def no_surer(amount: Interval, than: Interval) -> Interval:
    """An amount with limits at least as far off, in proportion, as another's."""
    if amount.low is None or amount.high is None or than.low is None or than.high is None or not than.value:
        return amount
    low, high = (amount.value * end / than.value for end in (than.low, than.high))
    return Interval(amount.value, min(low, amount.low), max(high, amount.high))
