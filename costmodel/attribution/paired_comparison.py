"""What one place costs a run more than another, in the same random worlds: what both share cancels.

Both are simulated for the same steps with the same draws, and their difference is taken world by world. Trials of the
same runs are resampled alike, those of different runs each for themselves.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from costmodel.attribution.replications import Progress, Replications, repeated
from costmodel.attribution.shares import PRECISE, RUN, TINY, Amount, units, with_run
from costmodel.attribution.world_intervals import Steps, interval_of, standard_error
from costmodel.pricing.sheet import Prices
from costmodel.projection.row import Attribution, Share
from costmodel.simulation.rules import StepRules
from costmodel.simulation.step_sampling import following, smaller
from costmodel.statistics.intervals import Interval
from costmodel.training.run import TrainingRun
from costmodel.workload.pool import Pool

ALIKE: Final = 1e-3
"""Of the run: a difference is told to this part of it at least."""


class RunInSteps(NamedTuple):
    """A run in steps at one place."""

    pool: Pool
    training_run: TrainingRun
    prices: Prices | None


class Apart(NamedTuple):
    """One run less another."""

    usd: Interval
    worker_hours: Interval
    step_s: Interval
    gpu_hours: Interval
    reuses: bool = False  # in the second run at least one attempt got a sandbox that was ready


Shared = dict[int, tuple[RunInSteps, Replications]]
"""Simulated runs by the identity of what was asked, so that pairs with a run in common simulate it once."""


def apart(
    pairs: Sequence[tuple[RunInSteps, RunInSteps]],
    effort: float = 1.0,
    progress: Progress | None = None,
    shared: Shared | None = None,
    *,
    limits: bool = True,
) -> list[Apart | None]:
    """Of each pair the first − the second. None: they cannot be simulated for the same steps, or no attempt succeeds.

    Both are simulated until the error of their difference is small, or as much as the ``effort`` allows, relative to
    the usual. ``progress`` is told the share that is done. Pairs with the same first run share its simulation; so do
    later calls with the same ``shared``. Without ``limits`` there are values alone, in half the time.

    Raises:
        TrainingRunError: next to no attempt of a run would succeed.
        PriceError: a sheet lacks a price.
    """
    found = []
    shared = {} if shared is None else shared
    for place, (one, other) in enumerate(pairs):
        own = None if progress is None else lambda done, place=place: progress((place + done) / len(pairs))
        found.append(_apart(one, other, effort, own, shared, limits))
    return found


def beside(one: Attribution, other: Attribution, less: Apart) -> Attribution:
    """The other, of which it is known how much less it takes than this one: its run, so its sandbox, do."""

    def by(of: Callable[[Share], Interval | None], apart: Interval) -> float:
        mine, theirs = of(one.run), of(other.run)
        return 0.0 if mine is None or theirs is None else mine.value - apart.value - theirs.value

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
    return with_run(other, change, sandbox=True)


def _apart(
    one: RunInSteps, other: RunInSteps, effort: float, progress: Progress | None, shared: Shared, limits: bool
) -> Apart | None:
    begun = _both(one, other, effort, shared, limits)
    if begun is None:
        return None

    def both() -> list[tuple[Amount, Amount]]:
        found = [
            units(own.worlds, run.training_run, run.pool, run.prices)
            for run, own in zip((one, other), begun, strict=True)
        ]
        return list(zip(*(own[:4] for own in found), strict=True))

    def needed() -> float:
        factor = 0.0
        for mine, theirs in both():
            totals = [math.fsum(world) for world in _less(mine, mine.plain, theirs.plain)]
            saved = abs(math.fsum(totals)) / len(totals)
            enough = max(PRECISE * saved, ALIKE * abs(mine.of(RUN).value), TINY)
            factor = max(factor, standard_error(totals) / enough)
        return begun[0].worlds.plan.rounds * factor**2

    repeated(begun, needed, progress)
    step_s, hours, gpu, usd = (_interval(*pair) for pair in both())
    reuses = any(step.hits for looks in begun[1].worlds.plain for step in looks[0])
    return Apart(usd, hours, step_s, gpu, reuses)


def _both(
    one: RunInSteps, other: RunInSteps, effort: float, shared: Shared, limits: bool
) -> tuple[Replications, Replications] | None:
    """Both, to be simulated for the same steps."""
    swapped = one.training_run.images is None and other.training_run.images is not None
    first, second = (other, one) if swapped else (one, other)
    if (one.training_run.trajectories, one.training_run.step_rollouts) != (
        other.training_run.trajectories,
        other.training_run.step_rollouts,
    ):
        return None
    known = shared.get(id(first))
    here = known[1] if known else None
    if here is None:
        here = Replications.of(first.pool, first.training_run, first.prices, effort=effort, as_it_is=True, twins=limits)
    if here is None:
        return None
    shared[id(first)] = first, here
    asked = here.sampling
    scale, training_run = smaller(second.training_run, asked.scale)
    plan = (
        asked.plan
        if _nodes(first.training_run) == _nodes(second.training_run)
        else following(asked.plan, StepRules.of(training_run))
    )
    if scale != asked.scale or plan is None:
        return None
    salt = 0 if _runs(first.pool) == _runs(second.pool) else zlib.crc32(_runs(second.pool).encode())
    asked = asked._replace(plan=plan, salt=salt)
    there = Replications.of(
        second.pool, second.training_run, second.prices, effort=effort, as_it_is=True, sampling=asked
    )
    if there is None:
        return None
    return (here, there) if first is one else (there, here)


def _nodes(training_run: TrainingRun) -> tuple[object, ...]:
    images = training_run.images, training_run.pull_gb_s, training_run.placement
    return training_run.nodes, training_run.pods_per_node, training_run.node_disk_gib, *images


def _runs(pool: Pool) -> str:
    return " ".join(sorted({str(trial.run) for trial in pool.trials}))


def _interval(one: Amount, other: Amount) -> Interval:
    """Of the difference, world by world; without twins its value alone."""
    plain, twins = _less(one, one.plain, other.plain), _less(one, one.twins, other.twins)
    least = min((count for count in (one.repetitions, other.repetitions) if count), default=0)
    return interval_of(plain, twins, one.stands_for[RUN], signed=True, repetitions=least)


def _less(one: Amount, ours: list[list[Steps]], others: list[list[Steps]]) -> list[Steps]:
    """Every step of these worlds less that of the others, times how many it stands for."""
    times = one.stands_for[RUN]
    return [
        [w * (a - b) for w, a, b in zip(times, mine[RUN], theirs[RUN], strict=True)]
        for mine, theirs in zip(ours, others, strict=True)
    ]
