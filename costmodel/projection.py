"""``project``: from recordings and a demand to one row per cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final, NamedTuple

from costmodel import flags
from costmodel.comparison import with_baseline, with_reference
from costmodel.demand import Demand
from costmodel.distribution import Distribution
from costmodel.errors import DemandError, SourceError
from costmodel.overprovision import Rollouts, Try, Usage
from costmodel.percentiles import Percentile, Quantile, percentile
from costmodel.pricing import Prices, billed_ns
from costmodel.published import Published
from costmodel.quoted import quoted
from costmodel.recording import Recording
from costmodel.results import (
    ByCause,
    Cost,
    Evidence,
    GpuStall,
    HeldOut,
    Projection,
    Steps,
    Stress,
    Trajectory,
    WallClock,
)
from costmodel.retries import Retries, effective_workers, with_retries
from costmodel.samples import Attempt, Pool, attempts, from_pool, killed_after, nearest_length, pools
from costmodel.tails import Reach
from costmodel.tally import Tally, Value
from costmodel.uncertainty import Interval
from costmodel.wallclock import Ends, WholeRun, limits, run_in_time
from costmodel.warmpool import PoolUse, pool_use

NS_PER_S: Final = 1e9
NS_PER_HOUR: Final = 3_600_000_000_000
STRESS_SHARE, STRESS_FACTOR = 100, 30
"""One trajectory in 100 takes 30 times as long."""


def project(
    recordings: Sequence[Recording | Published], demand: Demand, prices: Prices | None = None
) -> list[Projection]:
    """One row per cell, in the order of the recordings; with ``demand.actions`` one per cell but for its length.

    A cell without a success is a row of Nones flagged ``no_success``.

    Raises:
        DemandError: the baseline or the reference is not among the rows, or a published row cannot answer an option.
        PriceError: the sheet lacks a price.
        SourceError: nothing was recorded, not one cell has a success, or a run was given twice.
    """
    series: dict[object, list[Pool]] = {}
    summaries = [(one, quoted(one, demand, prices)) for one in recordings if isinstance(one, Published)]
    for pool in pools(recording for recording in recordings if isinstance(recording, Recording)):
        series.setdefault((pool.series, pool.provenance), []).append(pool)
    rows = []
    for lengths in series.values():
        held_out = _held_out(lengths)
        chosen = lengths if demand.actions is None else [nearest_length(lengths, demand.actions)]
        rows += [replace(_measured(pool, demand, prices), held_out=held_out) for pool in chosen]
    baseline = demand.baseline
    for summary, printed in summaries:
        baseline = baseline or summary.baseline
        rows += printed
    if all(row.worker_hours is None for row in rows):
        if any(flags.LENGTH_UNKNOWN in row.flags for row in rows):
            raise DemandError(f"nothing was published for {demand.actions} actions; leave -n out")
        raise SourceError("nothing to project: no cell has a successful trial")
    if demand.reference is not None:
        rows = with_reference(rows, demand.reference)
    return rows if baseline is None else with_baseline(rows, baseline, required=demand.baseline is not None)


def _measured(pool: Pool, demand: Demand, prices: Prices | None) -> Projection:
    """One row of a recorded cell."""
    actions = pool.identity.actions if demand.actions is None else demand.actions
    sample = attempts(pool, actions, demand)
    row = Projection(
        identity=pool.identity,
        actions=actions,
        label=pool.identity.label,
        provenance=pool.provenance,
        sources=tuple(pool.sources),
        trials=len(pool.trials),
        failures=len(pool.trials),
    )
    warm_pool = None
    if demand.warm_pool is not None and any(attempt.ok for attempt in sample):
        warm_pool = _pool_use(Tally(sample, pool.trials), demand)
        sample = from_pool(sample, round(1000 * warm_pool.hit))
    timed = _timed(sample, pool, demand)
    if timed is None:
        return replace(row, flags=(flags.NO_SUCCESS, *_trust(pool)))

    tally, retries, law, run = timed
    backoff_ns = round(demand.backoff_s * NS_PER_S)
    held = tally.per_success(lambda attempt: attempt.held_ns)
    exact_held = tally.total(lambda attempt: attempt.held_ns) / tally.successes
    waiting = (retries.attempts - 1) * backoff_ns  # per trajectory
    delivered = demand.trajectories * retries.delivered
    hours = float(delivered) / NS_PER_HOUR  # times ns per success
    waiting_hours = float(demand.trajectories * waiting / NS_PER_HOUR)
    exact_hours = (delivered * exact_held + demand.trajectories * waiting) / NS_PER_HOUR
    worker_hours = _not_negative(_shifted(held.times(hours), waiting_hours)._replace(value=float(exact_hours)))
    tax, by_cause = _tax(tally, hours, waiting_hours), _by_cause(tally, demand, hours, waiting_hours)
    ends = limits(run, demand, worker_hours)
    wall_clock = _wall_clock(run, worker_hours, demand, ends.run)
    if run.usage is not None:
        kept = (run.usage.busy_ns - run.usage.wasted_ns) / (law.mean * demand.trajectories or 1.0)
        worker_hours = _launched(worker_hours, run.usage.busy_ns / NS_PER_HOUR, run.usage)
        wall_clock = wall_clock._replace(fluid=worker_hours.value / demand.usable_workers)
        tax, by_cause = tax and tax.times(kept), by_cause.kept(kept, run.usage.wasted_ns / NS_PER_HOUR)
    return replace(
        row,
        failures=len(pool.trials) - round(tally.successes),
        trajectory_s=_trajectory(tally),
        held_per_success_s=_not_negative(held.times(1 / NS_PER_S)),
        think_s=float(tally.total(lambda attempt: attempt.think_ns * attempt.ok) / tally.successes) / NS_PER_S,
        attempts=float(retries.attempts),
        delivered=float(retries.delivered),
        worker_hours=worker_hours,
        tax_worker_hours=tax,
        by_cause_worker_hours=by_cause,
        wall_clock_hours=wall_clock,
        steps=run.steps and _with_limits(run.steps, ends.step),
        gpu=run.gpu and _with_generation(run.gpu, sample, pool, demand),
        warm_pool=warm_pool,
        cost=None if prices is None else _cost(tally, pool, prices, worker_hours, hours, warm_pool, run),
        stress=_stress(law, demand, float(retries.attempts), worker_hours),
        flags=_flags(pool, tally, demand, actions, run, prices),
        evidence=_evidence(tally, law, run, demand, actions, ends.run.tail),
    )


class _Timed(NamedTuple):
    """A sample of attempts as a run of the demand's size."""

    tally: Tally
    retries: Retries
    law: Distribution  # of how long a worker is busy with one trajectory
    run: WholeRun


