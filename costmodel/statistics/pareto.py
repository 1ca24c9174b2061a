"""The generalised Pareto law of what lies beyond a threshold, with how unsure its shape is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

SHAPES: Final = [number / 40 for number in range(-19, 39, 2)]
"""ξ from −0.475 to 0.925, never 0: below −0.5 likelihood does not behave, from 1 on there is no mean."""
SCALES: Final = [math.exp(number / 10) for number in range(-7, 11)]
"""σ over (1 − ξ) times the mean excess, which is what the mean of the law alone would make it."""
EXACT: Final = 20
"""So many of the highest excesses stand for themselves; the rest stand in at most as many groups, by their means."""


class Excess(NamedTuple):
    """P(X > u + y) = P(X > u) · (1 + ξ·y/σ)^(−1/ξ), ``scale_ns`` being σ."""

    shape: float
    scale_ns: float

    def quantile_ns(self, ratio: float) -> float:
        """What is exceeded 1/``ratio`` times as often as the threshold: σ/ξ · (ratio^ξ − 1)."""
        return self.scale_ns / self.shape * (math.pow(ratio, self.shape) - 1)


def heaviest(excesses_ns: Sequence[float], ratio: float, level: float) -> Excess:
    """The law that lies at the share ``level`` of the posterior, ordered by what is 1/``ratio`` times as rare.

    Balkema and de Haan (1974) and Pickands (1975) have the family. The prior is 1/σ, and in ξ > 0 the penalty of
    Coles and Dixon (Extremes 2, 1999), exp(1 − 1/(1 − ξ)), for which ξ = 1 is impossible. Added up on a fixed grid:
    nothing is drawn. ``excesses_ns`` ascend, and one at least is above 0.
    """
    unit = math.fsum(excesses_ns) / len(excesses_ns)
    points = _grouped([excess / unit for excess in excesses_ns])
    found = []
    for shape in SHAPES:
        penalty = 1 - 1 / (1 - shape) if shape > 0 else 0.0
        for scale in SCALES:
            sigma = scale * (1 - shape)
            steep = shape / sigma
            if 1 + steep * points[-1][0] <= 1e-9:
                continue  # the law ends before the highest that was seen
            logs = sum([count * math.log1p(steep * excess) for excess, count in points])
            fit = penalty - len(excesses_ns) * math.log(sigma) - (1 + 1 / shape) * logs
            one = Excess(shape, sigma * unit)
            found.append((one.quantile_ns(ratio), fit, one))
    best = max(fit for _, fit, _ in found)
    found.sort()
    below = list(accumulate(math.exp(fit - best) for _, fit, _ in found))
    return next(one for (_, _, one), mass in zip(found, below, strict=True) if mass >= level * below[-1])


def _grouped(ascending: list[float]) -> list[tuple[float, int]]:
    """Excesses with how many each stands for."""
    lower, top = ascending[:-EXACT], ascending[-EXACT:]
    size = -(-len(lower) // EXACT) or 1
    groups = [lower[start : start + size] for start in range(0, len(lower), size)]
    return [*((math.fsum(group) / len(group), len(group)) for group in groups), *((excess, 1) for excess in top)]
