"""From attempts to a run: what they hold on average, exactly, and when the run ends."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from operator import sub
from typing import NamedTuple

from costmodel.projection.wall_clock import WholeRun, run_in_time
from costmodel.simulation.engine.estimate import SimulatedRun
from costmodel.simulation.engine.tries import Source
from costmodel.simulation.retries import Retries, retried
from costmodel.statistics.distribution import Distribution
from costmodel.statistics.intervals import Interval
from costmodel.statistics.repetitions import assumed
from costmodel.training.run import Demand
from costmodel.workload.attempts import Attempt, Sample
from costmodel.workload.estimator import Tally
from costmodel.workload.pool import HITS, Pool, from_pool, killed_after


class TimedRun(NamedTuple):
    """A sample of attempts as a run of the demand's size."""

    tally: Tally  # with as many hits as the pool gives
    retries: Retries
    law: Distribution  # of how long a worker is busy with one trajectory
    source: Source  # the same attempt by attempt
    run: WholeRun


def timed_run(sample: Sequence[Attempt], pool: Pool, demand: Demand, *, aside: bool = False) -> TimedRun | None:
    """None where no attempt succeeds in time; ``aside`` is simulated less."""
    if demand.create_rate is not None:
        sample = Sample.of(sample).unthrottled()
    source = _source(sample, demand.timeout_s)
    found = _tallied(_killed(sample, demand), pool, demand, None)
    if found is None or source is None:
        return None
    tally, retries, law = found
    run = run_in_time(law, demand, source, aside=aside)
    if demand.warm_pool is not None and run.outcome is not None:
        hits = run.outcome.hits.value / run.outcome.attempts.value
        mixed = _tallied(_killed(from_pool(sample, round(HITS * hits)), demand), pool, demand, run.outcome)
        assert mixed is not None  # a hit only saves time
        tally, retries, law = mixed
    return TimedRun(tally, retries, law, source, run)


def launched(one_by_one: Interval, value: float, outcome: SimulatedRun) -> Interval:
    """An amount for all that was launched: as sure, in proportion, as one by one, less the simulation's error."""
    if one_by_one.low is None or one_by_one.high is None or not one_by_one.value:
        return Interval(value)
    off = outcome.busy_error_ns / outcome.busy_ns if outcome.busy_ns else 0.0
    low, high = (end / one_by_one.value for end in (one_by_one.low, one_by_one.high))
    return Interval(value, max(0.0, 1 - off) * value * low, (1 + off) * value * high)


def _tallied(
    sample: Sequence[Attempt], pool: Pool, demand: Demand, outcome: SimulatedRun | None
) -> tuple[Tally, Retries, Distribution] | None:
    tally = Tally(sample, pool.trials, assumed(pool.identity.substrate, demand.run_sd))
    success = tally.held_times(ok=True)
    if success is None:
        return None
    retries = Retries(tally.failure, demand.max_attempts)
    if outcome is not None and demand.max_attempts is not None and demand.over_provision == 0:
        # Attempts that find a sandbox ready may fail less, and which ones do is for the simulation to say.
        retries = retries._replace(simulated=Fraction(outcome.attempts.value / demand.trajectories))
    backoff_ns = round(demand.backoff_s * 1e9)
    law = retried(success, tally.held_times(ok=False), retries, backoff_ns, demand.seed)
    return tally, retries, law


def _killed(sample: Sequence[Attempt], demand: Demand) -> Sequence[Attempt]:
    return sample if demand.timeout_s is None else killed_after(sample, demand.timeout_s)


def _source(sample: Sequence[Attempt], timeout_s: float | None) -> Source | None:
    """Where the engine draws its attempts from: each as it is, and had a sandbox been ready. None: all fail."""
    cold = Sample.of(sample)
    warm_ok, warm_clock_ns = cold.ok, cold.sandbox_ns
    if timeout_s is None:
        warm_ns: Sequence[int] = list(map(sub, cold.held_ns, cold.cold_ns))
    else:
        warm = Sample.of(killed_after([attempt.warm(attempt.weight) for attempt in sample], timeout_s))
        warm_ok, warm_ns, warm_clock_ns = warm.ok, warm.held_ns, warm.sandbox_ns
        cold = Sample.of(killed_after(sample, timeout_s))
    if not any(cold.ok):
        return None
    return Source.of_columns(cold.weight, (cold.ok, cold.held_ns, cold.sandbox_ns, warm_ok, warm_ns, warm_clock_ns))