def _timed(sample: Sequence[Attempt], pool: Pool, demand: Demand) -> _Timed | None:
    """None where no attempt succeeds in time."""
    if demand.timeout_s is not None:
        sample = killed_after(sample, demand.timeout_s)
    tally = Tally(sample, pool.trials)
    success = tally.held_times(ok=True)
    if success is None:
        return None
    retries = Retries(tally.failure, demand.max_attempts)
    backoff_ns = round(demand.backoff_s * NS_PER_S)
    law = with_retries(success, tally.held_times(ok=False), retries, backoff_ns, Random(demand.seed))
    launches = _launches(sample, demand, backoff_ns)
    return _Timed(tally, retries, law, run_in_time(law, demand, float(retries.attempts), launches))


def _with_generation(
    gpu: dict[str, GpuStall], sample: Sequence[Attempt], pool: Pool, demand: Demand
) -> dict[str, GpuStall]:
    """With how much of the waiting is for the model: what is saved where the same attempts hold no think time."""
    if not any(attempt.think_ns for attempt in sample):
        return gpu
    silent = [attempt._replace(held_ns=attempt.held_ns - attempt.think_ns, think_ns=0) for attempt in sample]
    timed = _timed(silent, pool, demand)
    assert timed is not None  # whatever succeeds in time also does so sooner
    assert timed.run.gpu is not None
    parted = {}
    for policy, stall in gpu.items():
        hours = max(0.0, stall.stalled_gpu_hours - timed.run.gpu[policy].stalled_gpu_hours)
        usd = None if demand.gpu_usd_hour is None else hours * demand.gpu_usd_hour
        parted[policy] = stall._replace(generation_gpu_hours=hours, generation_usd=usd)
    return parted


def _launches(sample: Sequence[Attempt], demand: Demand, backoff_ns: int) -> Rollouts | None:
    """Where over-provisioned steps draw their rollouts from; None without such steps."""
    if demand.over_provision == 0:
        return None
    tries = (Try(a.weight, a.ok, a.held_ns, a.sandbox_ns) for a in sample)
    return Rollouts(tries, demand.max_attempts, backoff_ns)


def _launched(one_by_one: Interval, value: float, usage: Usage) -> Interval:
    """An amount for all that was launched: as sure, in proportion, as one by one, less the simulation's error."""
    if one_by_one.low is None or one_by_one.high is None or not one_by_one.value:
        return Interval(value)
    off = usage.error_ns / usage.busy_ns if usage.busy_ns else 0.0
    low, high = (end / one_by_one.value for end in (one_by_one.low, one_by_one.high))
    return Interval(value, max(0.0, 1 - off) * value * low, (1 + off) * value * high)


