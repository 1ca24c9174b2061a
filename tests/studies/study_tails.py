"""How often the wall-clock's interval contains the expected wall-clock of the law that the trials came from.

python -m tests.studies.study_tails
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

from costmodel import TrainingRun, mean_interval
from costmodel.projection.wall_clock import limits, run_in_time
from costmodel.simulation import makespan
from costmodel.statistics.distribution import Distribution

S: Final = 1_000_000_000
HOUR_NS: Final = 3600 * S
WORKERS: Final = 512
WAVES: Final = (1, 2, 5, 20, 200)
"""N/W."""
TRIALS: Final = (30, 100, 300, 4000)
REPEATS: Final = 200
EVENTS: Final = 1_500_000
"""Random jobs from which one true wall-clock is found."""


REPLICATES: Final = 8
"""Of a simulated makespan, instead of 30: a third of the time, for a wider error."""


class Law(NamedTuple):
    name: str
    draw: Callable[[Random], float]
    mean: float
    events: int = EVENTS


def slow_share(share: float, slow: float) -> Callable[[Random], float]:
    """1 s or ``slow``, each with a CV of 0.1."""
    return lambda rng: (slow if rng.random() < share else 1.0) * rng.gammavariate(100, 0.01)


def straggling(share: float) -> Callable[[Random], float]:
    """Lognormal, of which a share takes 30 times as long."""
    return lambda rng: rng.lognormvariate(0, 0.5) * (30 if rng.random() < share else 1)


LAWS: Final = (
    Law("gamma, CV 0.3", lambda rng: rng.gammavariate(1 / 0.09, 0.09), 1.0),
    Law("lognormal, sigma 0.5", lambda rng: rng.lognormvariate(0, 0.5), math.exp(0.125)),
    Law("lognormal, sigma 1", lambda rng: rng.lognormvariate(0, 1), math.exp(0.5)),
    Law("Pareto, index 2.5", lambda rng: rng.paretovariate(2.5), 2.5 / 1.5, 4 * EVENTS),
    Law("90 % 1 s, 10 % 11.4 s", slow_share(0.1, 11.4), 0.9 + 1.14),
    Law("98 % 1 s, 2 % 21 s", slow_share(0.02, 21), 0.98 + 0.42),
    *(
        Law(f"{share:.1%} x 30", straggling(share), math.exp(0.125) * (1 + 29 * share), 2 * EVENTS)
        for share in (0.001, 0.003, 0.01)
    ),
)


def true_wall_s(law: Law, waves: int) -> float:
    """The mean of simulated makespans, less what their jobs happen to take more or less than expected."""
    rng, jobs = Random(waves), waves * WORKERS
    repeats = max(8, law.events // jobs)
    total = 0.0
    for _ in range(repeats):
        drawn = [law.draw(rng) for _ in range(jobs)]
        total += makespan.list_makespan(drawn, WORKERS) - (
            sum(drawn) / WORKERS - waves * law.mean if waves > 1 else 0.0
        )
    return total / repeats


class Coverage(NamedTuple):
    """What became of the intervals of one law, number of trials and N/W."""

    two_sided: int  # intervals with both limits
    held: int  # of those, how many hold the truth
    one_sided: int  # "at least"
    below: int  # of those, how many limits are not above the truth
    width: float  # of the intervals with both limits: the median of upper over true, 0 without any

    @property
    def good(self) -> bool:
        """Whether both kinds keep what they promise, as far as there are enough of them to tell."""
        two = self.two_sided < 20 or self.held >= 0.9 * self.two_sided
        return two and (self.one_sided < 20 or self.below >= 0.95 * self.one_sided)


def coverage(law: Law, trials: int, waves: int, truth_s: float, repeats: int = REPEATS) -> Coverage:
    """Seeded: the same trials for every ``waves``."""
    rng = Random(trials)
    training_run = TrainingRun(trajectories=waves * WORKERS, workers=WORKERS)
    two = held = one = below = 0
    highs = []
    for _ in range(repeats):
        sample = [round(law.draw(rng) * S) for _ in range(trials)]
        run = run_in_time(Distribution.of(sample), training_run)
        ends, _ = limits(run, training_run, mean_interval(sample).times(training_run.trajectories / HOUR_NS))
        reached = ends.low * 3600 <= truth_s
        if ends.high is None:
            one, below = one + 1, below + reached
        else:
            two, held = two + 1, held + (reached and truth_s <= ends.high * 3600)
            highs.append(ends.high * 3600 / truth_s)
    return Coverage(two, held, one, below, sorted(highs)[len(highs) // 2] if highs else 0.0)


def main() -> str:
    makespan.MAX_REPLICATES = REPLICATES
    lines = [
        f"Does the wall-clock's 95 % interval hold the expected one? {WORKERS} workers, {REPEATS} samples of K trials.",
        "both: the share of samples whose interval has two limits, how often those hold the truth, and their median",
        "upper limit over it. at least: how often the others' lower limit is not above it. Wanted: 0.90 of both, 0.95",
        f"of at least. Simulated makespans (N/W 2 and 5) have {REPLICATES} replicates here.",
        "",
        f"{'law':22} {'K':>4} {'N/W':>4} {'true s':>8} {'both':>6} {'hold':>6} {'upper':>6}  at least",
    ]
    bad = 0
    for law in LAWS:
        for waves in WAVES:
            truth_s = true_wall_s(law, waves)
            for trials in TRIALS:
                found = coverage(law, trials, waves, truth_s)
                hold = f"{found.held / found.two_sided:6.3f} {found.width:6.2f}" if found.two_sided else f"{'':13}"
                least = f"{found.below / found.one_sided:9.3f}" if found.one_sided else ""
                bad += not found.good
                lines.append(
                    f"{law.name:22} {trials:4} {waves:4} {truth_s:8.2f} "
                    f"{found.two_sided / REPEATS:6.2f} {hold} {least}{'' if found.good else '  !'}".rstrip()
                )
                print(lines[-1], file=sys.stderr, flush=True)
    lines += ["", f"{bad} of {len(LAWS) * len(WAVES) * len(TRIALS)} below what is wanted."]
    return "\n".join(lines)


if __name__ == "__main__":
    print(main())
