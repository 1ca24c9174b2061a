"""The projected row of a measured cell.

Where in-sandbox time is unknown, the tax is bounded: command time is all work, or none. A reference narrows the lower
bound: each command has the median dispatch of a recording of the same substrate, or its whole time if shorter.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from costmodel.errors import TrainingRunError
from costmodel.pricing.sheet import Prices
from costmodel.projection import warnings
from costmodel.projection.cost import cost
from costmodel.projection.diagnostics import beyond_recorded_ns, options_without_data, reasons, trust
from costmodel.projection.row import ByCause, Evidence, PoolUse, Row, TaxBounds, Trajectory, WallClock
from costmodel.projection.wall_clock import limits, timed_run
from costmodel.recording.breakdown import parted
from costmodel.recording.reader import Recording
from costmodel.statistics.intervals import Interval
from costmodel.statistics.quantiles import Percentile
from costmodel.statistics.repetitions import basis, interval
from costmodel.training.run import TrainingRun
from costmodel.units import NS_PER_HOUR, NS_PER_S
from costmodel.workload.attempts import Attempt
from costmodel.workload.estimator import Tally
from costmodel.workload.pool import Pool, attempts

if TYPE_CHECKING:
    from costmodel.simulation.run import SimulatedRun

ENDS = 0.25
"""Share of the row's simulation for each end of an unmeasured range."""


class MedianDispatch(NamedTuple):
    """Median dispatch of the actions of a reference on one substrate."""

    ns: int
    actions: int
    source: str  # names of recordings


Reference = Mapping[str, MedianDispatch]
"""Substrate → median dispatch."""


