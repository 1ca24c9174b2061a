"""Recorded work at an unmeasured provider: published start-up, limits, prices and speed.

Conflicting sources make a range: a row has a low, a latest and a high scenario.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from random import Random
from typing import Literal

from costmodel.errors import TrainingRunError
from costmodel.pricing.sheet import Prices
from costmodel.projection import warnings
from costmodel.projection.diagnostics import refused, settings_in_use
from costmodel.providers.provider import Provider, StartTime
from costmodel.recording.trial import RecordedTrial
from costmodel.training.run import TrainingRun
from costmodel.units import NS_PER_S
from costmodel.workload.pool import Pool
from costmodel.workload.rescaling import Alternatives, Assumption, remade

Scenario = Literal["low", "value", "high"]
"""Ends of all ranges of the sources, or their values."""


def workloads(pools: Iterable[Pool]) -> list[Pool]:
    """Return the most informative pool for each workload.

    Among equals: the lowest concurrency, then the longest dispatch, because the dispatch of a container is closer to an
    unknown provider's than that of a local process.

    Raises:
        TrainingRunError: there is no pool.
    """
    best: dict[object, Pool] = {}
    for pool in pools:
        identity = pool.identity
        limits = identity.cpu_milli, identity.memory_mib
        key = identity.tier, identity.tier_digest, identity.mode, identity.length, pool.length, identity.think, limits
        if key not in best or _worth(pool) > _worth(best[key]):
            best[key] = pool
    if not best:
        raise TrainingRunError("a composed row needs recorded work: give a recording, or leave --compose out")
    return list(best.values())


def _worth(pool: Pool) -> tuple[bool, bool, bool, int, float]:
    good = pool.successes
    dispatch_ns = sum(trial.measures.dispatch_ns for trial in good) / (len(good) or 1)
    measured = pool.provenance == warnings.MEASURED
    return bool(good), measured, bool(good) and pool.run_known, -pool.identity.concurrency, dispatch_ns


def estimated(pool: Pool, provider: Provider, training_run: TrainingRun, prices: Prices | None) -> Alternatives:
    """Estimate a recorded pool's work at a provider. ``prices`` come before the provider's own.

    Raises:
        TrainingRunError: an option needs unpublished input; the message names the option.
    """
    if unused := refused(training_run, warnings.COMPOSED):
        raise TrainingRunError(
            f"nothing published of {provider.substrate} answers {', '.join(unused)}; "
            f"leave {'it' if len(unused) == 1 else 'them'} out, or --compose {provider.substrate}"
        )
    good = pool.successes
    fastest, latest, slowest = provider.start_times(starts_at_a_time(_limited(training_run, provider), provider, good))
    seed = training_run.precision.seed
    ends = _pool(pool, provider, "low", fastest, seed), _pool(pool, provider, "high", slowest, seed)
    return estimated_at(pool, provider, training_run, prices, latest)._replace(ends=ends)


def estimated_at(
    pool: Pool,
    provider: Provider,
    training_run: TrainingRun,
    prices: Prices | None,
    start: StartTime,
    image_s: float = 0.0,
) -> Alternatives:
    """Estimate a pool's work at a provider with a distribution of starts; each start takes ``image_s`` longer.

    Raises:
        TrainingRunError: an option needs unpublished input; the message names the option.
    """
    limited = _limited(training_run, provider)
    at_a_time = starts_at_a_time(limited, provider, pool.successes)
    failures, images = "none", "none"
    if training_run.failure_rate is not None:
        failures = f"{training_run.failure_rate:.3g} of attempts"
    elif training_run.failure_hazard is not None:
        failures = f"{training_run.failure_hazard:.3g} an hour"
    if training_run.images is not None:
        image_set = training_run.images
        images = f"{image_set.count} images, {image_set.total_gb / image_set.count:.3g} GB on average"
    file = f"[at.{provider.substrate}"  # table of the training run's file
    assumptions = [
        *provider.assumptions(at_a_time),
        Assumption("failures", failures, f"unmeasured: failure_rate under {file}.failures] says otherwise"),
        Assumption("image pulls and builds", images, f"unmeasured: images under {file}.images] says otherwise"),
    ]
    doubts = [warnings.SPEED_ASSUMED] if provider.slowdown.high == 1.0 else []
    if provider.dispatch_s is None:
        source = f"{', '.join(pool.sources)}: give --compose {provider.substrate}:dispatch=100ms..300ms"
        assumptions.append(Assumption("dispatch", f"as it was on {pool.identity.label}", source))
        doubts.insert(0, warnings.DISPATCH_BORROWED)
    value = _pool(pool, provider, "value", start, training_run.precision.seed, image_s)
    sheets = prices or provider.prices
    if prices is not None and provider.prices is not None:
        sheets = prices.combined_with(provider.prices)
    return Alternatives(value, limited, sheets, assumptions=tuple(assumptions), flags=tuple(doubts))


def _limited(training_run: TrainingRun, provider: Provider) -> TrainingRun:
    """Fill unset limits of the training run with the provider's."""
    if provider.profile is None:
        return training_run
    set_fields = {name: getattr(training_run, name) for name in settings_in_use(training_run)}
    return TrainingRun(**provider.profile.filled(set_fields))


def starts_at_a_time(training_run: TrainingRun, provider: Provider, trials: Sequence[RecordedTrial]) -> int:
    """Return the concurrent starts: all of a step, else by Little's law."""
    workers = min(training_run.usable_workers, max(1, training_run.trajectories))
    start_s = provider.newest[0].p50 or 0.0
    if training_run.effective_policy.barrier and training_run.step_rollouts is not None:
        together = min(workers, training_run.step_rollouts)
    else:
        held_s = sum(trial.measures.held_ns for trial in trials) / (len(trials) or 1) / NS_PER_S
        together = math.ceil(workers * start_s / (held_s or start_s))
    if training_run.create_rate is not None:
        together = min(together, training_run.create_burst + math.ceil(training_run.create_rate * start_s))
    return max(1, together)


def _pool(
    pool: Pool, provider: Provider, scenario: Scenario, start: StartTime, seed: int, image_s: float = 0.0
) -> Pool:
    """Return the pool of a scenario; successes only, because failures come from the training run."""
    new, trials = copy.copy(pool), pool.successes
    new.identity = pool.identity._replace(  # the workload stays, for comparisons of rows with the same workload
        substrate=provider.substrate,
        variant="",
        cache="unknown",
        environment=warnings.COMPOSED,
        substrate_version=str(provider.newest[-1].date),
    )
    new.provenance = warnings.COMPOSED
    new.contended = None
    new.unreported = pool.unreported - {"create", "ready", "held"}  # the provider's start supplies these
    starts_ns = [round((seconds + image_s) * NS_PER_S) for seconds in start.strata(max(1, len(trials)))]
    Random(seed).shuffle(starts_ns)  # one per trial, independent of the trial
    dispatch_ns = None if provider.dispatch_s is None else round(getattr(provider.dispatch_s, scenario) * NS_PER_S)
    slowdown = getattr(provider.slowdown, scenario)
    # An undivided command contains an unknown part, from none to all, of the recorded dispatch.
    unsplit_more_ns = round((dispatch_ns or 0) * {"low": 0.0, "value": 0.5, "high": 1.0}[scenario])
    new.trials = [
        remade(
            trial,
            {"work": slowdown, "unsplit": slowdown},
            start_ns=start_ns,
            dispatch_ns=dispatch_ns,
            unsplit_more_ns=unsplit_more_ns,
            ends=False,
        )
        for trial, start_ns in zip(trials, starts_ns, strict=False)
    ]
    return new
