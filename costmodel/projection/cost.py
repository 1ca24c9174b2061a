"""Money of a run: each attempt on the provider's clock, by the units of its tariff."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from costmodel.pricing.sheet import ACTIVE, FREE, Meter, Prices, SandboxPrice, billed_ns
from costmodel.projection import warnings
from costmodel.projection.row import Cost, PoolUse
from costmodel.projection.wall_clock import TimedRun
from costmodel.recording.breakdown import UNKNOWN
from costmodel.recording.trial import CellIdentity
from costmodel.statistics.intervals import Interval
from costmodel.training.run import TrainingRun
from costmodel.units import NS_PER_HOUR
from costmodel.workload.attempts import Sample
from costmodel.workload.estimator import Tally
from costmodel.workload.pool import Pool, at_length


def cost(
    timed: TimedRun,
    pool: Pool,
    prices: Prices,
    training_run: TrainingRun,
    worker_hours: Interval,
    warm_pool: PoolUse | None,
) -> Cost:
    """Return the bill: each attempt is billed with its own minimum and increment.

    With over-provisioning each launch is billed until its end or cut. Where sources disagree, or usage is
    known within limits only, the value is the middle.
    """
    price = prices.sandbox(pool.identity)
    lower = _sandboxes(timed, training_run, price.meter(pool.identity, lowest=True), _LowerUse(price, pool))
    upper = _sandboxes(timed, training_run, price.meter(pool.identity), _UpperUse(price, pool))
    sandbox = _across(lower, upper).not_negative()
    idle = 0.0
    if warm_pool is not None:
        idle = price.idle_usd_hour(pool.identity) * warm_pool.idle_sandboxes * timed.run.wall.value_ns / NS_PER_HOUR
    worker = None if prices.worker_usd_hour is None else worker_hours.value * prices.worker_usd_hour
    return Cost(
        sandbox_usd=sandbox,
        idle_pool_usd=idle,
        worker_usd=worker,
        total_usd=sandbox.value + idle + (worker or 0.0),
        usd_per_sandbox_hour=price.usd_hour(pool.identity),
        billed_ratio=_ratio(timed.tally, price),
        sheet=price.sheet,
    )


def cost_of_mean(
    identity: CellIdentity,
    trajectory_ns: int,
    prices: Prices,
    training_run: TrainingRun,
    worker_hours: float,
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
    sandbox = _across(lower, upper)
    worker = None if prices.worker_usd_hour is None else worker_hours * prices.worker_usd_hour
    return Cost(
        sandbox_usd=sandbox,
        idle_pool_usd=0.0,
        worker_usd=worker,
        total_usd=sandbox.value + (worker or 0.0),
        usd_per_sandbox_hour=price.usd_hour(identity),
        billed_ratio=billed_ns(trajectory_ns, price.minimum_ns, price.increment_ns) / trajectory_ns,
        sheet=price.sheet,
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


class _UpperUse:
    """The most that an attempt can be billed for: idle time too, all vCPUs busy where CPU time is unknown."""

    def __init__(self, price: SandboxPrice, pool: Pool) -> None:
        self.price = price
        self.cpu_milli = pool.identity.cpu_milli

    def exists_ns(self, sample: Sample) -> Sequence[int]:
        return sample.sandbox_ns

    def cpu_ns(self, sample: Sample) -> Sequence[int]:
        if UNKNOWN not in sample.cpu_ns:
            return sample.cpu_ns
        columns = zip(sample.cpu_ns, sample.run_ns, sample.unsplit_ns, strict=True)
        return [
            (unsplit if run == UNKNOWN else run) * self.cpu_milli // 1000 if cpu == UNKNOWN else cpu
            for cpu, run, unsplit in columns
        ]


class _LowerUse(_UpperUse):
    """Lower limit of usage: idle time is free where the tariff says so, unknown CPU time is none."""

    def exists_ns(self, sample: Sample) -> Sequence[int]:
        if self.price.idle != FREE:
            return sample.sandbox_ns
        return [max(0, clock - think) for clock, think in zip(sample.sandbox_ns, sample.think_ns, strict=True)]

    def cpu_ns(self, sample: Sample) -> Sequence[int]:
        return [max(0, ns) for ns in sample.cpu_ns]


def _sandboxes(timed: TimedRun, training_run: TrainingRun, meter: Meter, use: _UpperUse) -> Interval:
    """Return the bill of all attempts, without nodes and idle pool sandboxes."""
    billed = timed.tally.per_success(
        lambda sample: list(map(meter.billed, use.exists_ns(sample), use.cpu_ns(sample))),
        lambda sample: [
            meter.exists * (exists - clock + think)
            for exists, clock, think in zip(use.exists_ns(sample), sample.sandbox_ns, sample.think_ns, strict=True)
        ],
    )
    return billed.times(Meter.usd(float(training_run.trajectories * timed.retries.delivered)))


def by_clock(pool: Pool, price: SandboxPrice) -> Callable[[Iterable[int]], float]:
    """Return a function from lifetimes of sandboxes in ns to dollars.

    CPU time is proportional to lifetime, as over all trials. Where usage is known within limits, the result is the
    middle.
    """
    sample = Sample([at_length(trial, 0, len(trial.durations_ns), pool.cycle) for trial in pool.trials])
    whole_ns = sum(sample.sandbox_ns) or 1
    bills = {
        (meter, sum(use.exists_ns(sample)) / whole_ns, sum(use.cpu_ns(sample)) / whole_ns)
        for meter, use in (
            (price.meter(pool.identity, lowest=True), _LowerUse(price, pool)),
            (price.meter(pool.identity), _UpperUse(price, pool)),
        )
    }  # a single one, where both limits agree

    def bill(clocks_ns: Iterable[int]) -> float:
        clocks = list(clocks_ns)
        billed = (meter.billed(round(ns * exists), round(ns * cpu)) for meter, exists, cpu in bills for ns in clocks)
        return Meter.usd(sum(billed) / len(bills))

    return bill


def _ratio(tally: Tally, price: SandboxPrice) -> float:
    """Billed time over time in use."""
    minimum_ns, increment_ns = price.minimum_ns, price.increment_ns
    used = tally.total(lambda sample: sample.sandbox_ns)
    billed = tally.total(lambda sample: [billed_ns(ns, minimum_ns, increment_ns) for ns in sample.sandbox_ns])
    return float(billed / used) if used else 1.0


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