def _pool_use(tally: Tally, demand: Demand) -> PoolUse:
    held = tally.total(lambda attempt: attempt.held_ns) / tally.successes
    cold = tally.total(lambda attempt: attempt.cold_ns) / tally.successes
    return pool_use(demand, min(demand.usable_workers, demand.trajectories or 1), float(held - cold), float(cold))


def _trajectory(tally: Tally) -> Trajectory:
    """In seconds; versions of one trial count as one."""
    successes = [attempt for attempt in tally.attempts if attempt.ok]
    ascending = sorted(attempt.trajectory_ns for attempt in successes)
    mean = tally.of_successes(lambda attempt: attempt.trajectory_ns).times(1 / NS_PER_S)
    if mean.low is None:
        return Trajectory(mean, None, None, None)
    trials = len({attempt.trial for attempt in successes})
    return Trajectory(_not_negative(mean), *(_quantile(percentile(ascending, p, trials)) for p in (0.5, 0.95, 0.99)))


def _quantile(found: Percentile) -> Quantile:
    value, low, high = (None if ns is None else ns / NS_PER_S for ns in found[:3])
    return Quantile(value, low, high, found.needs)


def _tax(tally: Tally, hours: float, waiting_hours: float) -> Interval | None:
    """Worker-hours beyond think time and the successes' own work; None where a command's own time is unknown."""
    if not tally.run_known:
        return None
    tax = tally.per_success(lambda a: a.held_ns - a.think_ns - a.run_ns if a.ok else a.held_ns)
    return _not_negative(_shifted(tax.times(hours), waiting_hours))


def _by_cause(tally: Tally, demand: Demand, hours: float, waiting_hours: float) -> ByCause:
    """Worker-hours of successes by what they went into, and of failures as one; without a reference."""

    def share(value: Value) -> float:
        return float(tally.total(value) / tally.successes) * hours

    known = tally.run_known
    return ByCause(
        startup=share(lambda a: a.startup_ns * a.ok),
        dispatch=share(lambda a: a.dispatch_ns * a.ok) if known else None,
        slowdown=None,
        work=share(lambda a: a.run_ns * a.ok) if known else None,
        harness=share(lambda a: a.harness_ns * a.ok),
        queued=share(lambda a: a.queued_ns * a.ok),
        think=share(lambda a: a.think_ns * a.ok),
        failed=share(lambda a: a.held_ns * (not a.ok)) + waiting_hours,
        cleanup=share(lambda a: a.cleanup_ns * a.ok) if demand.include_cleanup else None,
    )


def _wall_clock(run: WholeRun, worker_hours: Interval, demand: Demand, ends: Ends) -> WallClock:
    """Hours, between the ``ends``."""
    value, error = run.wall.value_ns / NS_PER_HOUR, run.wall.error_ns / NS_PER_HOUR
    fluid = worker_hours.value / demand.usable_workers
    return WallClock(value, ends.low, ends.high, fluid, run.wall.method, error, ends.tail.needs_trials)


def _with_limits(steps: Steps, step: Ends) -> Steps:
    low_s, high_s = (None if end is None else end * 3600 for end in (step.low, step.high))
    return steps._replace(low_s=low_s, high_s=high_s, needs_trials=step.tail.needs_trials)


def _cost(
    tally: Tally,
    pool: Pool,
    prices: Prices,
    worker_hours: Interval,
    hours: float,
    warm_pool: PoolUse | None,
    run: WholeRun,
) -> Cost:
    """Dollars: every attempt is billed on the provider's clock, by its own minimum and increment.

    With over-provisioning every launch is: for as long as its sandbox ran until it was done or cut.
    """
    price = prices.sandbox(pool.identity)
    rate = price.usd_hour(pool.identity)
    billed = tally.per_success(lambda a: billed_ns(a.sandbox_ns, price.minimum_ns, price.increment_ns))
    used = tally.total(lambda a: a.sandbox_ns) / tally.successes
    sandbox = _not_negative(billed.times(hours * rate))
    ratio = billed.value / float(used) if used else 1.0
    if run.usage is not None:
        clocks = run.usage.sandboxes.items()
        paid = sum(count * billed_ns(ns, price.minimum_ns, price.increment_ns) for ns, count in clocks)
        ratio = paid / (sum(count * ns for ns, count in clocks) or paid or 1.0)
        sandbox = _launched(sandbox, paid / NS_PER_HOUR * rate, run.usage)
    idle = warm_pool.idle_sandboxes * run.wall.value_ns / NS_PER_HOUR * rate if warm_pool else 0.0
    worker = None if prices.worker_usd_hour is None else worker_hours.value * prices.worker_usd_hour
    return Cost(
        sandbox_usd=sandbox,
        idle_pool_usd=idle,
        worker_usd=worker,
        total_usd=sandbox.value + idle + (worker or 0.0),
        usd_per_sandbox_hour=rate,
        billed_ratio=ratio,
        sheet=f"{prices.title} ({prices.date})",
    )


