"""Time of N jobs on W identical workers with one queue, first come first served.

Closed forms in O(distinct durations): the maximum with a worker per job, bounds (Graham 1969), and the renewal form.
Workers are W independent renewal processes. Once they are out of step, the job in progress at a random instant has the
equilibrium residual distribution (Feller, volume II, XI.4), which gives the expected makespan. The characteristic
function shows how far they are out of step. Otherwise the queue is simulated.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from heapq import heapreplace
from itertools import pairwise
from random import Random
from typing import Final, NamedTuple

from costmodel.statistics.distribution import Distribution
from costmodel.statistics.intervals import student_t
from costmodel.training.run import USUAL, Precision

DRAWS: Final = 400_000
"""Random durations of one simulated expectation at most: about a fifth of a second, with retries half a second."""
DRAWN_LAW: Final = 16_000
"""Durations drawn for the distribution of a run too large to simulate."""
MIN_REPLICATES: Final = 4
MAX_REPLICATES: Final = 100
CONFIDENCE: Final = 0.997
HARMONICS: Final = (400, 8_000)
"""Least and largest number of frequencies at which the characteristic function is checked."""
SETTLED: Final = 2
"""Least length of a run, in longest jobs, for the equilibrium of jobs in progress."""


Draw = Callable[[int, Random], list[int]]
"""Draw so many durations."""


class Makespan(NamedTuple):
    """An expected makespan with its error and method.

    ``order-statistic`` is exact; ``bounds`` is the middle of guaranteed bounds; ``renewal`` is the closed form for
    workers out of step; ``simulation`` is a mean of seeded replicates with its 99.7 % interval; ``events`` is a
    simulation of events (``simulation.run``).
    """

    value_ns: float
    error_ns: float
    method: str


def list_makespan(jobs_ns: Iterable[int], workers: int) -> int:
    """The makespan of these jobs in this order; the reference for every other method."""
    ends = [0] * workers
    for job in jobs_ns:
        heapreplace(ends, ends[0] + job)
    return max(ends)


def random_makespan(law: Distribution, jobs: int, workers: int, rng: Random) -> int:
    """Draw the jobs, and give each to the worker that is free first; ns, in O(N log W) time."""
    return list_makespan(rng.choices(law.values, cum_weights=law.cumulative, k=jobs), workers)


def expected_makespan(
    law: Distribution, trajectories: int, workers: int, precision: Precision = USUAL, draw: Draw | None = None
) -> Makespan:
    """Return E[makespan] of ``trajectories`` jobs with this distribution, within ``error_ns`` and guaranteed bounds.

    Accepts a larger error than the tolerance where a simulation would exceed about a second at an effort of 1.
    O(distinct durations) usually, never O(trajectories). ``draw`` draws durations where ``law`` has precise moments,
    but not the longest of many jobs; of a run too large to simulate they make the distribution.
    """
    if trajectories == 0 or law.mean == 0:
        return Makespan(0.0, 0.0, "order-statistic")
    if trajectories <= workers and draw is None:
        return Makespan(expected_max(law, trajectories), 0.0, "order-statistic")
    tolerance = precision.tolerance
    low, high = makespan_bounds(law, trajectories, workers)
    middle = Makespan((low + high) / 2, (high - low) / 2, "bounds")
    if middle.error_ns <= tolerance / 10 * low:
        return middle
    if draw is None and out_of_step(law, trajectories, workers, tolerance):
        value = min(max(renewal_makespan(law, trajectories, workers), low), high)
        return Makespan(value, min(tolerance * value, high - low), "renewal")
    if middle.error_ns <= tolerance * low:
        return middle
    replicates, rng = min(MAX_REPLICATES, int(precision.effort * DRAWS / trajectories)), Random(precision.seed)
    if replicates < MIN_REPLICATES:
        drawn = None if draw is None else Distribution.of(draw(DRAWN_LAW, rng))
        if drawn is None or not drawn.total:
            return middle
        exact = (Fraction(law.total, law.size) * drawn.size / drawn.total).limit_denominator(10**12)
        return expected_makespan(drawn.scaled(*exact.as_integer_ratio()), trajectories, workers, precision)
    if draw is None:
        ends = [random_makespan(law, trajectories, workers, rng) for _ in range(replicates)]
        value = min(max(sum(ends) / len(ends), low), high)
    else:
        ends = [list_makespan(draw(trajectories, rng), workers) for _ in range(replicates)]
        value = sum(ends) / len(ends)
    error = error_of_mean(ends, high - low) + _unseen(law, trajectories, workers, ends)
    return Makespan(value, error, "simulation") if error < middle.error_ns else middle


def _unseen_chance(replicates: int) -> float:
    """Return the highest probability of an unseen outcome."""
    return 1 - math.pow(1 - CONFIDENCE, 1 / replicates)


def error_of_mean(ends: Sequence[float], possible: float) -> float:
    """Half the width of the 99.7 % interval of the mean, where the ends can differ by ``possible``."""
    if min(ends) == max(ends):  # an outcome this rare may still be missing
        return possible * _unseen_chance(len(ends))
    mean = math.fsum(ends) / len(ends)
    variance = math.fsum((end - mean) ** 2 for end in ends) / (len(ends) - 1)
    return student_t(len(ends) - 1, CONFIDENCE) * math.sqrt(variance / len(ends))


def _unseen(law: Distribution, jobs: int, workers: int, ends: list[int]) -> float:
    """Return how far unseen outcomes may move the mean: later by their longest job, or sooner.

    The end is at most an even share of the work plus the longest job.
    """
    room = max(ends) - jobs * law.mean / workers  # an end later than all takes a job longer than this
    later = min(expected_max(law, jobs, room) - room, _unseen_chance(len(ends)) * max(0.0, law.values[-1] - room))
    return max(sooner(law, jobs, ends), later)


def sooner(law: Distribution, jobs: int, ends: Sequence[float]) -> float:
    """Return how far unseen outcomes may lower the mean: the end is below x only if every job is, so with F(x)^N."""
    chance = _unseen_chance(len(ends))
    return math.fsum(
        min(chance, math.exp(jobs * math.log(below / law.size))) * (min(upper, min(ends)) - lower)
        for below, (lower, upper) in zip(law.cumulative, pairwise(law.values), strict=False)
        if lower < min(ends)
    )


def expected_max(law: Distribution, jobs: int, at_least: float = 0.0) -> float:
    """E[max of ``jobs`` draws and ``at_least``] in ns: x_last − Σ F(x_k)^jobs · (x_{k+1} − x_k) above that."""
    if jobs <= 0 or at_least >= law.values[-1]:
        return at_least
    size = law.size
    shortfall = math.fsum(
        math.exp(jobs * math.log1p((below - size) / size)) * (upper - max(lower, at_least))
        for below, (lower, upper) in zip(law.cumulative, pairwise(law.values), strict=False)
        if upper > at_least
    )
    return law.values[-1] - shortfall


def makespan_bounds(law: Distribution, jobs: int, workers: int) -> tuple[float, float]:
    """Guaranteed bounds in ns on the expected makespan of first-come-first-served list scheduling (Graham 1969)."""
    waves = -(-jobs // workers)
    fluid = jobs * law.mean / workers
    longest = expected_max(law, jobs)
    low = max(fluid, longest, waves * law.values[0])
    high = min(fluid + (1 - 1 / workers) * longest, waves * law.values[-1])
    return low, max(low, high)  # equal up to rounding where all jobs are equal


def renewal_makespan(law: Distribution, jobs: int, workers: int) -> float:
    """Return E[makespan] in ns of workers out of step: the last start, then the longest running job.

    (Nμ − μ − (W−1)·m₂/2μ)/W + E[max(L, R₁ … R_{W−1})], with L a fresh job and R from the residual distribution. Its
    distribution function is piecewise linear, so each piece integrates in closed form.
    """
    left_over = law.mean + (workers - 1) * law.second_moment / (2 * law.mean)
    last_start = (jobs * law.mean - left_over) / workers
    shortfall = []
    finished = 0  # Σ of the durations up to here
    for below, count, (lower, upper) in zip(law.cumulative, law.counts, pairwise(law.values), strict=False):
        finished += lower * count
        width = upper - lower
        end = (finished + (law.size - below) * upper) / law.total  # residual law at `upper`
        rise = (law.size - below) * width / law.total  # ... minus that at `lower`
        ratio = math.log1p(-rise / end) if rise < end else -math.inf
        integral = width * end**workers * -math.expm1(workers * ratio) / (workers * rise)
        shortfall.append(below / law.size * integral)
    return last_start + law.values[-1] - math.fsum(shortfall)


def out_of_step(law: Distribution, jobs: int, workers: int, tolerance: float) -> bool:
    """Whether the workers lost step before the end, so that ``renewal_makespan`` holds to ``tolerance``.

    The r-th harmonic of the renewal density displaces the end by at most μ/(πr) · |φ(2πr/μ)|^(N/W). Harmonics beyond
    1/(π · tolerance · N/W) are below the tolerance for any φ. Tolerances below 1e-4 need too many harmonics.
    For the duration of the longest job fewer jobs are in progress, which φ does not show.
    """
    waves, (count, most) = jobs / workers, HARMONICS
    if SETTLED * law.values[-1] > waves * law.mean or 0.8 / tolerance > most:
        return False
    beyond, count = tolerance * math.pi * waves, max(count, math.ceil(0.8 / tolerance))
    grid = (0.5 + (1 / beyond - 0.5) * (step + 0.5) / count for step in range(count))
    return 1 / beyond <= 0.5 or all(
        _characteristic(law, 2 * math.pi * r / law.mean) <= (beyond * r) ** (1 / waves) for r in grid
    )


def _characteristic(law: Distribution, frequency: float) -> float:
    """|φ| at ``frequency``, in 1/ns."""
    turn = 1j * frequency
    exp = cmath.exp
    waves = sum([count * exp(turn * value) for value, count in zip(law.values, law.counts, strict=True)])
    return abs(waves) / law.size
