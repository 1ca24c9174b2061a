"""Difference of two runs under common random streams, without the time common to both.

Both are simulated for the same steps with the same draws, and subtracted stream by stream. Trials of the same
repetitions are resampled alike, trials of different repetitions independently.
"""

from __future__ import annotations

import zlib
from typing import Final

from costmodel.attribution.replications import Replications, repeated
from costmodel.attribution.shares import PRECISE, RUN, TINY, Amount, amount_of, units, with_run
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
Shared = dict[tuple[int, bool], tuple[Pool, Replications]]
"""Simulated runs by identity of their pool, and whether they have limits. Pairs with a common run simulate it once."""


def run_difference(
    first: Alternatives, second: Alternatives, effort: float = 1.0, shared: Shared | None = None, *, limits: bool = True
) -> Share | None:
    """Return first − second, each without its ends. None: the steps differ, or no attempt succeeds.

    Without ``limits`` the amounts have none, in about half of the time.

    Simulates until the error of the difference is small, or the ``effort`` (1: usual) is used. Calls with the same
    ``shared`` simulate the same first run once.
    """
    begun = _both(first, second, effort, {} if shared is None else shared, limits=limits)
    if begun is None:
        return None

    def differences() -> list[Amount]:
        return [mine.less(theirs) for mine, theirs in zip(*map(units, begun), strict=True)]

    def needed() -> float:
        factor = 0.0
        for amount in differences():
            enough = max(PRECISE * abs(amount.saved(1).value), ALIKE * abs(amount.of(RUN).value), TINY)
            factor = max(factor, amount.error(1) / enough)
        return begun[0].rounds[0] * factor**2

    repeated(begun, needed)
    saved = Share(*(amount.saved(1) for amount in differences()))
    mine, theirs = (amount_of(run, run.usd_range) for run in begun)
    half = mine.of(RUN).value + theirs.of(RUN).value
    if begun[0].tariff == begun[1].tariff:  # an unknown price is the same on both sides
        half = abs(mine.less(theirs).saved(1).value)
    return saved._replace(usd=saved.usd and saved.usd.widened(Interval(0.0, -half, half)))


def with_difference(first: Attribution, second: Attribution, less: Share) -> Attribution:
    """Return the second attribution with its run and sandbox set to the first less the difference."""
    changes = (
        Interval(0.0 if mine is None or saved is None or theirs is None else mine.value - saved.value - theirs.value)
        for mine, saved, theirs in zip(first.run, less, second.run, strict=True)
    )
    return with_run(second, Share(*changes), sandbox=True)


def _both(
    run: Alternatives, other_run: Alternatives, effort: float, shared: Shared, *, limits: bool
) -> tuple[Replications, Replications] | None:
    """Both, to be simulated for the same steps."""
    swapped = run.training_run.images is None and other_run.training_run.images is not None
    first, second = (other_run, run) if swapped else (run, other_run)
    runs = run.training_run, other_run.training_run
    if len({(training_run.trajectories, training_run.step_rollouts) for training_run in runs}) > 1:
        return None
    key, twin_rounds = (id(first.value), limits), None if limits else 0
    if key not in shared:
        trials = Trials(first.value, first.training_run)
        if not trials.successes:
            return None
        begun = Replications(first, trials, effort=effort, unchanged=True, twin_rounds=twin_rounds)
        shared[key] = first.value, begun
    first_run = shared[key][1]
    sampling = first_run.sampling
    scale, training_run = smaller(second.training_run, sampling.scale)
    sample: StepSample | None = sampling.sample
    if _nodes(first.training_run) != _nodes(second.training_run):
        sample = following(sampling.sample, StepRules(training_run))
    other_trials = Trials(second.value, second.training_run)
    if scale != sampling.scale or sample is None or not other_trials.successes:
        return None
    keys = [" ".join(sorted({str(trial.run) for trial in side.value.trials})) for side in (first, second)]
    salt = 0 if keys[0] == keys[1] else zlib.crc32(keys[1].encode())
    sampling = sampling._replace(sample=sample, salt=salt)
    second_run = Replications(
        second, other_trials, effort=effort, unchanged=True, twin_rounds=twin_rounds, sampling=sampling
    )
    return (first_run, second_run) if first is run else (second_run, first_run)


def _nodes(training_run: TrainingRun) -> tuple[object, ...]:
    images = training_run.images, training_run.pull_gb_s, training_run.placement
    return training_run.nodes, training_run.pods_per_node, training_run.node_disk_gib, *images
