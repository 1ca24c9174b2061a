"""How often verdicts and intervals are right where the truth is known, and what the shipped pair of runs says now.

Before: as if every trial were independent and runs did not differ. A run has 20 cells of 100 trials, whose residuals
correlate .61 between neighbours of the run and next to nothing after 100 trials.

python -m tests.studies.study_runs
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from costmodel.statistics.intervals import Interval, difference, mean_interval
from costmodel.statistics.repetitions import Assumed, assumed, interval
from costmodel.statistics.verdict import DIFFERS, judge
from tests.support.cost_model.simulated_runs import TRUTH, estimated, measured

ROUNDS = 300
RECORDINGS = Path(__file__).parents[2] / "recordings"


def apart(delta: Interval) -> bool:
    """Whether an interval says that two differ."""
    assert delta.low is not None
    assert delta.high is not None
    return not delta.low <= 0 <= delta.high


def naive(runs: list[list[float]]) -> Interval:
    """As if all trials were independent."""
    return mean_interval([value for run in runs for value in run])


def across(runs: int, run_sd: float, one: str, other: str, assume: Assumed) -> tuple[float, float]:
    """How often two recordings of ``runs`` each are said to differ in these cells: before, now."""
    before = now = 0
    for seed in range(ROUNDS):
        rng = Random(f"{runs}:{run_sd}:{seed}")
        first, second = measured(rng, runs, run_sd)[one], measured(rng, runs, run_sd)[other]
        before += apart(difference(naive(first), naive(second)))
        now += judge(estimated(first, "r"), estimated(second, "s"), assume).verdict.kind == DIFFERS
    return before / ROUNDS, now / ROUNDS


def inside(runs: int, run_sd: float, one: str, other: str) -> tuple[float, float]:
    """The same for two cells of one recording."""
    before = now = 0
    for seed in range(ROUNDS):
        cells = measured(Random(f"{runs}:{run_sd}:{seed}"), runs, run_sd)
        before += apart(difference(naive(cells[one]), naive(cells[other])))
        now += judge(estimated(cells[one]), estimated(cells[other]), assumed("local")).verdict.kind == DIFFERS
    return before / ROUNDS, now / ROUNDS


def coverage(runs: int, run_sd: float, assume: Assumed) -> tuple[float, float]:
    """How often the interval of cell a holds its mean: before, now."""
    before = now = 0
    for seed in range(ROUNDS):
        own = measured(Random(f"{runs}:{run_sd}:{seed}"), runs, run_sd)["a"]
        for index, found in enumerate((naive(own), interval(estimated(own), assume))):
            assert found.low is not None
            assert found.high is not None
            held = found.low <= TRUTH["a"] <= found.high
            before, now = before + (held and not index), now + (held and index)
    return before / ROUNDS, now / ROUNDS


def main() -> None:
    """Print the tables."""
    usual = assumed("local")
    told = Assumed(0.10, "given", by_user=True)
    print(f"{'':58}  before     now   wanted")
    for run_sd in (0.05, 0.10):
        name = f"run sd {run_sd:.0%}"
        line(f"{name}: one run's interval holds the mean (7 % assumed)", coverage(1, run_sd, usual), "≥ .95")
        line(f"{name}: three runs' interval holds the mean", coverage(3, run_sd, usual), "≥ .95")
        line(f"{name}: A/A, 1 run against 1 (7 % assumed)", across(1, run_sd, "a", "a", usual), "≤ .05")
        if run_sd > usual.sd:
            line(f"{name}: A/A, 1 run against 1, --run-sd 10%", across(1, run_sd, "a", "a", told), "≤ .05")
        line(f"{name}: A/A, 3 runs against 3", across(3, run_sd, "a", "a", usual), "≤ .05")
        line(f"{name}: +20 %, 3 runs against 3", across(3, run_sd, "slower by 20 %", "a", usual), "≥ .90")
        line(f"{name}: +20 %, 4 runs against 4", across(4, run_sd, "slower by 20 %", "a", usual), "≥ .90")
        line(f"{name}: +20 %, 6 runs against 6", across(6, run_sd, "slower by 20 %", "a", usual), "≥ .90")
        line(f"{name}: A/A inside one run", inside(1, run_sd, "b", "a"), "≤ .05")
        line(f"{name}: +5 % inside one run", inside(1, run_sd, "slower by 5 %", "a"), "≥ .90")
        line(f"{name}: A/A inside three runs", inside(3, run_sd, "b", "a"), "≤ .05")
        line(f"{name}: +5 % inside three runs", inside(3, run_sd, "slower by 5 %", "a"), "≥ .90")


def line(what: str, rates: tuple[float, float], wanted: str) -> None:
    """One row."""
    print(f"{what:58}  {rates[0]:6.3f}  {rates[1]:6.3f}   {wanted}")


if __name__ == "__main__":
    main()
