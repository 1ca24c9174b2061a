"""How long N jobs take on W identical workers that serve one queue, first come first served."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from heapq import heapify, heapreplace
from itertools import islice, pairwise
from random import Random
from typing import Final, NamedTuple

from costmodel.errors import DemandError
from costmodel.simulation import renewal
from costmodel.simulation.sampling import EXACT, drawer
from costmodel.statistics.distribution import Distribution
from costmodel.statistics.end_effect import Survival, overrun
from costmodel.statistics.intervals import student_t
from costmodel.training.run import check_counts

DRAWS: Final = 2_000_000
"""Random durations that one simulated expectation may cost: about a quarter of a second."""
MIN_REPLICATES: Final = 4
MAX_REPLICATES: Final = 30
CONFIDENCE: Final = 0.997


class Makespan(NamedTuple):
    """An expected makespan, how far off it may be, and how it was found.

    ``order-statistic`` is exact for the law; ``bounds`` is the middle of guaranteed bounds; ``renewal`` the closed
    form for workers out of step; ``simulation`` a mean of seeded replicates with its 99.7 % interval.
    """

    value_ns: float
    error_ns: float
    method: str


def list_makespan(jobs_ns: Iterable[float], workers: int) -> int:
    """The makespan of this very list of whole ns in this very order; the reference for all else.

    Raises:
        DemandError: no worker, or a negative duration.
    """
    check_counts(0, workers)
    jobs = iter(jobs_ns)
    ends = _checked(list(islice(jobs, workers)))
    heapify(ends)
    while chunk := _checked(list(islice(jobs, 4096))):
        for job in chunk:
            heapreplace(ends, ends[0] + job)
    return int(max(ends, default=0))


def _checked(durations: list[float]) -> list[float]:
    if min(durations, default=0) < 0:
        raise DemandError("a duration is negative")
    return durations


def random_makespan(law: Distribution, jobs: int, workers: int, rng: Random) -> int:
    """Draw the jobs, and give each to the worker that is free first; ns, in O(N log W) time."""
    latest = (jobs // workers + 1) * law.values[-1]
    return list_makespan(drawer(law, rng, float if latest < EXACT else int)(jobs), workers)


def expected_makespan(
    sample_ns: Sequence[float] | Distribution,
    trajectories: int,
    workers: int,
    *,
    tolerance: float = 2e-3,
    seed: int = 0,
    effort: float = 1.0,
) -> Makespan:
    """E[makespan] of ``trajectories`` jobs drawn from the sample, within ``error_ns`` and inside guaranteed bounds.

    Aims at a relative error of ``tolerance``; where that would cost more than about a second it says how far off
    it may be instead; ``effort`` is a share of that. O(distinct durations) in the usual case, never O(trajectories).

    Raises:
        DemandError: trajectories below 0, workers below 1, or a sample that is empty, negative or not finite.
    """
    check_counts(trajectories, workers)
    law = sample_ns if isinstance(sample_ns, Distribution) else Distribution.of(sample_ns)
    if trajectories == 0 or law.mean == 0:
        return Makespan(0.0, 0.0, "order-statistic")
    if trajectories <= workers:
        return Makespan(renewal.expected_max(law, trajectories), 0.0, "order-statistic")
    low, high = renewal.bounds(law, trajectories, workers)
    middle = Makespan((low + high) / 2, (high - low) / 2, "bounds")
    if middle.error_ns <= tolerance / 10 * low:
        return middle
    if renewal.out_of_step(law, trajectories, workers, tolerance):
        value = min(max(renewal.renewal_makespan(law, trajectories, workers), low), high)
        return Makespan(value, min(tolerance * value, high - low), "renewal")
    if middle.error_ns <= tolerance * low:
        return middle
    replicates, rng = min(MAX_REPLICATES, int(effort * DRAWS / trajectories)), Random(seed)
    if replicates < MIN_REPLICATES:
        return middle
    ends = [random_makespan(law, trajectories, workers, rng) for _ in range(replicates)]
    value = min(max(sum(ends) / len(ends), low), high)
    error = _error_of_mean(ends, high - low) + _unseen(law, trajectories, workers, ends)
    return Makespan(value, error, "simulation") if error < middle.error_ns else middle


def _error_of_mean(ends: list[int], possible: float) -> float:
    """Half the width of the 99.7 % interval of the mean, where the ends can differ by ``possible``."""
    if min(ends) == max(ends):  # an outcome this rare may still be missing
        return possible * (1 - math.pow(1 - CONFIDENCE, 1 / len(ends)))
    mean = sum(ends) / len(ends)
    variance = math.fsum((end - mean) ** 2 for end in ends) / (len(ends) - 1)
    return student_t(len(ends) - 1, CONFIDENCE) * math.sqrt(variance / len(ends))


def _unseen(law: Distribution, jobs: int, workers: int, ends: list[int]) -> float:
    """What outcomes beyond all replicates may add to, or take from, the mean: they happen with at most this chance.

    The end is below x only if every job is, which has the probability F(x)^N.
    """
    chance = 1 - math.pow(1 - CONFIDENCE, 1 / len(ends))
    survival = Survival(law.values, law.counts)
    sooner = math.fsum(
        min(chance, math.exp(jobs * math.log(below / law.size))) * (min(upper, min(ends)) - lower)
        for below, (lower, upper) in zip(law.cumulative, pairwise(law.values), strict=False)
        if lower < min(ends)
    )
    return max(sooner, overrun(survival, jobs, workers, max(ends), chance))
