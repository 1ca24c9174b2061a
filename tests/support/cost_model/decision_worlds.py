"""Decisions whose truth is known: pairs of places that are equal, and providers whose unmeasured inputs are drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from costmodel import USD, Precision, Recording, Side, Think, TrainingRun, behind, load, load_provider, rows_of
from costmodel.analysis.decision import Decision, Savings, decide_between
from costmodel.analysis.project import cells_of
from costmodel.providers.plausible_ranges import Candidate
from tests.support.cost_model.costmodel_files import S, cell, trial, write

RUN: Final = TrainingRun(
    trajectories=640,
    workers=16,
    prompts=4,
    group_size=4,
    gpus=8,
    gpu_usd_hour=2.0,
    nodes=2,
    pods_per_node=16,
    node_usd_hour=0.5,
    think=Think(S),
    run_sd=0.0,
)
"""40 steps of 16 rollouts."""
ACTIONS: Final = 5


def record(path: Path, rng: Random, sigmas: Sequence[float], times: Sequence[float], trials: int) -> Recording:
    """Cells of ``trials`` each whose commands take lognormal times, interleaved; ``times`` is how slow each cell is."""
    events, number = [], 0
    for _ in range(trials):
        for place, (sigma, slower) in enumerate(zip(sigmas, times, strict=True)):
            taken = [round(slower * 2 * S * math.exp(rng.gauss(0, sigma))) for _ in range(ACTIONS)]
            dispatched = [one + S // 20 for one in taken]
            events.append(trial(number, cell=place, create=S, ready=S // 2, actions=dispatched, runs=taken))
            number += 1
    names = ("docker", "kubernetes")
    cells = [cell(place, substrate=names[place], actions=ACTIONS) for place in range(len(sigmas))]
    source = load(write(path, events, *cells))
    assert isinstance(source, Recording)
    return source


def measured(recording: Recording, substrate: str, training_run: TrainingRun, effort: float = 0.01) -> Side:
    [inputs] = [
        item for item in behind([recording], training_run, None, ()) if item.value.identity.substrate == substrate
    ]
    [row] = rows_of([inputs], effort=effort)
    return Side(row=row, inputs=inputs)


def unmeasured(candidate: Candidate, effort: float = 0.01) -> Side:
    inputs = candidate.at({})
    [row] = rows_of([inputs], effort=effort)
    return Side(row=row, inputs=inputs, candidate=candidate)


def candidate_at(
    recording: Recording, provider: str, training_run: TrainingRun, stated: frozenset[str] = frozenset()
) -> Candidate:
    """The work of the recording at a provider, which has no nodes of ours."""
    asked = replace(training_run, nodes=None, pods_per_node=None, node_usd_hour=None)
    [pool] = cells_of([recording], asked)
    return Candidate(pool, load_provider(provider), asked, None, stated)


class World(NamedTuple):
    decision: Decision
    saving: float

    @property
    def wrong(self) -> bool:
        """Whether the verdict is MOVE or STAY and costs money."""
        return {"move": self.saving <= 0, "stay": self.saving > 0}.get(self.decision.verdict, False)


def equal_pair(folder: Path, seed: int, trials: int, sigma: float, better: float = 1.0, effort: float = 0.05) -> str:
    """The verdict on two places of one law, measured once each; ``better``: the second takes so many times as long."""
    path = folder / f"{seed}-{trials}-{sigma}-{better}.msgpack"
    recording = record(path, Random(f"{seed}"), [sigma, sigma], [1.0, better], trials)
    path.unlink()
    asked = replace(RUN, precision=Precision(seed=seed))
    start, goal = (measured(recording, name, asked) for name in ("docker", "kubernetes"))
    return decide_between(start, goal, effort=effort).verdict


def planted(folder: Path, seed: int, trials: int = 150, effort: float = 0.02) -> World:
    """Daytona with unmeasured inputs that are drawn from their ranges, and nodes at a price that is drawn too."""
    rng = Random(f"planted {seed}")
    path = folder / f"planted-{seed}.msgpack"
    price = math.exp(rng.uniform(math.log(0.01), math.log(300)))
    training_run = replace(RUN, precision=Precision(seed=seed), node_usd_hour=price, failure_rate=0.05)
    sample, law = (record(path, rng, [0.3], [1.0], count) for count in (trials, 4 * trials))
    path.unlink()
    stated = frozenset(name for name in ("create_rate", "failure_rate") if rng.random() < 0.5)
    asked = training_run if "create_rate" not in stated else replace(training_run, create_rate=10.0, create_burst=600)
    provider = "daytona:slowdown=1,dispatch=300ms" if rng.random() < 0.5 else "daytona"
    candidate = candidate_at(sample, provider, asked, stated)
    drawn = {}
    for one in candidate.inputs:
        value = one.best + rng.random() * (one.worst - one.best)
        drawn[one.name] = float(round(value)) if one.name in ("limits", "failure_burst") else value
    found = decide_between(measured(sample, "docker", training_run), unmeasured(candidate), effort=effort)
    true = [measured(law, "docker", training_run), unmeasured(candidate_at(law, provider, asked, stated))]
    return World(found, Savings(true[0], true[1], USD, 0.02, limits=False).at(drawn).value)
