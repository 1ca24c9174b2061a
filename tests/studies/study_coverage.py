"""How often the 95 % interval of a mean contains it: seeded simulation, Hall's interval beside Student's.

python -m tests.studies.study_coverage
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from random import Random

from costmodel import mean_interval
from costmodel.statistics.intervals import student_t

TRIALS = (30, 100, 300)
REPEATS = 2_000


LAWS: list[tuple[str, Callable[[Random], float], float]] = [
    ("gamma, CV 0.3", lambda rng: rng.gammavariate(1 / 0.09, 0.09), 1.0),
    ("lognormal, CV 1.3", lambda rng: rng.lognormvariate(0, math.sqrt(math.log(2.69))), math.sqrt(2.69)),
    ("Pareto, index 2.5", lambda rng: rng.paretovariate(2.5), 2.5 / 1.5),
    ("1 % event of 30 times", lambda rng: 30.0 if rng.random() < 0.01 else rng.gauss(1, 0.05), 0.99 + 0.3),
]


def covered(draw: Callable[[Random], float], mean: float, size: int) -> tuple[float, float, float]:
    """Shares of repeats in which Hall's, Student's and the clustered interval (10 blocks) hold the mean."""
    rng = Random(size)
    held = [0, 0, 0]
    for _ in range(REPEATS):
        sample = [draw(rng) for _ in range(size)]
        found = mean_interval(sample)
        half = student_t(size - 1) * statistics.stdev(sample) / math.sqrt(size)
        shifts = [rng.gauss(0, 0.2) for _ in range(10)]
        clusters = [i * 10 // size for i in range(size)]
        shifted = mean_interval([x + shifts[c] for x, c in zip(sample, clusters, strict=True)], clusters)
        held[0] += found.low <= mean <= found.high
        held[1] += abs(found.value - mean) <= half
        held[2] += shifted.low <= mean <= shifted.high
    return held[0] / REPEATS, held[1] / REPEATS, held[2] / REPEATS


def main() -> str:
    lines = [
        f"Share of {REPEATS:,} samples whose 95 % interval contains the mean (standard error 0.005 at 0.95)",
        "",
        f"{'law':24} {'trials':>6} {'Hall':>7} {'Student':>8} {'clustered*':>11}",
    ]
    for name, draw, mean in LAWS:
        for size in TRIALS:
            hall, student, blocks = covered(draw, mean, size)
            lines.append(f"{name:24} {size:6} {hall:7.3f} {student:8.3f} {blocks:11.3f}")
    lines += ["", "* the same trials in 10 blocks, each of which shifts all of its trials by a normal amount of sd 0.2"]
    return "\n".join(lines)


if __name__ == "__main__":
    print(main())