def measured_row(
    pool: Pool, training_run: TrainingRun, prices: Prices | None = None, reference: Reference | None = None
) -> Row:
    """Return the row of a recorded cell."""
    length = training_run.length or pool.length
    sample = attempts(pool, training_run.length, training_run)
    row = Row(
        identity=pool.identity,
        length=length,
        label=pool.identity.label,
        provenance=pool.provenance,
        sources=tuple(pool.sources),
        trials=len(pool.trials),
        failures=len(pool.trials),
    )
    if training_run.step_model:  # the simulation of steps answers what GPUs wait for
        training_run = replace(training_run, gpus=None, gpu_usd_hour=None)
    timed = timed_run(sample, pool, training_run)
    if timed is None:
        return replace(row, flags=warnings.ordered([warnings.NO_SUCCESS, *trust(pool)]))

    tally, retries, run = timed.tally, timed.retries, timed.run
    backoff_ns = round(training_run.backoff_s * NS_PER_S)
    doubt_ns = beyond_recorded_ns(tally, pool)
    estimated = tally.estimate(lambda attempt: attempt.held_ns, lambda attempt: attempt.think_ns)
    bounded = "held" in pool.unreported  # occupied time is a lower bound, so the tax has no upper one
    tax = tally.per_success(lambda attempt: attempt.tax_ns) if tally.run_known and not bounded else None
    held = interval(estimated, tally.assume).widened(doubt_ns)
    held_ns, held_ok_ns = tally.total(attrgetter("held_ns")), tally.total_of_successes(attrgetter("held_ns"))
    exact_held = held_ns / tally.successes
    waiting = (retries.attempts - 1) * backoff_ns  # per trajectory
    delivered = training_run.trajectories * retries.delivered
    hours = float(delivered) / NS_PER_HOUR  # times ns per success
    waiting_hours = float(training_run.trajectories * waiting / NS_PER_HOUR)
    exact_hours = (delivered * exact_held + training_run.trajectories * waiting) / NS_PER_HOUR
    worker_hours = held.times(hours).shifted(waiting_hours)._replace(value=float(exact_hours)).not_negative()
    tax_hours = tax and tax.widened(doubt_ns).times(hours).shifted(waiting_hours).not_negative()
    by_cause = _by_cause(tally, pool, training_run, hours, waiting_hours)
    median = (reference or {}).get(pool.identity.substrate)
    between = None if bounded else _tax_between(tally, median, hours, waiting_hours)
    whole, step = limits(run, training_run, worker_hours)
    low_s, high_s = (None if end is None else end * 3600 for end in step[:2])
    # The limits do not know how rollouts and training overlap, the value does.
    wall, error = run.wall.value_ns / NS_PER_HOUR, run.wall.error_ns / NS_PER_HOUR
    low = None if whole.low is None else min(whole.low, wall - error)
    high = None if whole.high is None else max(whole.high, wall + error)
    outcome, workers, rate = run.outcome, training_run.usable_workers, training_run.create_rate
    creatable = math.inf if rate is None else rate * timed.law.mean / float(retries.attempts) / 1e9  # Little's law
    if outcome is not None and outcome.waited_ns.value:
        waited_hours = outcome.waited_ns.value / NS_PER_HOUR
        worker_hours, tax_hours = _waited(worker_hours, outcome), tax_hours and _waited(tax_hours, outcome)
        by_cause = by_cause._replace(queued=by_cause.queued + waited_hours)
        between = between and TaxBounds(between.low + waited_hours, between.high + waited_hours)
    beyond = doubt_ns.times(1 / (held.value or 1.0))
    warm_pool = None
    if training_run.warm_pool is not None:
        hit, idle = 0.0, 0.0
        if outcome is not None:
            hit = outcome.hits.value / outcome.attempts.value
            idle = outcome.idle_ns.value / (outcome.wall_ns.value or 1.0)
        warm_pool = pool_use(training_run, hit, idle)
    return replace(
        row,
        failures=len(pool.trials) - round(tally.successes),
        trajectory_s=_trajectory(tally, doubt_ns),
        held_per_success_s=held.times(1 / NS_PER_S).not_negative(),
        think_s=float(tally.total_of_successes(attrgetter("think_ns")) / tally.successes) / NS_PER_S,
        cleanup_share_left_out=None if training_run.include_cleanup else pool.cleanup_ns / (held.value or 1.0),
        attempts=float(retries.attempts),
        delivered=float(retries.delivered),
        worker_hours=worker_hours,
        tax_worker_hours=tax_hours,
        tax_between_worker_hours=between,
        by_cause_worker_hours=by_cause,
        wall_clock_hours=WallClock(
            wall, low, high, worker_hours.value / workers, run.wall.method, error, whole.tail.needs_trials
        ),
        steps=run.steps and run.steps._replace(low_s=low_s, high_s=high_s, needs_trials=step.tail.needs_trials),
        gpu=run.gpu,
        warm_pool=warm_pool,
        cost=None if prices is None else cost(timed, pool, prices, training_run, worker_hours, beyond, warm_pool),
        unused=options_without_data(pool, tally, training_run),
        flags=reasons(pool, timed, training_run, prices),
        evidence=Evidence(
            successes=tally.successes,
            attempts=len(tally.trials),
            held_ok_ns=held_ok_ns,
            held_failed_ns=held_ns - held_ok_ns,
            failure=tally.failure,
            dropped=tally.failure - retries.failure,
            held=estimated,
            beyond=beyond,
            basis=basis(estimated, tally.assume),
            busy_ns=timed.law,
            usable_workers=workers,
            effective_workers=min(workers, creatable),
            waited_ns=0.0 if outcome is None else outcome.waited_ns.value,
            work_per_success_ns=tally.total(attrgetter("work_ns")) / tally.successes if tally.run_known else None,
            tail=whole.tail,
        ),
    )


def _waited(hours: Interval, outcome: SimulatedRun) -> Interval:
    """Return worker-hours plus the waits for creates."""
    value, error = outcome.waited_ns.value / NS_PER_HOUR, outcome.waited_ns.error / NS_PER_HOUR
    return hours.shifted(value).widened(Interval(0.0, -min(value, error), error))


def pool_use(training_run: TrainingRun, hit: float, idle: float) -> PoolUse:
    """Return the pool's share of attempts, and its idle sandboxes."""
    if training_run.image_pool:
        return PoolUse(hit, idle, "P of each image")
    refilled = training_run.refill_s is not None
    return PoolUse(hit, idle, "a slot is ready T after it was taken" if refilled else "one is ready every 1/r, up to P")


