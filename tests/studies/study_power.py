"""How often ``taxtui compare`` finds +20 %, how often it errs, what would narrow its intervals, and the best test.

python -m tests.studies.study_power [ROUNDS]
The first table asks ``compare``: one cell, 30 lognormal trials (sigma .3) a repetition. The second is about checks of
many cells with ``--fail-above``: half of the variance between repetitions is common to all cells.
The third is a bound: no unbiased two-sided test of normal means is better than the normal test if the sd is known,
and Student's if not (E. L. Lehmann and J. P. Romano, Testing Statistical Hypotheses, 2005, 4.4 and 5.3).
The fourth compares what could narrow an interval at three repetitions a side: a known sd, an sd shrunk to the assumed
6 % (weight of 2 or 4), and a control of 1 or 4 cells that correlate .9. The fifth has real repetitions.
"""

from __future__ import annotations

import math
import sys
from random import Random
from statistics import NormalDist, fmean, variance

from costmodel.statistics.intervals import student_t
from tests.support.compared import metrics, noisy_checks, noisy_rates, rates, repetition_pairs
from tests.support.cost_model.repeated import AA

ROUNDS = 300
TRIALS, SIGMA, ASSUMED_SD = 30, 0.3, 0.06
REPETITIONS = 3


def best_power(
    repetitions: int, sd: float, *, sd_known: bool, trials: int | None = TRIALS, slower: float = 1.2
) -> float:
    """Return how often the best two-sided test at 5 % finds ``slower``; ``trials`` None: without limit."""
    within = SIGMA**2 / trials if trials else 0.0
    away = math.log(slower) / math.sqrt((sd**2 + within) * 2 / repetitions)
    normal = NormalDist().cdf
    if sd_known:
        return normal(away - 1.96) + normal(-away - 1.96)
    freedom = 2 * repetitions - 2
    quantile = student_t(freedom)
    found = total = 0.0
    for step in range(1, 4_000):  # over the estimated sd, relative to the true sd: a chi distribution
        seen = step / 1_000
        weight = seen ** (freedom - 1) * math.exp(-freedom * seen**2 / 2)
        found += weight * (normal(away - quantile * seen) + normal(-away - quantile * seen))
        total += weight
    return found / total


def decided(before: list[float], after: list[float], sd: float, within: float) -> dict[str, bool]:
    """Return whether two sides differ, by each source of the variance between repetitions."""
    difference, freedom = abs(fmean(before) - fmean(after)), 2 * REPETITIONS - 2
    seen = max((variance(before) + variance(after)) / 2, within)
    known = sd**2 + within
    ways = {"as it is": (seen, student_t(freedom)), "sd known": (known, 1.96)}
    for weight in (2, 4):
        shrunk = (weight * (ASSUMED_SD**2 + within) + freedom * seen) / (weight + freedom)
        ways[f"shrunk, {weight} df"] = shrunk, student_t(freedom + weight)
    return {
        name: difference > quantile * math.sqrt(2 * square / REPETITIONS) for name, (square, quantile) in ways.items()
    }


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
    print("taxtui compare, 30 trials of sigma .3 a repetition:     A/A   +20 %   needs for 20 %")
    for sd in (0.0, 0.03, 0.06, 0.10):
        for repetitions in (1, 3, 4, 5, 6, 8):
            equal, needs = noisy_rates(rounds, repetitions, sd, 1.0, limit=0.20)
            slower, _ = noisy_rates(rounds, repetitions, sd, 1.2)
            what = f"sd {sd:.0%}, {repetitions} and {repetitions} repetitions"
            print(f"{what:52} {equal:7.3f} {slower:7.3f} {needs:16.0f}", flush=True)
    print("\n--fail-above 0, default metrics:      any worse   exit 5   exit 5 where one cell is 20 % slower")
    for cells in (1, 13):
        for repetitions in (1, 3, 5, 8):
            checks = rounds // 3 if cells == 1 else rounds * 2 // 15
            equal, slower = (noisy_checks(checks, repetitions, 0.06, change, cells) for change in (1.0, 1.2))
            what = f"{cells} cells, sd 6%, {repetitions} and {repetitions}"
            print(f"{what:36} {equal.any_worse:11.3f} {equal.regressed:8.3f} {slower.regressed:8.3f}", flush=True)
    print("\nbest test at 5 %, sd 6 %, +20 %:     30 trials, sd known   30 trials   any trials, sd known   any trials")
    for repetitions in (3, 4, 5, 6, 8):
        shares = [
            best_power(repetitions, 0.06, sd_known=known, trials=trials)
            for trials in (TRIALS, None)
            for known in (True, False)
        ]
        columns = "".join(f"{share:{width}.3f}" for share, width in zip(shares, (20, 12, 23, 13), strict=True))
        print(f"{f'{repetitions} and {repetitions} repetitions':36} {columns}")
    names = list(narrowed(0.0, 1.0, 1))
    print("\n3 and 3 repetitions, A/A | +20 %:      " + "  ".join(f"{name:>14}" for name in names))
    for sd in (0.0, 0.03, 0.06, 0.10, 0.20):
        equal, slower = narrowed(sd, 1.0, 10 * rounds), narrowed(sd, 1.2, 10 * rounds)
        shares = "  ".join(f"{equal[name]:6.3f} | {slower[name]:.3f}" for name in names)
        print(f"sd {sd:<33.0%} {shares}")
    print("\naa.msgpack, +20 %, --fail-above 10%:   exit 5    worse")
    for repetitions in (1, 2, 3):
        found = rates(repetition_pairs(AA, repetitions, planted=True), metrics(0.10, "mean:trajectory"))
        print(f"{f'{repetitions} and {repetitions} repetitions':36} {found.regressed:8.3f} {found.worse:8.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
