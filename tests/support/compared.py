"""Recordings for comparisons whose truth is known: repetitions of one recording taken apart, and drawn ones."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Final, NamedTuple, cast

from costmodel import WORSE, RecordedTrial, RunKey, compare, events
from costmodel.analysis.comparison import BETTER, DEFAULT_METRICS, Metric, parse_metric
from costmodel.recording.breakdown import Measures, Split
from costmodel.recording.reader import RecordedCell, Recording, read_recording
from tests.support.cost_model.costmodel_files import CELL

ACTIONS: Final = 5
"""Of a simulated trial, which share its time unevenly."""


class Rates(NamedTuple):
    """Shares of many checks that passed, regressed or found anything worse, and of single comparisons that did."""

    passed: float
    regressed: float
    any_worse: float
    worse: float


def rates(
    pairs: Iterator[tuple[Recording, Recording]], metrics: Sequence[Metric], run_sd: float | None = None
) -> Rates:
    """Compare the first of each pair with the second."""
    results = [compare([before], [after], metrics, run_sd) for after, before in pairs]
    states = [result.beyond for result in results]
    worse = [[comparison.verdict == WORSE for comparison in result.comparisons] for result in results]
    passed, regressed = (states.count(state) / len(states) for state in (False, True))
    return Rates(passed, regressed, sum(map(any, worse)) / len(worse), sum(map(sum, worse)) / sum(map(len, worse)))


def metrics(limit: float, *names: str) -> list[Metric]:
    """The named ones, by default those that are compared by default, with one limit."""
    return [parse_metric(name, limit) for name in names or DEFAULT_METRICS]


def repetition_pairs(path: Path, runs: int, *, planted: bool = False) -> Iterator[tuple[Recording, Recording]]:
    """So many repetitions of one recording against as many others, in every way; planted: twins that take + 20 %."""
    whole = read_recording(path)

    def part(some: Collection[int], name: str) -> Recording:
        found = _recording(name)
        for cell in whole.cells:
            own, tier = copy.copy(cell), f"{cell.identity.substrate}-20" if name == "after" else "sleep-0"
            if planted and cell.identity.tier != tier:
                continue
            own.identity = cell.identity._replace(tier="", tier_digest="") if planted else cell.identity
            own.trials = [trial for trial in cell.trials if trial.run.repetition in some]
            found.cells += [own] if own.trials else []
        return found

    every = sorted({trial.run.repetition for cell in whole.cells for trial in cell.trials})
    for some in combinations(every, runs):
        for others in combinations([run for run in every if run not in some], runs):
            yield part(some, "after"), part(others, "before")


def noisy(rng: Random, repetitions: int, sd: float, slower: float, name: str) -> Recording:
    """A recording of one cell: 30 independent lognormal trials (sigma .3) a repetition, each with its own factor."""
    runs = []
    for _ in range(repetitions):
        effect = slower * math.exp(rng.gauss(0, sd))
        runs.append([effect * rng.lognormvariate(0, 0.3) for _ in range(30)])
    return recording_of(rng, runs, name)


def noisy_cells(
    rng: Random, repetitions: int, sd: float, slower: float, name: str, cells: int, sigma: float
) -> Recording:
    """Return ``cells`` such cells, the first ``slower``; half of the variance between repetitions is common to all."""
    common = [rng.gauss(0, sd * math.sqrt(0.5)) for _ in range(repetitions)]
    recording = _recording(name)
    for number in range(cells):
        factor = 1.0 if number else slower
        effects = [factor * math.exp(shared + rng.gauss(0, sd * math.sqrt(0.5))) for shared in common]
        runs = [[effect * rng.lognormvariate(0, sigma) for _ in range(30)] for effect in effects]
        [cell] = recording_of(rng, runs, name).cells
        cell.identity = cell.identity._replace(tier=f"T{number}")
        recording.cells.append(cell)
    return recording


def recording_of(rng: Random, runs: Sequence[Sequence[float]], name: str) -> Recording:
    """A recording of one cell with trials of these durations in seconds, by repetition."""
    cell, trials_of = RecordedCell(_CELL), list[RecordedTrial]()
    for number, values in enumerate(runs):
        for block, value in enumerate(values):
            trial = RecordedTrial(RunKey(name, number), block)
            trial.ok = True
            parts = [rng.lognormvariate(0, 0.1) for _ in range(ACTIONS)]
            trial.durations_ns.extend(round(1e9 * value * part / sum(parts)) for part in parts)
            taken_ns = sum(trial.durations_ns)
            trial.actions = Split(work_ns=taken_ns)
            trial.measures = Measures(work_ns=taken_ns, held_ns=taken_ns)
            trials_of.append(trial)
    cell.trials = trials_of
    recording = _recording(name)
    recording.cells.append(cell)
    return recording


def noisy_rates(rounds: int, repetitions: int, sd: float, slower: float, limit: float = 0.20) -> tuple[float, float]:
    """How often ``noisy`` cells are called worse or better, and the median number of repetitions that it takes."""
    calls, needs = 0, []
    for seed in range(rounds):
        rng = Random(f"{repetitions} {sd} {seed}")
        before, after = noisy(rng, repetitions, sd, 1.0, "before"), noisy(rng, repetitions, sd, slower, "after")
        [comparison] = compare([before], [after], metrics(limit, "mean:trajectory")).comparisons
        calls += comparison.verdict in (WORSE, BETTER)
        needs += [comparison.needs] if comparison.needs is not None else []
    return calls / rounds, median(needs) if needs else math.nan


def noisy_checks(
    rounds: int, repetitions: int, sd: float, slower: float, cells: int = 1, limit: float = 0.0, sigma: float = 0.3
) -> Rates:
    """Check pairs of recordings of ``cells``, of which one is ``slower``, by the default metrics."""

    def pairs() -> Iterator[tuple[Recording, Recording]]:
        for seed in range(rounds):
            rng = Random(f"{repetitions} {sd} {cells} {seed}")
            before, after = (
                noisy_cells(rng, repetitions, sd, factor, name, cells, sigma)
                for factor, name in ((1.0, "before"), (slower, "after"))
            )
            yield after, before

    return rates(pairs(), metrics(limit))


def _recording(name: str) -> Recording:
    found = Recording(name)
    found.run_id, found.complete = name, True
    return found


_CELL: Final = events.Cell(0, **cast(dict[str, Any], {**CELL, "substrate": "local"}))
