"""Runs whose truth is known: a run effect common to all cells, a machine state that drifts, independent noise."""

from __future__ import annotations

import math
from random import Random
from typing import Final

from costmodel.statistics.repetitions import Estimate, RunKey, estimate

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
