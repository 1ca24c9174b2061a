"""Distribution of the model's time in a trajectory: a sum of lognormal pauses, on a grid that includes the tail.

The discrete Fourier transform of a sum of n pauses is the n-th power of the transform of a pause. Rounding to the grid
keeps the mean of a pause (local moment matching, Gerber 1982). The tail is complete down to one in ten million, where a
moment-matched lognormal (Fenton 1960) is up to a third too short.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from functools import lru_cache
from operator import add, mul, sub
from statistics import NormalDist
from typing import Final, NamedTuple

CELLS: Final = 1 << 13
WHOLE: Final = 1 << 26
"""Total weight of the strata of a distribution."""
BODY: Final = 32
"""Strata of equal weight; the last is divided again, so that the tail has the resolution of the body."""
TAIL_OCTAVES: Final = 19
_UNSEEN: Final = 1e-9
_NORMAL: Final = NormalDist()
_ROOT: Final = math.sqrt(2)


class Stratum(NamedTuple):
    """A part of a distribution: its weight in ``WHOLE``, and its mean in units of the median pause."""

    weight: int
    mean: float


@lru_cache(maxsize=1024)
def strata_of_sum(pauses: int, sigma: float, per_octave: int) -> tuple[Stratum, ...]:
    """Return ascending strata of a sum of lognormal pauses with median 1; the mean of the sum is exact."""
    if not pauses or not sigma:
        return (Stratum(WHOLE, float(pauses)),)
    cell, weights = _sum_on_grid(pauses, sigma)
    mass = math.fsum(weights)
    edges = [WHOLE * part // BODY for part in range(1, BODY)]
    steps = TAIL_OCTAVES * per_octave
    edges += [WHOLE - round(WHOLE / BODY * 2 ** (-step / per_octave)) for step in range(1, steps + 1)] + [WHOLE]
    edges = sorted(set(edges))
    strata: list[Stratum] = []
    index, remaining, below = 0, weights[0] / mass, 0
    for edge in edges:
        wanted = (edge - below) / WHOLE
        moment, missing = 0.0, wanted
        while missing > remaining and index < CELLS - 1:
            moment += remaining * index
            missing -= remaining
            index += 1
            remaining = weights[index] / mass
        moment += missing * index
        remaining -= missing
        strata.append(Stratum(edge - below, moment / wanted * cell))
        below = edge
    mean = math.fsum(stratum.weight * stratum.mean for stratum in strata) / WHOLE
    exact = pauses * math.exp(sigma**2 / 2)
    return tuple(stratum._replace(mean=stratum.mean * exact / mean) for stratum in strata)


@lru_cache(maxsize=256)
def _sum_on_grid(pauses: int, sigma: float) -> tuple[float, list[float]]:
    """Return the width of a cell, and the probability of each multiple of the width."""
    longest = math.exp(sigma * -_NORMAL.inv_cdf(_UNSEEN))
    mean = math.exp(sigma**2 / 2)
    sd = min(mean * math.sqrt(math.expm1(sigma**2)), longest)
    cell = (pauses * mean + longest + 8 * sd * math.sqrt(pauses)) / CELLS
    transform = _fourier([complex(value) for value in _one_on_grid(cell, sigma)])
    powers = [value**pauses for value in transform]
    back = _fourier([value.conjugate() for value in powers])  # the inverse is the transform of the conjugate
    return cell, [max(0.0, value.real / CELLS) for value in back]


def _one_on_grid(cell: float, sigma: float) -> list[float]:
    """Return a pause on the grid; each share goes to two neighbouring points, so that the mean stays."""
    mean = math.exp(sigma**2 / 2)
    weights = [0.0] * CELLS
    log, erf = math.log, math.erf
    below_share = below_part = 0.0  # P(X < x) and E[X; X < x]
    for index in range(CELLS - 1):
        where = log((index + 1) * cell) / sigma
        share = 0.5 * (1.0 + erf(where / _ROOT))
        part = mean * (0.5 * (1.0 + erf((where - sigma) / _ROOT)))
        inside, moment = share - below_share, (part - below_part) / cell
        upper = moment - index * inside
        upper = 0.0 if upper < 0.0 else inside if upper > inside else upper
        weights[index] += inside - upper
        weights[index + 1] += upper
        below_share, below_part = share, part
        if share == 1.0:
            break
    return weights


def _fourier(values: Sequence[complex]) -> list[complex]:
    """Return the discrete Fourier transform of 2^k values (Cooley and Tukey 1965)."""
    if len(values) == 1:
        return list(values)
    even, odd = _fourier(values[::2]), _fourier(values[1::2])
    odd = list(map(mul, odd, _turns(len(values))))
    return [*map(add, even, odd), *map(sub, even, odd)]


@lru_cache
def _turns(count: int) -> list[complex]:
    return [cmath.exp(-2j * math.pi * k / count) for k in range(count // 2)]
