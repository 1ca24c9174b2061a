"""A projected row with its attribution, and with answers that only the step simulation has."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from costmodel.attribution.replications import Replications, StepTooLong, repeated
from costmodel.attribution.shares import RUN, amount_of, attribution, needed, with_run
from costmodel.projection import warnings
from costmodel.projection.cost import no_surer
from costmodel.projection.diagnostics import settings_in_use
from costmodel.projection.measured_row import pool_use
from costmodel.projection.row import Attribution, Cost, Evidence, Row, Share, Steps, TaxBounds, WallClock
from costmodel.simulation.attempts import Trials
from costmodel.simulation.makespan import Makespan
from costmodel.simulation.rules import StepRules
from costmodel.simulation.state import StepTaken
from costmodel.statistics.intervals import Interval
from costmodel.training.run import SPREAD, Think, TrainingRun, poisoned_groups
from costmodel.units import NS_PER_HOUR
from costmodel.workload.rescaling import Alternatives, Assumption

REQUESTED: Final = "asked for"
STEP_MODEL_RULES: Final = "rules of the step model"
POISONED: Final = "groups with a failed attempt"
MEASURED_INPUT: Final = "measured"

_UNITS: Final = {"_usd_hour": " $ an hour", "_gb_s": " GB/s", "_gib": " GiB", "_s": " s", "_hazard": " an hour"}
_NOT_ASSUMED: Final = ("trajectories", "workers", "baseline", "full_speed", "run_sd", "precision")
"""Fields of the training run that are no assumptions."""
COARSE: Final = 0.01
"""Effort for a row without attribution that has no closed form."""
HOURS_ROUNDS: Final = 4
"""Rounds with resamples where the trials give durations no limits, so that worker-hours alone have limits."""
LEAST_TRIALS: Final = 149
"""Successes that contain an event of 2 % with 95 % probability."""
NOTHING: Final = Interval(0.0, 0.0, 0.0)
"""Amount of a cause that does not act."""


def attributed(row: Row, inputs: Alternatives, effort: float, *, causes: bool = True) -> Row:
    """Return the row of a run in steps with its attribution; with an ``effort`` of 0 without attribution.

    Simulates until the error is small, or the ``effort`` (1: usual) is used. Without ``causes`` the amount of each
    cause is unknown. A step too long to simulate has no attribution.
    """
    pool, training_run = inputs.value, inputs.training_run
    if row.evidence is None or not training_run.trajectories:
        return row
    full_speed, hours = None, row.by_cause_worker_hours  # share of the command time that the reference needs
    if hours is not None and hours.work is not None and hours.slowdown is not None and hours.work + hours.slowdown:
        full_speed = hours.work / (hours.work + hours.slowdown)
    trials = Trials(pool, training_run, full_speed)
    if not trials.successes:
        return row
    separate = causes and effort > 0
    try:
        twins = None if _bounds_slow_rollouts(row) else HOURS_ROUNDS
        simulated = Replications(inputs, trials, full_speed, effort or COARSE, causes=separate, twin_rounds=twins)
    except StepTooLong:
        if training_run.step_model:
            raise
        return row
    repeated([simulated], partial(needed, simulated))
    result = attribution(simulated)
    listed = assumptions(training_run, row.evidence, simulated.sampling.scale)
    if pool.provenance == warnings.COMPOSED:
        listed = map(_borrowed, listed)
    result = result._replace(assumptions=tuple(listed))
    if not training_run.step_model:
        result = _as_in_the_row(row, simulated, result)
    result = as_sure_as(row, result, training_run)
    if training_run.step_model:
        row = _answered(row, simulated, result)
    if result.waiting is not None:
        row = replace(row, gpu={training_run.effective_policy.name: result.waiting})
    return replace(row, attribution=result) if effort else row


def as_sure_as(row: Row, attribution: Attribution, training_run: TrainingRun) -> Attribution:
    """Return the attribution with limits at least as wide as those of the row's wall-clock.

    The simulation draws recorded trials only; the row's limits include slower trajectories, and the error of actions
    beyond the recorded ones. If the trials cannot bound slower trajectories, amounts of causes have no limits: a slow
    rollout hides and adds delays.
    """
    wall, beyond = row.wall_clock_hours, row.evidence.beyond if row.evidence else NOTHING
    assert wall is not None
    if not _bounds_slow_rollouts(row):
        attribution = _without_limits(attribution)
    error = wall.error or 0.0  # error of the row's simulation
    below = None if wall.low is None else max(0.0, wall.value - error - wall.low)
    above = None if wall.high is None else max(0.0, wall.high - wall.value - error)

    def widened(amount: Interval, each_hour: float) -> Interval:
        """Widen an amount of the run by its change per hour; limits are None where the row's are."""
        if not each_hour:
            return amount
        value, low, high = amount
        low = None if low is None or below is None else max(0.0, min(low, value - each_hour * below))
        return Interval(value, low, None if high is None or above is None else max(high, value + each_hour * above))

    run, usd_hour = attribution.run, (attribution.usd_per_critical_second or 0.0) / attribution.steps * 3600
    return attribution._replace(
        run=run._replace(
            step_s=widened(run.step_s, 3600 / attribution.steps),
            worker_hours=run.worker_hours.widened(beyond.times(run.worker_hours.value)).not_negative(),
            gpu_hours=run.gpu_hours and widened(run.gpu_hours, float(training_run.gpus or 0)),
            usd=run.usd and widened(run.usd, usd_hour).widened(beyond.times(run.usd.value)).not_negative(),
        )
    )


