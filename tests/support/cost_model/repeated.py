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
    by_tier = {(pool.identity.substrate, pool.identity.tier): pool for pool in cells}

    def differs(one: Pool, other: Pool, some: tuple[int, ...], others: tuple[int, ...]) -> bool:
        found = judge(held(one, some), held(other, others), assumed(one.identity.substrate))
        return found.verdict.kind == DIFFERS

    verdicts, inside = [], []
    for pool in cells:
        for one, other in permutations(runs, 2):
            found = interval(held(pool, (one,)), assumed(pool.identity.substrate))
            if found.low is not None and found.high is not None:
                inside.append(found.low <= held(pool, (other,)).value <= found.high)
            if one < other:
                verdicts.append(differs(pool, pool, (one,), (other,)))
    twenty = [
        differs(by_tier[substrate, f"{substrate}-20"], by_tier[substrate, "sleep-0"], (run,), (run,))
        for substrate in ("local", "docker")
        for run in runs
    ]
    every = tuple(runs)
    whole = differs(by_tier["local", "local-5"], by_tier["local", "sleep-0"], every, every)
    return Rates(sum(verdicts) / len(verdicts), sum(inside) / len(inside), sum(twenty) / len(twenty), whole)


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
