"""Recordings for comparisons whose truth is known: repetitions of one recording taken apart, and simulated runs."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Final, NamedTuple, cast

from costmodel.analysis.comparison import BETTER, DEFAULT_METRICS, WORSE, Metric, compare, parse_metric
from costmodel.recording import events
from costmodel.recording.breakdown import Measures, Split
from costmodel.recording.reader import RecordedCell, Recording, read_recording
from costmodel.recording.trial import RecordedTrial
from costmodel.statistics.repetitions import RunKey
from tests.support.cost_model.costmodel_files import CELL
from tests.support.cost_model.simulated_runs import measured

ACTIONS: Final = 5
"""Of a simulated trial, which share its time unevenly."""
PLANTED: Final = {("local", "sleep-0"): "local-20", ("docker", "sleep-0"): "docker-20"}
"""Substrate and tier of aa.toml → the tier that takes 20 % longer."""


class Rates(NamedTuple):
    """Shares of many checks with each exit code, and of single comparisons with verdict worse."""

    checks: int
    passed: float
    regressed: float
    too_little: float
    comparisons: int
    worse: float
    any_worse: float  # share of checks

    @property
    def line(self) -> str:
        """As the benchmark prints it."""
        shares = f"{self.passed:8.3f} {self.regressed:8.3f} {self.too_little:8.3f}"
        return f"{self.checks:6} {shares} {self.comparisons:8} {self.worse:8.3f}"


def rates(pairs: Iterator[tuple[Recording, Recording]], metrics: Sequence[Metric]) -> Rates:
    """Compare the first of each pair with the second."""
    results = [compare([before], [after], metrics) for after, before in pairs]
    states = [result.beyond for result in results]
    verdicts = [comparison.verdict for result in results for comparison in result.comparisons]
    passed, regressed, too_little = (states.count(state) / len(states) for state in (False, True, None))
    any_worse = sum(any(row.verdict == WORSE for row in result.comparisons) for result in results) / len(results)
    worse = verdicts.count(WORSE) / len(verdicts)
    return Rates(len(states), passed, regressed, too_little, len(verdicts), worse, any_worse)


def metrics(limit: float, *names: str) -> list[Metric]:
    """The named ones, by default those that are compared by default, with one limit."""
    return [parse_metric(name, limit) for name in names or DEFAULT_METRICS]


# -- real repetitions ------------------------------------------------------------------------------------------------


class Repetitions:
    """One recording of several runs."""

    def __init__(self, path: Path) -> None:
        """Read it."""
        self._recording = read_recording(path)
        self.all = sorted({trial.run.repetition for cell in self._recording.cells for trial in cell.trials})

    def part(self, some: Collection[int], name: str, *, planted: bool | None = None) -> Recording:
        """Some repetitions as a recording of their own.

        ``planted`` None: every cell. False: those alone that have a slower twin; True: the twins, as if they were they.
        """
        found = _recording(name)
        for cell in self._recording.cells:
            identity = cell.identity
            if planted is not None:
                twins = {(place[0], tier if planted else place[1]): place for place, tier in PLANTED.items()}
                place = twins.get((identity.substrate, identity.tier))
                if place is None:
                    continue
                identity = identity._replace(tier=place[1], tier_digest="")
            own = copy.copy(cell)
            own.identity = identity
            own.trials = [trial for trial in cell.trials if trial.run.repetition in some]
            found.cells += [own] if own.trials else []
        return found

    def pairs(self, runs: int, *, planted: bool = False) -> Iterator[tuple[Recording, Recording]]:
        """So many repetitions against as many others, in every way: the same cells, or slower twins against plain."""
        for some in combinations(self.all, runs):
            for others in combinations([run for run in self.all if run not in some], runs):
                kinds = (True, False) if planted else (None, None)
                yield self.part(some, "after", planted=kinds[0]), self.part(others, "before", planted=kinds[1])


# -- simulated runs --------------------------------------------------------------------------------------------------


def simulated(rng: Random, runs: int, run_sd: float, kind: str, name: str, trials: int = 60) -> Recording:
    """A recording of one cell of ``simulated_runs``, whose trials take their time in ``ACTIONS`` uneven parts."""
    return recording_of(rng, measured(rng, runs, run_sd, trials)[kind], name)


def noisy(rng: Random, repetitions: int, sd: float, slower: float, name: str) -> Recording:
    """A recording of one cell: 30 independent lognormal trials (sigma .3) a repetition, each with its own factor."""
    runs = []
    for _ in range(repetitions):
        effect = slower * math.exp(rng.gauss(0, sd))
        runs.append([effect * rng.lognormvariate(0, 0.3) for _ in range(30)])
    return recording_of(rng, runs, name)


def noisy_cells(rng: Random, repetitions: int, sd: float, slower: float, name: str, cells: int) -> Recording:
    """Return ``cells`` such cells, the first ``slower``; half of the variance between repetitions is common to all."""
    common = [rng.gauss(0, sd * math.sqrt(0.5)) for _ in range(repetitions)]
    recording = _recording(name)
    for number in range(cells):
        factor = 1.0 if number else slower
        effects = [factor * math.exp(shared + rng.gauss(0, sd * math.sqrt(0.5))) for shared in common]
        runs = [[effect * rng.lognormvariate(0, 0.3) for _ in range(30)] for effect in effects]
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


def noisy_checks(rounds: int, repetitions: int, sd: float, slower: float, cells: int, limit: float = 0.0) -> Rates:
    """Check pairs of recordings of ``cells``, of which one is ``slower``, by the default metrics."""

    def pairs() -> Iterator[tuple[Recording, Recording]]:
        for seed in range(rounds):
            rng = Random(f"{repetitions} {sd} {cells} {seed}")
            before = noisy_cells(rng, repetitions, sd, 1.0, "before", cells)
            yield noisy_cells(rng, repetitions, sd, slower, "after", cells), before

    return rates(pairs(), metrics(limit))


def simulated_pairs(
    rounds: int, runs: int, run_sd: float, kind: str = "a", trials: int = 60
) -> Iterator[tuple[Recording, Recording]]:
    """A cell of this kind against the plain one, each from as many runs of its own."""
    for seed in range(rounds):
        rng = Random(f"gate:{runs}:{run_sd}:{seed}")
        after = simulated(rng, runs, run_sd, kind, "after", trials)
        yield after, simulated(rng, runs, run_sd, "a", "before", trials)


def _recording(name: str) -> Recording:
    found = Recording(name)
    found.run_id, found.complete = name, True
    return found


_CELL: Final = events.Cell(0, **cast(dict[str, Any], {**CELL, "substrate": "local"}))