def _bounds_slow_rollouts(row: Row) -> bool:
    """Whether the trials of a row bound trajectories slower than all of them."""
    wall, evidence = row.wall_clock_hours, row.evidence
    assert wall is not None
    assert evidence is not None
    return wall.high is not None and (not evidence.tail.later_ns or evidence.successes >= LEAST_TRIALS)


def _without_limits(attribution: Attribution) -> Attribution:
    """Remove the limits of step time by cause, and of dollars where GPUs or nodes have a price."""

    def unknown(amount: Interval) -> Interval:
        return amount if amount == NOTHING else Interval(amount.value)

    def share(amounts: Share) -> Share:
        usd = amounts.usd if amounts.usd is None or not attribution.usd_per_critical_second else unknown(amounts.usd)
        return amounts._replace(
            step_s=unknown(amounts.step_s), gpu_hours=amounts.gpu_hours and unknown(amounts.gpu_hours), usd=usd
        )

    return attribution._replace(
        causes={cause: amounts and share(amounts) for cause, amounts in attribution.causes.items()},
        sandbox=share(attribution.sandbox),
        interaction=share(attribution.interaction),
    )


def _as_in_the_row(row: Row, simulated: Replications, attribution: Attribution) -> Attribution:
    """Return the attribution with the row's wall-clock and bill, where the row is exact."""
    wall, hours = row.wall_clock_hours, row.worker_hours
    if wall is None or hours is None:
        return attribution
    lasting_usd, training_run = simulated.rates.lasting * wall.value, simulated.training_run
    usd = None if attribution.run.usd is None else lasting_usd + (row.cost.total_usd if row.cost is not None else 0.0)
    from_row = Share(
        Interval(wall.value * 3600 / attribution.steps),
        Interval(hours.value),
        attribution.run.gpu_hours
        and Interval((training_run.gpus or 0) * (wall.value - attribution.steps * training_run.train_s / 3600)),
        usd if usd is None else Interval(usd),
    )
    pairs = zip(from_row, attribution.run, strict=True)
    changes = (None if amount is None or old is None else Interval(amount.value - old.value) for amount, old in pairs)
    change = Share(*changes)  # type: ignore[arg-type]
    return with_run(attribution, change, sandbox=False)


def _answered(row: Row, simulated: Replications, attribution: Attribution) -> Row:
    """Return the row with simulated answers where closed forms do not apply."""
    sample, training_run, part = simulated.sample, simulated.training_run, simulated.share
    rules, rates = StepRules(training_run), simulated.rates

    def mean(value: Callable[[StepTaken], float]) -> float:
        weighted = (zip(sample.stands_for, stream[0], strict=True) for stream in simulated.plain)
        return math.fsum(times * value(step) for stream in weighted for times, step in stream) / len(simulated.plain)

    assert row.worker_hours is not None
    between = row.tax_between_worker_hours if row.worker_hours.value else None
    attempts, delivered = part * mean(lambda step: step.attempts), part * mean(lambda step: step.delivered)
    hours, wall = attribution.run.worker_hours, attribution.run.step_s.times(sample.steps / 3600)
    fluid = hours.value / training_run.usable_workers
    needs = row.wall_clock_hours and row.wall_clock_hours.needs_trials
    wall_clock = WallClock(*wall, fluid, "events", attribution.error_s * sample.steps / 3600, needs)
    step_s = attribution.run.step_s.value - mean(lambda step: step.resting_ns) / sample.steps / 1e9
    step = Makespan(step_s * 1e9, attribution.error_s * 1e9, "events")
    held = training_run.usable_workers * step_s * sample.steps / 3600 if rules.policy.barrier else hours.value
    launched = rules.launched(rules.size)
    idle_hours = simulated.times * mean(lambda step: step.idle_ns) / NS_PER_HOUR
    wasted_hours = part * mean(lambda step: step.wasted_ns) / NS_PER_HOUR if rules.over_provision else None
    warm_pool = None
    if training_run.warm_pool is not None:
        hit = part * mean(lambda step: step.hits) / (attempts or 1.0)
        warm_pool = pool_use(training_run, hit, idle_hours / (wall.value or 1.0))
    return replace(
        row,
        attempts=attempts / training_run.trajectories,
        delivered=delivered / training_run.trajectories,
        worker_hours=hours,
        tax_worker_hours=attribution.sandbox.worker_hours if simulated.causes["dispatch"] is not None else None,
        tax_between_worker_hours=between and TaxBounds(*(at * hours.value / row.worker_hours.value for at in between)),
        by_cause_worker_hours=None,
        wall_clock_hours=wall_clock,
        steps=Steps(sample.steps, rules.size, launched, step, max(0.0, held - hours.value), wasted_hours),
        gpu=None if attribution.waiting is None else {rules.policy.name: attribution.waiting},
        warm_pool=warm_pool,
        cost=row.cost and _cost(row.cost, simulated, part * mean(rates.sandbox_usd), idle_hours, hours),
    )


