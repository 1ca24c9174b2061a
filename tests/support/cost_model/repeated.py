"""Repetitions: those of scenarios/aa.toml taken apart, and simulated ones whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from costmodel import DIFFERS, Estimate, Pool, RecordedTrial, RunKey, pools, read_recording
from costmodel.statistics.repetitions import assumed, estimate, interval
from costmodel.statistics.verdict import judge

AA: Final = Path(__file__).parents[3] / "recordings" / "aa.msgpack"
PLANTED: Final = {"local": ("local-5", "local-20"), "docker": ("docker-20",)}


class Rates(NamedTuple):
    """Shares."""

    falsely_different: float  # of pairs of repetitions, cell by cell
    inside: float  # means of one repetition in the interval of another
    found_20_inside: float  # of single repetitions
    found_5_inside_all: bool  # in all repetitions together, on local


def held(pool: Pool, repetitions: tuple[int, ...]) -> Estimate:
    """What a success held its worker for, in these repetitions."""
    return estimated_trials([trial for trial in pool.trials if trial.run.repetition in repetitions])


def estimated_trials(trials: Sequence[RecordedTrial]) -> Estimate:
    origins = [(trial.run, trial.block) for trial in trials]
    return estimate([trial.measures.held_ns for trial in trials], [int(trial.ok) for trial in trials], origins)


def rates(path: Path) -> Rates:
    """What the acceptance asks of the recording."""
    cells = pools([read_recording(path)])
    runs = sorted({trial.run.repetition for pool in cells for trial in pool.trials})
    verdicts, inside = [], []
    for pool in cells:
        assume = assumed(pool.identity.substrate)
        for one, other in permutations(runs, 2):
            first, second = held(pool, (one,)), held(pool, (other,))
            found = interval(first, assume)
            if found.low is not None and found.high is not None:
                inside.append(found.low <= second.value <= found.high)
            if one < other:
                verdicts.append(judge(first, second, assume).verdict.kind == DIFFERS)
    by_tier = {(pool.identity.substrate, pool.identity.tier): pool for pool in cells}
    slow, plain = by_tier["local", "local-5"], by_tier["local", "sleep-0"]
    twenty_inside = [
        found
        for substrate, tiers in PLANTED.items()
        for found in _inside(by_tier[substrate, tiers[-1]], by_tier[substrate, "sleep-0"], runs)
    ]
    whole = judge(held(slow, tuple(runs)), held(plain, tuple(runs)), assumed("local")).verdict.kind == DIFFERS
    return Rates(
        sum(verdicts) / len(verdicts), sum(inside) / len(inside), sum(twenty_inside) / len(twenty_inside), whole
    )


def _inside(slow: Pool, plain: Pool, runs: list[int]) -> list[bool]:
    """Whether each repetition alone tells the two apart."""
    assume = assumed(plain.identity.substrate)
    return [judge(held(slow, (run,)), held(plain, (run,)), assume).verdict.kind == DIFFERS for run in runs]


# -- simulated: a run effect common to all cells, a machine state that drifts, independent noise -----------------------

NEIGHBOURS: Final = 0.61
"""How residuals of neighbouring trials of a run correlate; what the shipped recordings showed."""
GONE_AFTER: Final = 100
"""Trials after which next to nothing of that is left."""
CELLS: Final = 20
"""Of a run, whose trials alternate, as in the shipped recordings; the four here are among them."""
SPREAD: Final = 0.10
"""Of a cell's trials within a run, relative to their mean."""
TRUTH: Final = {"a": 1.0, "b": 1.0, "slower by 5 %": 1.05, "slower by 20 %": 1.2}
"""Cell → its mean."""


def measured(rng: Random, runs: int, run_sd: float, trials: int = 100) -> dict[str, list[list[float]]]:
    """Cell → the trials of each run, in time order; blocks of the cells alternate in random order."""
    found: dict[str, list[list[float]]] = {cell: [] for cell in TRUTH}
    kept = math.exp(-3 / GONE_AFTER * CELLS / len(TRUTH))  # of the state until a trial of one of these cells
    for _ in range(runs):
        effect = math.exp(rng.gauss(0, run_sd))
        state = rng.gauss(0, 1)
        own: dict[str, list[float]] = {cell: [] for cell in TRUTH}
        for _ in range(trials):
            for cell in rng.sample(list(TRUTH), len(TRUTH)):
                state = kept * state + math.sqrt(1 - kept * kept) * rng.gauss(0, 1)
                residual = math.sqrt(NEIGHBOURS) * state + math.sqrt(1 - NEIGHBOURS) * rng.gauss(0, 1)
                own[cell].append(TRUTH[cell] * effect * max(0.1, 1 + SPREAD * residual))
        for cell, values in own.items():
            found[cell].append(values)
    return found


def estimated(runs: list[list[float]], name: str = "r") -> Estimate:
    """One cell's mean, by run."""
    origins = [(RunKey(name, number), block) for number, run in enumerate(runs) for block in range(len(run))]
    values = [value for run in runs for value in run]
    return estimate(values, [1] * len(values), origins)
