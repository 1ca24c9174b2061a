"""Evidence and warnings of a projected row, and the options of a training run that each kind of row uses."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Final

from costmodel.pricing.sheet import Prices
from costmodel.projection import warnings
from costmodel.projection.cost import doubts
from costmodel.projection.wall_clock import TimedRun
from costmodel.recording.breakdown import UNKNOWN
from costmodel.statistics.intervals import Interval
from costmodel.statistics.repetitions import MIN_RUNS
from costmodel.training.run import TrainingRun
from costmodel.workload.attempts import extrapolation_error, later_change
from costmodel.workload.estimator import Tally
from costmodel.workload.pool import Pool


def trust(pool: Pool) -> list[str]:
    """Return warnings about the trials."""
    exposure = pool.exposure
    conditions = {
        pool.provenance: pool.provenance in (warnings.COMPOSED, warnings.STAND_IN, warnings.IMPORTED),
        warnings.DISTURBED: pool.disturbed,
        warnings.DISTORTED: exposure is not None and exposure.matters,
        warnings.INCOMPLETE: not pool.complete,
        **{flag: quantity in pool.unreported for quantity, flag in warnings.UNTOLD.items()},
    }
    return [flag for flag, holds in conditions.items() if holds]


def reasons(pool: Pool, timed: TimedRun, training_run: TrainingRun, prices: Prices | None) -> tuple[str, ...]:
    """Return all warnings of a row with a success, the most important first."""
    tally, run = timed.tally, timed.run
    sample = tally.attempts
    beyond = any(attempt.ok and attempt.actions > len(pool.trials[attempt.trial].durations_ns) for attempt in sample)
    simulated = run.rollouts.method == "simulation"
    loose = (
        run.rollouts.method == "bounds"
        and run.rollouts.error_ns > training_run.precision.tolerance * run.rollouts.value_ns
    )
    conditions = {
        warnings.FIRST_CYCLE: beyond and later_change(pool.trials, pool.cycle) is None,
        warnings.BEYOND_LENGTH: beyond,
        warnings.BEYOND_CONCURRENCY: training_run.host_concurrency > pool.at_a_time,
        warnings.TAIL: tally.successes < warnings.TAIL_TRIALS,
        warnings.FEW_TRIALS: tally.successes < warnings.FEW,
        warnings.FEW_RUNS: len(pool.runs) < MIN_RUNS,
        warnings.NO_FAILURES: tally.failure == 0 and training_run.failure_rate is training_run.failure_hazard is None,
        warnings.LOCKSTEP: (simulated or loose) and not training_run.step_model,
        warnings.RUN_UNKNOWN: not tally.run_known,
        warnings.OPTION_UNUSED: bool(options_without_data(pool, tally, training_run)),
        warnings.CONTENTION_UNKNOWN: pool.contention_unknown,
    }
    flags = trust(pool) + [flag for flag, holds in conditions.items() if holds]
    if prices is not None:
        price = prices.sandbox(pool.identity)
        cpu_known = all(attempt.cpu_ns != UNKNOWN for attempt in sample)
        flags += doubts(price, cpu_known=cpu_known, think=any(attempt.think_ns for attempt in sample))
        if pool.identity.acquire.startswith("pool:") and training_run.warm_pool is None:
            flags.append(warnings.POOL_LEFT_OUT)
    return warnings.ordered(flags)


def beyond_recorded_ns(tally: Tally, pool: Pool) -> Interval:
    """Return the error of actions beyond the recorded ones, per success."""
    continued_ns = float(tally.total_of_successes(lambda attempt: attempt.continued_ns) / tally.successes)
    error = extrapolation_error(pool.trials, pool.cycle) if continued_ns else Interval(0.0, 0.0, 0.0)
    return error.times(continued_ns)


_BY_ONE_LATENCY: Final = frozenset({"trajectories", "workers", "actions", "baseline", "quota", "precision"})
"""The length must be the published one; nothing is simulated, so precision has no effect."""


def used_by(kind: str) -> frozenset[str]:
    """Return the fields of a training run that rows of a provenance use; others raise ``TrainingRunError``.

    Fields whose data a row's source lacks are in the row's ``unused``.
    """
    if kind == warnings.PUBLISHED:
        return _BY_ONE_LATENCY
    unpublished = {"include_cleanup"} if kind == warnings.COMPOSED else set()
    return frozenset(field.name for field in fields(TrainingRun)) - unpublished


def settings_in_use(training_run: TrainingRun) -> list[str]:
    """Return the fields of a training run that differ from their defaults."""
    return [
        field.name
        for field in fields(TrainingRun)
        if field.default is MISSING or getattr(training_run, field.name) != field.default
    ]


def refused(training_run: TrainingRun, kind: str) -> list[str]:
    """Return the options set in the training run that a kind of row cannot use."""
    return [option(name) for name in settings_in_use(training_run) if name not in used_by(kind)]


def option(field: str) -> str:
    """The command line's name of a training run's field: ``--train-seconds`` of ``train_s``."""
    if field == "actions":
        return "--length"
    words = field[:-2] + "-seconds" if field.endswith("_s") and not field.endswith("_gb_s") else field
    return f"--{words.replace('_', '-')}"


def options_without_data(pool: Pool, tally: Tally, training_run: TrainingRun) -> tuple[str, ...]:
    """Return the options set in the training run whose data this pool's source lacks."""
    lacking = {
        "include_cleanup": all(trial.measures.cleanup_ns is None for trial in pool.trials),
        "full_speed": not tally.run_known,
        "warm_pool": not any(attempt.cold_ns for attempt in tally.attempts) and "create" in pool.unreported,
    }
    return tuple(option(name) for name in settings_in_use(training_run) if lacking.get(name))
