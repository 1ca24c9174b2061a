"""Distributions: of job durations as they were seen, and of a sum of lognormal pauses.

Makespan formulas and simulations draw from the first. The model's time in a trajectory is the second, on a grid that
includes the tail: the discrete Fourier transform of a sum of n pauses is the n-th power of the transform of a pause.
Rounding to the grid keeps the mean of a pause (local moment matching, Gerber 1982). The tail is complete down to one in
ten million, where a moment-matched lognormal (Fenton 1960) is up to a third too short.
"""

from __future__ import annotations

import cmath
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import add, mul, sub
from statistics import NormalDist
from typing import Final, NamedTuple

from costmodel.errors import TrainingRunError


class Distribution:
    """Distinct durations (int ns, ascending) with the number of times each was seen; immutable by convention."""

    __slots__ = ("counts", "cumulative", "mean", "sd", "second_moment", "size", "total", "trials", "values")

    def __init__(self, weights: Mapping[int, int], trials: int | None = None) -> None:
        """``weights`` by duration; ``trials``: independent trials behind them, by default the total weight.

        Raises:
            TrainingRunError: there is no duration, or one is negative.
        """
        self.values = sorted(value for value, weight in weights.items() if weight)
        if not self.values or self.values[0] < 0:
            raise TrainingRunError("a law needs at least one duration, and none below 0")
        self.counts = [weights[value] for value in self.values]
        self.cumulative = list(accumulate(self.counts))
        self.size = self.cumulative[-1]
        self.trials = self.size if trials is None else trials
        self.total = sum(value * count for value, count in zip(self.values, self.counts, strict=True))
        squares = sum(value * value * count for value, count in zip(self.values, self.counts, strict=True))
        self.mean = self.total / self.size
        self.second_moment = squares / self.size
        self.sd = math.sqrt((self.size * squares - self.total**2) / self.size**2)  # int difference: no cancellation

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Distribution):
            return NotImplemented
        return self.trials == other.trials and self.values == other.values and self.counts == other.counts

    def __hash__(self) -> int:
        return hash((self.trials, self.size, self.total, self.second_moment))

    @classmethod
    def of(cls, sample: Iterable[float]) -> Distribution:
        """Count the durations of a sample, rounded to whole ns. Raises ``TrainingRunError`` as the constructor."""
        return cls(Counter(map(round, sample)))

    def scaled(self, numerator: int, denominator: int) -> Distribution:
        """Multiply each duration by ``numerator / denominator``, rounded to whole ns."""
        weights: Counter[int] = Counter()
        for value, count in zip(self.values, self.counts, strict=True):
            weights[(2 * value * numerator + denominator) // (2 * denominator)] += count
        return Distribution(weights, self.trials)

    def quantile(self, share: float) -> int:
        """Return the smallest duration that more than ``share`` of the jobs do not exceed; ``share`` is below 1."""
        return self.values[bisect_right(self.cumulative, share * self.size)]


CELLS: Final = 1 << 13
WHOLE: Final = 1 << 26
"""Total weight of the strata of a distribution."""
BODY: Final = 32
"""Strata of equal weight; the last is divided again, so that the tail has the resolution of the body."""
TAIL_OCTAVES: Final = 19
APART: Final = 1.25
"""Ratio of numbers of pauses with a computed distribution of their sum."""
_UNSEEN: Final = 1e-9
ROOT: Final = math.sqrt(2)


class Stratum(NamedTuple):
    """A part of a distribution: its weight in ``WHOLE``, and its mean in units of the median pause."""

    weight: int
    mean: float


@lru_cache(maxsize=1024)
def strata_of_sum(pauses: int, sigma: float, per_octave: int) -> tuple[Stratum, ...]:
    """Return ascending strata of a sum of lognormal pauses with median 1; the mean of the sum is exact."""
    if not pauses or not sigma:
        return (Stratum(WHOLE, float(pauses)),)
    weights = _sum_on_grid(pauses, sigma)
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
        strata.append(Stratum(edge - below, moment / wanted))
        below = edge
    mean = math.fsum(stratum.weight * stratum.mean for stratum in strata) / WHOLE
    exact = pauses * math.exp(sigma**2 / 2)
    return tuple(stratum._replace(mean=stratum.mean * exact / mean) for stratum in strata)


def strata_of_sums(numbers: Iterable[int], sigma: float, per_octave: int) -> dict[int, list[Stratum]]:
    """Return ``strata_of_sum`` for each number of pauses, all with the same weights.

    Of many numbers a few are computed, ``APART`` of each other. Means between two are interpolated linearly, which
    keeps the mean of the sum exact.
    """
    wanted = sorted(set(numbers))
    computed = wanted[:1]
    while computed and computed[-1] < wanted[-1]:
        computed.append(min(wanted[-1], max(computed[-1] + 1, int(computed[-1] * APART))))
    computed = min(computed, wanted, key=len)
    laws = {number: strata_of_sum(number, sigma, per_octave) for number in computed if number}
    weights = [stratum.weight for stratum in next(iter(laws.values()), strata_of_sum(0, sigma, per_octave))]
    laws[0] = tuple(Stratum(weight, 0.0) for weight in weights)
    sums: dict[int, list[Stratum]] = {}
    for number in wanted:
        upper = min(pauses for pauses in laws if pauses >= number)
        lower = max(pauses for pauses in laws if pauses <= number)
        share = (number - lower) / (upper - lower) if upper > lower else 0.0
        pairs = zip(laws[lower], laws[upper], strict=True)
        sums[number] = [Stratum(low.weight, low.mean + share * (high.mean - low.mean)) for low, high in pairs]
    return sums


@lru_cache(maxsize=256)
def _sum_on_grid(pauses: int, sigma: float) -> list[float]:
    """Return the probability of each multiple of a cell's width."""
    longest = math.exp(sigma * -NormalDist().inv_cdf(_UNSEEN))
    mean = math.exp(sigma**2 / 2)
    sd = min(mean * math.sqrt(math.expm1(sigma**2)), longest)
    cell = (pauses * mean + longest + 8 * sd * math.sqrt(pauses)) / CELLS
    transform = _fourier([complex(value) for value in _one_on_grid(cell, sigma)])
    powers = [value**pauses for value in transform]
    back = _fourier([value.conjugate() for value in powers])  # the inverse is the transform of the conjugate
    return [max(0.0, value.real / CELLS) for value in back]


def _one_on_grid(cell: float, sigma: float) -> list[float]:
    """Return a pause on the grid; each share goes to two neighbouring points, so that the mean stays."""
    mean = math.exp(sigma**2 / 2)
    weights = [0.0] * CELLS
    log, erf = math.log, math.erf
    below_share = below_part = 0.0  # P(X < x) and E[X; X < x]
    for index in range(CELLS - 1):
        where = log((index + 1) * cell) / sigma
        share = 0.5 * (1.0 + erf(where / ROOT))
        part = mean * (0.5 * (1.0 + erf((where - sigma) / ROOT)))
        inside, moment = share - below_share, (part - below_part) / cell
        upper = moment - index * inside
        upper = 0.0 if upper < 0.0 else inside if upper > inside else upper
        weights[index] += inside - upper
        weights[index + 1] += upper
        below_share, below_part = share, part
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
