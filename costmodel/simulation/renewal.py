"""Closed forms for N jobs on W workers, all O(distinct durations): bounds, maxima, the renewal form and its limits.

Workers that take one job after another are W independent renewal processes. Once they have lost step, the job in
progress at a random instant has the equilibrium residual law (Feller, volume II, XI.4), which gives the expected
makespan without simulating anything. How well they have lost step is read off the characteristic function.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from itertools import pairwise

from costmodel.statistics.distribution import Distribution


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


def bounds(law: Distribution, jobs: int, workers: int) -> tuple[float, float]:
    """Guaranteed bounds in ns on the expected makespan of first-come-first-served list scheduling (Graham 1969)."""
    waves = -(-jobs // workers)
    fluid = jobs * law.mean / workers
    longest = expected_max(law, jobs)
    low = max(fluid, longest, waves * law.values[0])
    high = min(fluid + (1 - 1 / workers) * longest, waves * law.values[-1])
    return low, max(low, high)  # equal up to rounding where all jobs are equal


def renewal_makespan(law: Distribution, jobs: int, workers: int) -> float:
    """E[makespan] in ns once workers are out of step: the last start, then the longest of what is still running.

    (Nμ − μ − (W−1)·m₂/2μ)/W + E[max(L, R₁ … R_{W−1})], with L a fresh job and R from the residual law, whose
    distribution function is piecewise linear, so that each piece integrates in closed form.
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
    """Whether the workers provably lost step before the end, so that ``renewal_makespan`` holds to ``tolerance``.

    The r-th harmonic of the renewal density displaces the end by at most μ/(πr) · |φ(2πr/μ)|^(N/W). Harmonics
    beyond 1/(π · tolerance · N/W) are below the tolerance whatever φ is. What φ does not show: as long as the longest
    job takes, fewer are in progress than later, because none began before the run did.
    """
    waves = jobs / workers
    if SETTLED * law.values[-1] > waves * law.mean:
        return False
    beyond = tolerance * math.pi * waves
    return _stays_below(law, 0.5, 1 / beyond, lambda r: (beyond * r) ** (1 / waves))


MAX_EVALUATIONS = 400
SETTLED = 2
"""So many of the longest job a run must last for the jobs in progress to be those of the equilibrium."""


def _stays_below(law: Distribution, start: float, stop: float, ceiling: Callable[[float], float]) -> bool:
    """Prove |φ(2πr/μ)| ≤ ceiling(r), a growing function, on [start, stop] by branch and bound; False if unproved.

    |φ| changes by at most E|X − c| per unit of frequency whatever c is, because a shift only turns its phase.
    """
    slope = 2 * math.pi / law.mean * _mean_absolute_deviation(law)
    pending = [(start, stop)]
    for _ in range(MAX_EVALUATIONS):
        if not pending:
            return True
        low, high = pending.pop()
        if low >= high:
            continue
        middle = (low + high) / 2
        height = _characteristic(law, 2 * math.pi * middle / law.mean)
        if height > ceiling(middle):
            return False
        if height + slope * (high - low) / 2 > ceiling(low):
            pending += [(middle, high), (low, middle)]
    return not pending


def _characteristic(law: Distribution, frequency: float) -> float:
    """|φ| at ``frequency``, in 1/ns."""
    turn = 1j * frequency
    exp = cmath.exp
    waves = sum([count * exp(turn * value) for value, count in zip(law.values, law.counts, strict=True)])
    return abs(waves) / law.size


def _mean_absolute_deviation(law: Distribution) -> float:
    """E|X − mean| in ns."""
    return sum([count * abs(value - law.mean) for value, count in zip(law.values, law.counts, strict=True)]) / law.size
