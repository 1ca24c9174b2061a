"""Difference of two runs under common random streams, without the time common to both.

Both are simulated for the same steps with the same draws, and subtracted stream by stream. Trials of the same
repetitions are resampled alike, trials of different repetitions independently.
"""

from __future__ import annotations

import math
import zlib
from typing import Final

from costmodel.attribution.replications import Progress, Replications, repeated
from costmodel.attribution.resamples import Steps, interval_of, standard_error
from costmodel.attribution.shares import PRECISE, RUN, TINY, Amount, units, with_run
from costmodel.projection.row import Attribution, Share
from costmodel.simulation.attempts import Trials
from costmodel.simulation.rules import StepRules
from costmodel.simulation.step_sampling import StepSample, following, smaller
from costmodel.statistics.intervals import Interval
from costmodel.training.run import TrainingRun
from costmodel.workload.pool import Pool
from costmodel.workload.rescaling import Alternatives

ALIKE: Final = 1e-3
"""Precision of a difference as a share of the run."""


Shared = dict[int, tuple[Pool, Replications]]
"""Simulated runs by identity of their pool, so that pairs with a common run simulate the run once."""


def run_difference(
    first: Alternatives,
    second: Alternatives,
    effort: float = 1.0,
    progress: Progress | None = None,
    shared: Shared | None = None,
) -> Share | None:
    """Return first − second, each without its ends. None: the steps differ, or no attempt succeeds.

    Simulates until the error of the difference is small, or the ``effort`` (1: usual) is used. ``progress`` receives
    the finished share. Calls with the same ``shared`` simulate the same first run once.

    Raises:
        TrainingRunError: next to no attempt of a run would succeed.
        PriceError: a sheet lacks a price.
    """
    begun = _both(first, second, effort, {} if shared is None else shared)
    if begun is None:
        return None

    def both() -> list[tuple[Amount, Amount]]:
        mine, theirs = map(units, begun)
        return list(zip(mine, theirs, strict=True))

    def needed() -> float:
        factor = 0.0
        for mine, theirs in both():
            totals = [math.fsum(stream) for stream in _less(mine, mine.plain, theirs.plain)]
            saved = abs(math.fsum(totals)) / len(totals)
            enough = max(PRECISE * saved, ALIKE * abs(mine.of(RUN).value), TINY)
            factor = max(factor, standard_error(totals) / enough)
        return begun[0].rounds[0] * factor**2

    repeated(begun, needed, progress)
    return Share(*(_interval(*pair) for pair in both()))


def with_difference(first: Attribution, second: Attribution, less: Share) -> Attribution:
    """Return the second attribution with its run and sandbox set to the first less the difference."""
    changes = (
        Interval(0.0 if mine is None or saved is None or theirs is None else mine.value - saved.value - theirs.value)
        for mine, saved, theirs in zip(first.run, less, second.run, strict=True)
    )
    return with_run(second, Share(*changes), sandbox=True)


def _both(
    run: Alternatives, other_run: Alternatives, effort: float, shared: Shared
) -> tuple[Replications, Replications] | None:
    """Both, to be simulated for the same steps."""
    swapped = run.training_run.images is None and other_run.training_run.images is not None
    first, second = (other_run, run) if swapped else (run, other_run)
    if (run.training_run.trajectories, run.training_run.step_rollouts) != (
        other_run.training_run.trajectories,
        other_run.training_run.step_rollouts,
    ):
        return None
    if id(first.value) not in shared:
        trials = Trials(first.value, first.training_run)
        if not trials.successes:
            return None
        begun = Replications(first.value, trials, first.training_run, first.prices, effort=effort, unchanged=True)
        shared[id(first.value)] = first.value, begun
    first_run = shared[id(first.value)][1]
    sampling = first_run.sampling
    scale, training_run = smaller(second.training_run, sampling.scale)
    sample: StepSample | None = sampling.sample
    if _nodes(first.training_run) != _nodes(second.training_run):
        sample = following(sampling.sample, StepRules(training_run))
    other_trials = Trials(second.value, second.training_run)
    if scale != sampling.scale or sample is None or not other_trials.successes:
        return None
    runs = [" ".join(sorted({str(trial.run) for trial in side.value.trials})) for side in (first, second)]
    salt = 0 if runs[0] == runs[1] else zlib.crc32(runs[1].encode())
    second_run = Replications(
        second.value,
        other_trials,
        second.training_run,
        second.prices,
        effort=effort,
        unchanged=True,
        sampling=sampling._replace(sample=sample, salt=salt),
    )
    return (first_run, second_run) if first is run else (second_run, first_run)


def _nodes(training_run: TrainingRun) -> tuple[object, ...]:
    images = training_run.images, training_run.pull_gb_s, training_run.placement
    return training_run.nodes, training_run.pods_per_node, training_run.node_disk_gib, *images


def _interval(amount: Amount, other_amount: Amount) -> Interval:
    """Return the interval of the difference, stream by stream."""
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
