"""The suspended time of trajectories whose sums of pauses are drawn, and not each pause."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Final

from costmodel.training.life_cycle import Suspension
from costmodel.training.run import Think

SUSPENSION_DRAWS: Final = 20_000
"""Pauses that are drawn at most for one number of pauses."""
ROOT: Final = math.sqrt(2)


def suspended_parts(
    think: Think, pauses: int, suspension: Suspension, sums: Sequence[int], edges: Sequence[float]
) -> list[tuple[int, int]]:
    """Return the delay and the suspended time that go with each sum of pauses, in ns.

    They are means over simulated trajectories whose sums have the same rank, scaled to the exact mean of one pause.
    """
    if not pauses:
        return [(0, 0)] * len(sums)
    samples = 1 if not think.sigma else max(64, min(2_000, SUSPENSION_DRAWS // pauses))
    rng = Random(pauses)
    drawn = []
    for _ in range(samples):
        each = [think.median_ns * math.exp(think.sigma * rng.gauss(0, 1)) for _ in range(pauses)]
        parts = [suspension.split(pause) for pause in each]
        total = math.fsum(each) or 1.0
        drawn.append((total, math.fsum(delay for delay, _ in parts), math.fsum(part for _, part in parts) / total))
    drawn.sort()
    found = []
    for place, whole in enumerate(sums):
        first = min(samples - 1, int(edges[place] * samples))
        near = drawn[first : max(first + 1, round(edges[place + 1] * samples))]
        found.append(
            (math.fsum(one[1] for one in near) / len(near), whole * math.fsum(one[2] for one in near) / len(near))
        )
    widths = [high - low for low, high in pairwise(edges)]
    exact = _mean_suspension(think, suspension)
    scaled = []
    for column in (0, 1):
        mean = math.fsum(width * one[column] for width, one in zip(widths, found, strict=True))
        scaled.append(pauses * exact[column] / mean if mean else 1.0)
    return [
        (round(delay * scaled[0]), min(whole, round(part * scaled[1])))
        for whole, (delay, part) in zip(sums, found, strict=True)
    ]


def _mean_suspension(think: Think, suspension: Suspension) -> tuple[float, float]:
    """Return the mean delay and the mean suspended time of one pause, from the lognormal's partial expectations."""
    if not think.sigma or not think.median_ns:
        return suspension.split(think.median_ns)

    def above(limit: float) -> tuple[float, float]:  # the chance of a longer pause, and the part of the mean above it
        if limit <= 0:
            return 1.0, think.mean_ns
        z = math.log(limit / think.median_ns) / think.sigma
        return 0.5 * math.erfc(z / ROOT), think.mean_ns * 0.5 * math.erfc((z - think.sigma) / ROOT)

    awake = suspension.after_ns + suspension.suspend_ns
    (chance, part), (late_chance, late) = above(suspension.after_ns), above(awake)
    early = awake * (chance - late_chance) - (part - late)  # pauses that end before the suspension is complete
    return suspension.resume_ns * chance + early, late - awake * late_chance