def _stress(law: Distribution, demand: Demand, attempts_per: float, worker_hours: Interval) -> Stress:
    stressed = law.mixed(STRESS_SHARE - 1, law.scaled(STRESS_FACTOR, 1), 1)
    factor = (STRESS_SHARE - 1 + STRESS_FACTOR) / STRESS_SHARE
    run = run_in_time(stressed, demand, attempts_per)
    hours = worker_hours.value * factor if run.usage is None else run.usage.busy_ns / NS_PER_HOUR
    return Stress(hours, run.wall.value_ns / NS_PER_HOUR)


def _evidence(tally: Tally, law: Distribution, run: WholeRun, demand: Demand, actions: int, tail: Reach) -> Evidence:
    known = tally.run_known
    return Evidence(
        successes=tally.successes,
        attempts=len(tally.trials),
        held_ok_ns=tally.total(lambda a: a.held_ns * a.ok),
        held_failed_ns=tally.total(lambda a: a.held_ns * (not a.ok)),
        sd_ns=law.sd,
        failure=tally.failure,
        runs=len({trial.run_id for trial in tally.trials}),
        clusters=len(set(tally.clusters)),
        busy_ns=law,
        usable_workers=demand.usable_workers,
        effective_workers=effective_workers(demand.usable_workers, demand.create_rate, law.mean),
        throttle_floor_ns=run.floor_ns,
        work_per_success_ns=tally.total(lambda a: a.run_ns * a.ok) / tally.successes if known else None,
        line=tally.line(actions),
        tail=tail,
    )


def _held_out(lengths: Sequence[Pool]) -> HeldOut | None:
    """Predict the longest recorded length from the next shorter one, and put what was measured beside it."""
    usable = sorted((p for p in lengths if any(t.ok for t in p.trials)), key=lambda p: p.identity.actions)
    if len(usable) < 2:
        return None
    short, long = usable[-2:]
    one = Demand(trajectories=1, workers=1)
    tallies = [Tally(attempts(pool, long.identity.actions, one), pool.trials) for pool in (short, long)]
    predicted, measured = (t.of_successes(lambda a: a.trajectory_ns).times(1 / NS_PER_S) for t in tallies)
    return HeldOut(short.identity.actions, long.identity.actions, predicted.value, measured)


def _trust(pool: Pool) -> list[str]:
    """Flags about where the trials come from."""
    conditions = {
        flags.STAND_IN: pool.provenance == flags.STAND_IN,
        flags.DISTORTED: pool.distorted,
        flags.INCOMPLETE: not pool.complete,
    }
    return [flag for flag, holds in conditions.items() if holds]


def _flags(
    pool: Pool, tally: Tally, demand: Demand, actions: int, run: WholeRun, prices: Prices | None
) -> tuple[str, ...]:
    in_flight = min(demand.usable_workers, demand.trajectories)
    simulated = run.rollouts.method == "simulation" and demand.over_provision == 0
    loose = run.rollouts.method == "bounds" and run.rollouts.error_ns > demand.tolerance * run.rollouts.value_ns
    conditions = {
        flags.BEYOND_LENGTH: actions > pool.identity.actions,
        flags.BEYOND_CONCURRENCY: in_flight > pool.identity.concurrency,
        flags.TAIL: tally.successes < flags.TAIL_TRIALS,
        flags.FEW_TRIALS: tally.successes < flags.FEW,
        flags.SINGLE_RUN: len({trial.run_id for trial in pool.trials}) == 1,
        flags.NO_FAILURES: tally.failure == 0,
        flags.LOCKSTEP: simulated or loose,
        flags.RUN_UNKNOWN: not tally.run_known,
        flags.STALE_PRICES: prices is not None and prices.stale,
    }
    return (*_trust(pool), *(flag for flag, holds in conditions.items() if holds))


def _shifted(interval: Interval, by: float) -> Interval:
    return Interval(*(None if end is None else end + by for end in interval))  # type: ignore[arg-type]


def _not_negative(interval: Interval) -> Interval:
    """Time cannot be negative, whatever a rough interval of a few trials says."""
    return interval if interval.low is None else interval._replace(low=max(0.0, interval.low))
