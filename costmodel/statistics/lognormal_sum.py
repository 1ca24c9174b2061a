"""How long a trajectory thinks in all: the law of a sum of lognormal pauses, exact to its grid, tail included.

The sum of n pauses is the n-fold convolution of one, which the discrete Fourier transform makes the n-th power of one
transform. A pause is put on the grid so that its mean is kept (local moment matching, Gerber 1982). Nothing of a tail
above one in ten million is lost, which a moment-matched lognormal (Fenton 1960) is up to a third short of.
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
"""Weights of the strata of one law add up to this."""
BODY: Final = 32
"""Strata of equal weight; the last of them is divided anew, so that the tail is known as finely as the body."""
TAIL_OCTAVES: Final = 19
_UNSEEN: Final = 1e-9
_NORMAL: Final = NormalDist()
_ROOT: Final = math.sqrt(2)


class Stratum(NamedTuple):
    """A part of a law: its weight in ``WHOLE``, and its mean in units of the median of one pause."""

    weight: int
    mean: float


@lru_cache(maxsize=1024)
def strata_of_sum(pauses: int, sigma: float, per_octave: int) -> tuple[Stratum, ...]:
    """The law of a sum of lognormal pauses with median 1: ascending strata, whose mean is exactly the law's."""
    if not pauses or not sigma:
        return (Stratum(WHOLE, float(pauses)),)
    cell, weights = _sum_on_grid(pauses, sigma)
    mass = math.fsum(weights)
    edges = [WHOLE * part // BODY for part in range(1, BODY)]
    steps = TAIL_OCTAVES * per_octave
    edges += [WHOLE - round(WHOLE / BODY * 2 ** (-step / per_octave)) for step in range(1, steps + 1)] + [WHOLE]
    edges = sorted(set(edges))
    strata: list[Stratum] = []
    index, left, below = 0, weights[0] / mass, 0
    for edge in edges:
        wanted = (edge - below) / WHOLE
        moment, missing = 0.0, wanted
        while missing > left and index < CELLS - 1:
            moment += left * index
            missing -= left
            index += 1
            left = weights[index] / mass
        moment += missing * index
        left -= missing
        strata.append(Stratum(edge - below, moment / wanted * cell))
        below = edge
    mean = math.fsum(one.weight * one.mean for one in strata) / WHOLE
    exact = pauses * math.exp(sigma**2 / 2)
    return tuple(one._replace(mean=one.mean * exact / mean) for one in strata)


@lru_cache(maxsize=256)
def _sum_on_grid(pauses: int, sigma: float) -> tuple[float, list[float]]:
    """The width of a cell, and the probability of each multiple of it."""
    longest = math.exp(sigma * -_NORMAL.inv_cdf(_UNSEEN))
    mean = math.exp(sigma**2 / 2)
    sd = min(mean * math.sqrt(math.expm1(sigma**2)), longest)
    cell = (pauses * mean + longest + 8 * sd * math.sqrt(pauses)) / CELLS
    transform = _fourier([complex(one) for one in _one_on_grid(cell, sigma)])
    powers = [one**pauses for one in transform]
    back = _fourier([one.conjugate() for one in powers])  # the inverse is the transform of the conjugate
    return cell, [max(0.0, one.real / CELLS) for one in back]


def _one_on_grid(cell: float, sigma: float) -> list[float]:
    """One pause, each share of it given to its two neighbours on the grid so that its mean is kept."""
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
    """The discrete Fourier transform of 2^k values (Cooley and Tukey 1965).

    Transforms that are short are made side by side, and joined one by one once they are long: so each list that is gone
    through is long.
    """
    apart, length = len(values), 1
    done = list(values)  # value number k of transform number r of those that are ``apart`` is at k * apart + r
    while apart > length:
        apart, length = apart // 2, length * 2
        lower: list[complex] = []
        upper: list[complex] = []
        for k, turn in enumerate(_turns(length)):
            place = 2 * k * apart
            even, odd = done[place : place + apart], done[place + apart : place + 2 * apart]
            if k:
                odd = [one * turn for one in odd]
            lower += map(add, even, odd)
            upper += map(sub, even, odd)
        done = lower + upper
    transforms = [done[number::apart] for number in range(apart)]
    while apart > 1:
        apart, length = apart // 2, length * 2
        turns = _turns(length)
        joined = []
        for even, odd in zip(transforms[:apart], transforms[apart:], strict=True):
            odd = list(map(mul, odd, turns))
            joined.append([*map(add, even, odd), *map(sub, even, odd)])
        transforms = joined
    return transforms[0]


@lru_cache
def _turns(count: int) -> list[complex]:
    return [cmath.exp(-2j * math.pi * k / count) for k in range(count // 2)]
