"""Recordings of repetitions that differ by a known amount, and the attribution of a run in steps to its causes."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

from costmodel import Precision, Recording, Think, TrainingRun, load, project
from costmodel.projection.row import Share
from tests.support.asking import present
from tests.support.cost_model.costmodel_files import S, cell, trial, write

AMOUNTS: Final = ("run", "sandbox", "create", "dispatch", "failures")


def recorded(folder: Path, seed: int, repetitions: int, sd: float, trials: int = 180) -> Recording:
    """So many ``trials`` of five commands in all; one in twelve fails after two. A repetition has its own factor."""
    rng = Random(f"{seed} {repetitions} {sd}")
    events = []
    for repetition in range(repetitions):
        effect = rng.lognormvariate(-sd * sd / 2, sd) if sd else 1.0
        for number in range(repetition * trials // repetitions, (repetition + 1) * trials // repetitions):
            failed = rng.random() < 0.08
            took = [round(effect * rng.lognormvariate(0, 0.6) * S) for _ in range(2 if failed else 5)]
            create = round(effect * rng.lognormvariate(0.5, 0.5) * S)
            runs, outcome = [ns * 3 // 4 for ns in took], "failed" if failed else "ok"
            events.append(
                trial(
                    number,
                    create=create,
                    actions=took,
                    runs=runs,
                    outcome=outcome,
                    cleanup=S,
                    repetition=repetition,
                )
            )
    path = write(folder / f"{seed}-{repetitions}-{sd}.msgpack", events, cell(actions=5), run_id=f"{seed}")
    recording = load(path)
    path.unlink()
    assert isinstance(recording, Recording)
    return recording


def attributed(recording: Recording, seed: int = 0, effort: float = 0.02) -> dict[str, Share]:
    """The attribution of 40 steps of 64 rollouts."""
    training_run = TrainingRun(
        trajectories=2_560,
        workers=64,
        prompts=16,
        group_size=4,
        train_s=5,
        think=Think(2 * S, 0.8),
        precision=Precision(seed=seed),
    )
    (row,) = project([recording], training_run, effort=effort)
    causes = {
        name: share for name, share in present(row.attribution).causes.items() if share is not None and name in AMOUNTS
    }
    return {"run": present(row.attribution).run, "sandbox": present(row.attribution).sandbox, **causes}


def two_sided(share: Share, unit: str) -> bool:
    """Whether the interval has both limits."""
    return getattr(share, unit).high is not None


def holds(share: Share, truth: Share, unit: str) -> bool:
    """Whether the interval of ``share`` contains the value of ``truth``; a missing limit excludes nothing."""
    interval, value = getattr(share, unit), getattr(truth, unit).value
    return (interval.low is None or interval.low <= value) and (interval.high is None or value <= interval.high)