def _cost(cost: Cost, simulated: Replications, sandbox_usd: float, idle_hours: float, hours: Interval) -> Cost:
    """Return the bill of sandboxes, pool and workers, without GPUs and nodes.

    Its relative limits are at least those of the worker-hours and of the row's earlier bill.
    """
    rates, part = simulated.rates, simulated.share
    spread = amount_of(simulated, lambda step: part * rates.sandbox_usd(step)).of(RUN)
    idle, worker = idle_hours * rates.idle_sandbox, hours.value * rates.worker
    billed = no_surer(no_surer(hours.times(sandbox_usd / (hours.value or 1.0)), spread), cost.sandbox_usd)
    return cost._replace(
        sandbox_usd=billed,
        idle_pool_usd=idle,
        worker_usd=None if cost.worker_usd is None else worker,
        total_usd=sandbox_usd + idle + worker,
    )


def assumptions(training_run: TrainingRun, evidence: Evidence, scale: int = 1) -> Iterator[Assumption]:
    """Yield the assumptions with their sources; 1/``scale`` of the run was simulated."""
    for name in settings_in_use(training_run):
        value = getattr(training_run, name)
        text = "yes" if value is True else str(value)
        if isinstance(value, Think):
            text = f"{value.median_ns / 1e9:g} s"
            text = f"lognormal, median {text}, sigma {value.sigma:g}" if value.sigma else f"{text} between two actions"
        elif isinstance(value, int | float) and value is not True:
            text = f"{value:g}{next((unit for end, unit in _UNITS.items() if name.endswith(end)), '')}"
        if name not in _NOT_ASSUMED:
            yield Assumption(name, text, REQUESTED)
    basis, attempts = evidence.basis, evidence.attempts
    yield Assumption("run-to-run sd", f"{basis.sd:.1%} over {basis.runs} runs", basis.source)
    failed, dropped = (round(share * attempts) for share in (evidence.failure, evidence.dropped))
    if training_run.failure_rate is None and training_run.failure_hazard is None:
        yield Assumption("failure_rate", f"{failed} of {attempts:,} attempts", MEASURED_INPUT)
        if dropped:
            yield Assumption("failures without a retry", f"{dropped} of {failed}, by cause", MEASURED_INPUT)
    rate = float(evidence.failure) if training_run.failure_rate is None else training_run.failure_rate
    if training_run.group_size is not None and training_run.failure_hazard is None and rate:
        share = poisoned_groups(rate, training_run.group_size, training_run.failure_burst)
        exponent = training_run.group_size if training_run.failure_burst == 1 else "(bursts in the group)"
        source = REQUESTED if training_run.failure_rate is not None else MEASURED_INPUT
        yield Assumption(POISONED, f"{share:.0%}, 1 − (1 − {rate:.3g})^{exponent}", source)
    if training_run.images is not None and training_run.placement is None:
        yield Assumption("placement", SPREAD, STEP_MODEL_RULES)
    if scale > 1:
        smaller = f"as 1/{scale} of the run: the longest of fewer is shorter, queues are longer"
        yield Assumption("size", smaller, STEP_MODEL_RULES)


def _borrowed(assumption: Assumption) -> Assumption:
    """Return the assumption of an unmeasured substrate, marked as unmeasured in its source."""
    name, source = assumption.name, assumption.source
    if name == "run-to-run sd":
        return assumption._replace(source=f"unmeasured: as where the work was recorded ({source})")
    if name == "failure_rate" and source == MEASURED_INPUT:
        return assumption._replace(value="none", source="unmeasured: give failure_rate of this place")
    published = name in ("quota", "create_rate", "create_burst") and source == REQUESTED
    return assumption._replace(source="published limits of its plan") if published else assumption