def _trajectory(tally: Tally, doubt_ns: Interval) -> Trajectory:
    """Return times in seconds; a mean without an interval has no quantiles."""
    mean_ns = tally.per_success(lambda attempt: attempt.trajectory_ns * attempt.ok).widened(doubt_ns)
    mean = mean_ns.times(1 / NS_PER_S).not_negative()
    if mean.low is None:
        return Trajectory(mean, None, None, None)
    percentiles = []
    for percentile in tally.percentiles((0.5, 0.95, 0.99)):
        value, low, high = (None if ns is None else ns / NS_PER_S for ns in percentile[:3])
        percentiles.append(Percentile(value, low, high, percentile.needs))
    return Trajectory(mean, *percentiles)


def _by_cause(tally: Tally, pool: Pool, training_run: TrainingRun, hours: float, waiting_hours: float) -> ByCause:
    """Return worker-hours of successes by cause, and of failures as one cause; without a reference."""

    def share(total: Fraction) -> float:
        return float(total / tally.successes) * hours

    def good(name: str) -> float:
        return share(tally.total_of_successes(attrgetter(name)))

    separated, held_ns = tally.run_known, attrgetter("held_ns")
    return ByCause(
        startup=good("startup_ns"),
        dispatch=good("dispatch_ns") if separated else None,
        slowdown=None,
        contention=good("contention_ns") if separated and pool.contended is not None else None,
        work=good("work_ns") if separated else None,
        unsplit=None if separated else good("unsplit_ns"),
        harness=good("harness_ns"),
        queued=good("queued_ns"),
        think=good("think_ns"),
        failed=share(tally.total(held_ns) - tally.total_of_successes(held_ns)) + waiting_hours,
        cleanup=good("cleanup_ns") if training_run.include_cleanup else None,
        wrapper=(good("wrapper_ns") or None) if separated else None,
    )


def reference_of(recordings: Sequence[Recording]) -> Reference:
    """The median dispatch per action by substrate, over all successful trials with in-sandbox time.

    Raises:
        TrainingRunError: no command has a known in-sandbox time.
    """
    by_substrate: dict[str, tuple[array[int], dict[str, None]]] = {}
    for recording in recordings:
        for cell in recording.cells:
            dispatches, names = by_substrate.setdefault(cell.identity.substrate, (array("q"), {}))
            for trial in cell.trials:
                if trial.ok:
                    dispatches.extend(parted(trial.durations_ns, trial.runs_ns, trial.wrappers_ns)[1])
                    names[recording.name] = None
    medians = {
        substrate: MedianDispatch(sorted(dispatches)[(len(dispatches) - 1) // 2], len(dispatches), ", ".join(names))
        for substrate, (dispatches, names) in by_substrate.items()
        if dispatches
    }
    if not medians:
        names_told = ", ".join(recording.name for recording in recordings)
        raise TrainingRunError(f"{names_told} cannot be a reference: it tells no command's time inside the sandbox")
    return medians


def _tax_between(tally: Tally, median: MedianDispatch | None, hours: float, waiting_hours: float) -> TaxBounds | None:
    """Worker-hours of tax if the unsplit commands were all work but for the reference's dispatch, and if none were.

    ``hours`` of the whole run per ns and success. None where the tax is known, so that nothing has to be bounded.
    """
    if tally.run_known:
        return None

    def upper(attempt: Attempt) -> int:
        work_ns = 0 if attempt.unsplit_ns else attempt.run_ns + attempt.wrapper_ns
        return attempt.held_ns - attempt.think_ns - work_ns if attempt.ok else attempt.held_ns

    def lower(attempt: Attempt) -> int:
        dispatch_ns = min(attempt.unsplit_ns, attempt.actions * median.ns) if median else 0
        return upper(attempt) - (attempt.unsplit_ns - dispatch_ns) * attempt.ok

    def whole(part: Callable[[Attempt], int]) -> float:
        return float(tally.total(part) / tally.successes) * hours + waiting_hours

    return TaxBounds(max(0.0, whole(lower)), whole(upper))
