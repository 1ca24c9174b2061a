"""How often ``taxtui compare`` finds +20 %, how often it errs, and what would narrow its intervals.

python -m tests.studies.study_power [ROUNDS]

The first table asks ``compare``: one cell, 30 lognormal trials (sigma .3) a repetition. The second one draws means of
repetitions alone and compares what could narrow an interval at three repetitions a side: an sd between repetitions
that is known, one that is shrunk to the assumed 6 % with the weight of 2 or 4 degrees of freedom, and a control of 1
or 4 cells whose repetitions correlate .9 with those of the cell.
"""

from __future__ import annotations

import math
import sys
from random import Random
from statistics import fmean, variance

from costmodel.statistics.intervals import student_t
from tests.support.compared import noisy_rates

ROUNDS = 300
TRIALS, SIGMA, ASSUMED_SD = 30, 0.3, 0.06
REPETITIONS = 3


def decided(one: list[float], other: list[float], sd: float, within: float) -> dict[str, bool]:
    """Whether two sides differ, by each way to know the variance between repetitions."""
    apart, freedom = abs(fmean(one) - fmean(other)), 2 * REPETITIONS - 2
    seen = max((variance(one) + variance(other)) / 2, within)
    known = sd**2 + within
    ways = {"as it is": (seen, student_t(freedom)), "sd known": (known, 1.96)}
    for weight in (2, 4):
        shrunk = (weight * (ASSUMED_SD**2 + within) + freedom * seen) / (weight + freedom)
        ways[f"shrunk, {weight} df"] = shrunk, student_t(freedom + weight)
    return {name: apart > quantile * math.sqrt(2 * square / REPETITIONS) for name, (square, quantile) in ways.items()}


def narrowed(sd: float, slower: float, rounds: int) -> dict[str, float]:
    """How often each way says that two sides differ."""
    within, counts = SIGMA**2 / TRIALS, dict[str, int]()
    for seed in range(rounds):
        rng = Random(f"{sd} {seed}")
        effects = [[rng.gauss(0, sd) for _ in range(REPETITIONS)] for _ in range(2)]
        sides = [
            [shift + effect + rng.gauss(0, math.sqrt(within)) for effect in side]
            for shift, side in zip((0.0, math.log(slower)), effects, strict=True)
        ]
        results = decided(*sides, sd, within)
        for cells in (1, 4):
            noise = math.sqrt(within / cells)
            controlled = [
                [
                    value - 0.9 * effect - math.sqrt(1 - 0.9**2) * rng.gauss(0, sd) - rng.gauss(0, noise)
                    for value, effect in zip(side, own, strict=True)
                ]
                for side, own in zip(sides, effects, strict=True)
            ]
            results[f"control, {cells}"] = decided(*controlled, sd, within * (1 + 1 / cells))["as it is"]
        for name, different in results.items():
            counts[name] = counts.get(name, 0) + different
    return {name: count / rounds for name, count in counts.items()}


def main(rounds: int) -> None:
    """Print both tables."""
    print("taxtui compare, 30 trials of sigma .3 a repetition:     A/A   +20 %   needs for 20 %")
    for sd in (0.0, 0.03, 0.06, 0.10):
        for repetitions in (1, 3, 4, 5, 6, 8):
            equal, needs = noisy_rates(rounds, repetitions, sd, 1.0, limit=0.20)
            slower, _ = noisy_rates(rounds, repetitions, sd, 1.2)
            what = f"sd {sd:.0%}, {repetitions} and {repetitions} repetitions"
            print(f"{what:52} {equal:7.3f} {slower:7.3f} {needs:16.0f}", flush=True)
    names = list(narrowed(0.0, 1.0, 1))
    print("\n3 and 3 repetitions, A/A | +20 %:      " + "  ".join(f"{name:>14}" for name in names))
    for sd in (0.0, 0.03, 0.06, 0.10, 0.20):
        equal, slower = narrowed(sd, 1.0, 10 * rounds), narrowed(sd, 1.2, 10 * rounds)
        shares = "  ".join(f"{equal[name]:6.3f} | {slower[name]:.3f}" for name in names)
        print(f"sd {sd:<33.0%} {shares}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
