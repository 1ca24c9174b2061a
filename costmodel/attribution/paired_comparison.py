"""Difference of two runs under common random streams, without the time common to both.

Both are simulated for the same steps with the same draws, and subtracted stream by stream. Trials of the same
repetitions are resampled alike, trials of different repetitions independently.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from costmodel.attribution.replications import Progress, Replications, repeated
from costmodel.attribution.resamples import Steps, interval_of, standard_error
from costmodel.attribution.shares import PRECISE, RUN, TINY, Amount, units, with_run
from costmodel.pricing.sheet import Prices
from costmodel.projection.row import Attribution, Share
from costmodel.simulation.attempts import Trials
from costmodel.simulation.rules import StepRules
from costmodel.simulation.step_sampling import StepSample, following, smaller
from costmodel.statistics.intervals import Interval
from costmodel.training.run import TrainingRun
from costmodel.workload.pool import Pool

ALIKE: Final = 1e-3
"""Precision of a difference as a share of the run."""


class RunInSteps(NamedTuple):
    """Input of a simulation: a run in steps on one substrate."""

    pool: Pool
    training_run: TrainingRun
    prices: Prices | None


class RunDifference(NamedTuple):
    """Difference of two runs."""

    usd: Interval
    worker_hours: Interval
    step_s: Interval
    gpu_hours: Interval
    reuses: bool = False  # in the second run at least one attempt got a sandbox that was ready


Shared = dict[int, tuple[RunInSteps, Replications]]
"""Simulated runs by identity of their input, so that pairs with a common run simulate the run once."""


def run_differences(
    pairs: Sequence[tuple[RunInSteps, RunInSteps]],
    effort: float = 1.0,
    progress: Progress | None = None,
    shared: Shared | None = None,
    *,
    limits: bool = True,
) -> list[RunDifference | None]:
    """Return first − second of each pair. None: the steps differ, or no attempt succeeds.

    Simulates until the error of the difference is small, or the ``effort`` (1: usual) is used. ``progress`` receives
    the finished share. Pairs with the same first run share its simulation, as do later calls with the same ``shared``.
    Without ``limits`` only values are returned, in half the time.

    Raises:
        TrainingRunError: next to no attempt of a run would succeed.
        PriceError: a sheet lacks a price.
    """
    differences = []
    shared = {} if shared is None else shared
    for place, (first, second) in enumerate(pairs):
        pair_progress = None if progress is None else lambda share, place=place: progress((place + share) / len(pairs))
        differences.append(_run_difference(first, second, effort, pair_progress, shared, limits))
    return differences


def with_difference(first: Attribution, second: Attribution, less: RunDifference) -> Attribution:
    """Return the second attribution with its run and sandbox set to the first less the difference."""

    def by(of: Callable[[Share], Interval | None], difference: Interval) -> float:
        mine, theirs = of(first.run), of(second.run)
        return 0.0 if mine is None or theirs is None else mine.value - difference.value - theirs.value

    change = Share(
        *(
            Interval(amount)
            for amount in (
                by(lambda share: share.step_s, less.step_s),
                by(lambda share: share.worker_hours, less.worker_hours),
                by(lambda share: share.gpu_hours, less.gpu_hours),
                by(lambda share: share.usd, less.usd),
            )
        )
    )
    return with_run(second, change, sandbox=True)


def _run_difference(
    first: RunInSteps, second: RunInSteps, effort: float, progress: Progress | None, shared: Shared, limits: bool
) -> RunDifference | None:
    begun = _both(first, second, effort, shared, limits)
    if begun is None:
        return None

    def both() -> list[tuple[Amount, Amount]]:
        amounts = [
            units(replications, run.training_run, run.pool, run.prices)
            for run, replications in zip((first, second), begun, strict=True)
        ]
        return list(zip(*(row[:4] for row in amounts), strict=True))

    def needed() -> float:
        factor = 0.0
        for mine, theirs in both():
            totals = [math.fsum(stream) for stream in _less(mine, mine.plain, theirs.plain)]
            saved = abs(math.fsum(totals)) / len(totals)
            enough = max(PRECISE * saved, ALIKE * abs(mine.of(RUN).value), TINY)
            factor = max(factor, standard_error(totals) / enough)
        return begun[0].rounds[0] * factor**2

    repeated(begun, needed, progress)
    step_s, hours, gpu, usd = (_interval(*pair) for pair in both())
    reuses = any(step.hits for stream in begun[1].plain for step in stream[RUN])
    return RunDifference(usd, hours, step_s, gpu, reuses)


def _both(
    run: RunInSteps, other_run: RunInSteps, effort: float, shared: Shared, limits: bool
) -> tuple[Replications, Replications] | None:
    """Both, to be simulated for the same steps."""
    swapped = run.training_run.images is None and other_run.training_run.images is not None
    first, second = (other_run, run) if swapped else (run, other_run)
    if (run.training_run.trajectories, run.training_run.step_rollouts) != (
        other_run.training_run.trajectories,
        other_run.training_run.step_rollouts,
    ):
        return None
    simulated = shared.get(id(first))
    first_run = simulated[1] if simulated else None
    if first_run is None:
        trials = Trials(first.pool, first.training_run)
        if not trials.successes:
            return None
        first_run = Replications(
            first.pool, trials, first.training_run, first.prices, effort=effort, unchanged=True, limits=limits
        )
    shared[id(first)] = first, first_run
    sampling = first_run.sampling
    scale, training_run = smaller(second.training_run, sampling.scale)
    sample: StepSample | None = sampling.sample
    if _nodes(first.training_run) != _nodes(second.training_run):
        sample = following(sampling.sample, StepRules.of(training_run))
    if scale != sampling.scale or sample is None:
        return None
    second_trials = Trials(second.pool, second.training_run)
    if not second_trials.successes:
        return None
    salt = 0 if _runs(first.pool) == _runs(second.pool) else zlib.crc32(_runs(second.pool).encode())
    sampling = sampling._replace(sample=sample, salt=salt)
    second_run = Replications(
        second.pool,
        second_trials,
        second.training_run,
        second.prices,
        effort=effort,
        unchanged=True,
        sampling=sampling,
    )
    return (first_run, second_run) if first is run else (second_run, first_run)


def _nodes(training_run: TrainingRun) -> tuple[object, ...]:
    images = training_run.images, training_run.pull_gb_s, training_run.placement
    return training_run.nodes, training_run.pods_per_node, training_run.node_disk_gib, *images


def _runs(pool: Pool) -> str:
    return " ".join(sorted({str(trial.run) for trial in pool.trials}))


def _interval(amount: Amount, other_amount: Amount) -> Interval:
    """Return the interval of the difference, stream by stream; without twins the value alone."""
    plain, twins = _less(amount, amount.plain, other_amount.plain), _less(amount, amount.twins, other_amount.twins)
    fewest = min((count for count in (amount.repetitions, other_amount.repetitions) if count), default=0)
    return interval_of(plain, twins, amount.stands_for[RUN], signed=True, repetitions=fewest)


def _less(amount: Amount, streams: list[list[Steps]], other_streams: list[list[Steps]]) -> list[Steps]:
    """Return the difference of each step, multiplied by its weight."""
    times = amount.stands_for[RUN]
    return [
        [w * (a - b) for w, a, b in zip(times, mine[RUN], theirs[RUN], strict=True)]
        for mine, theirs in zip(streams, other_streams, strict=True)
    ]
