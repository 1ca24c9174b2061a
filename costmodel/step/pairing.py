"""What one place costs a run more than another, in the same random worlds: what both share cancels.

Both are simulated for the same steps with the same draws, and their difference is taken world by world. Trials of the
same runs are resampled alike, those of different runs each for themselves.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

from costmodel.demand import Demand
from costmodel.pricing import Prices
from costmodel.samples import Pool
from costmodel.step.attribution import RUN, Rates, Steps, amount_of, interval_of
from costmodel.step.horizon import following
from costmodel.step.rules import StepRules
from costmodel.step.worlds import Sampling, Worlds, smaller, worlds
from costmodel.timescale import NS_PER_HOUR
from costmodel.uncertainty import Interval


class RunInSteps(NamedTuple):
    """A run in steps at one place."""

    pool: Pool
    demand: Demand
    prices: Prices | None


class Apart(NamedTuple):
    """One run less another."""

    usd: Interval
    worker_hours: Interval


def apart(pairs: Sequence[tuple[RunInSteps, RunInSteps]], effort: float = 1.0) -> list[Apart | None]:
    """Of each pair the first − the second. None: they cannot be simulated for the same steps, or no attempt succeeds.

    ``effort`` is how much is simulated of a run, relative to a few seconds; one that several pairs have, is once.

    Raises:
        PriceError: a sheet lacks a price.
    """
    known = _Known(effort)
    return [_apart(one, other, known) for one, other in pairs]


def _apart(one: RunInSteps, other: RunInSteps, known: _Known) -> Apart | None:
    found = _both(one, other, known)
    if found is None:
        return None
    usd = _differences(*(_dollars(run, own) for run, own in zip((one, other), found, strict=True)))
    times = found[0].plan.stands_for
    hours = _differences(*(_hours(own) for own in found))
    return Apart(interval_of(usd[0], usd[1], times, signed=True), interval_of(hours[0], hours[1], times, signed=True))


class _Known:
    """The worlds of runs as they are, each simulated once."""

    def __init__(self, effort: float) -> None:
        self._effort = effort
        self._found: list[tuple[RunInSteps, Sampling | None, Worlds | None]] = []

    def worlds(self, run: RunInSteps, sampling: Sampling | None = None) -> Worlds | None:
        """As the function of this name."""
        for own, how, found in self._found:
            if own is run and how == sampling:
                return found
        found = worlds(run.pool, run.demand, run.prices, effort=self._effort, as_it_is=True, sampling=sampling)
        self._found.append((run, sampling, found))
        return found


def _both(one: RunInSteps, other: RunInSteps, known: _Known) -> tuple[Worlds, Worlds] | None:
    """The worlds of both, for the same steps."""
    first, second = (one, other) if one.demand.images is not None else (other, one)
    if (one.demand.trajectories, one.demand.step_rollouts) != (other.demand.trajectories, other.demand.step_rollouts):
        return None
    here = known.worlds(first)
    if here is None:
        return None
    scale, demand = smaller(second.demand, here.scale)
    plan = here.plan if _nodes(first.demand) == _nodes(second.demand) else following(here.plan, StepRules.of(demand))
    if scale != here.scale or plan is None:
        return None
    salt = 0 if _runs(first.pool) == _runs(second.pool) else zlib.crc32(_runs(second.pool).encode())
    there = known.worlds(second, Sampling(plan, len(here.plain), len(here.twins), scale, salt))
    if there is None:
        return None
    return (here, there) if first is one else (there, here)


def _nodes(demand: Demand) -> tuple[object, ...]:
    return demand.nodes, demand.pods_per_node, demand.images, demand.placement, demand.node_disk_gib, demand.pull_gb_s


def _runs(pool: Pool) -> str:
    return " ".join(sorted({str(trial.run) for trial in pool.trials}))


def _dollars(run: RunInSteps, found: Worlds) -> list[list[Steps]]:
    """Of every step, of the plain worlds and of the twins."""
    rates = Rates.of(run.demand, run.pool, run.prices)
    told = amount_of(found, lambda step: rates.usd(step, found))
    return [[world[RUN] for world in told.plain], [world[RUN] for world in told.twins]]


def _hours(found: Worlds) -> list[list[Steps]]:
    told = amount_of(found, lambda step: found.share * step.held_ns / NS_PER_HOUR)
    return [[world[RUN] for world in told.plain], [world[RUN] for world in told.twins]]


def _differences(one: list[list[Steps]], other: list[list[Steps]]) -> list[list[Steps]]:
    return [
        [[a - b for a, b in zip(mine, theirs, strict=True)] for mine, theirs in zip(ours, others, strict=True)]
        for ours, others in zip(one, other, strict=True)
    ]
