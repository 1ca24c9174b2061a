"""How often an attribution's 95 % intervals hold the truth: repetitions 1, 2, 3, 6 with an sd of 0, 5, 10 % between.

    python -m tests.studies.study_attribution [RECORDINGS]
Each recording has 180 trials in all, drawn from one law, and is attributed with a fraction of the usual effort.
The truth is one recording of 3,000 trials without an effect of repetitions, simulated at length.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Final

from costmodel import Precision, Recording, Share, Think, TrainingRun, load, project
from tests.support.cost_model.costmodel_files import S, cell, trial, write

AMOUNTS: Final = ("run", "sandbox", "create", "dispatch", "failures")
RECORDINGS: Final = 40
REPETITIONS: Final = (1, 2, 3, 6)
SDS: Final = (0.0, 0.05, 0.10)


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
            own = {"create": create, "actions": took, "runs": [ns * 3 // 4 for ns in took], "cleanup": S}
            ended = "failed" if failed else "ok"
            events.append(trial(number, **own, outcome=ended, repetition=repetition))
    path = write(folder / f"{seed}-{repetitions}-{sd}.msgpack", events, cell(actions=5), run_id=f"{seed}")
    recording = load(path)
    path.unlink()
    return recording


def attributed(recording: Recording, seed: int = 0, effort: float = 0.02) -> dict[str, Share]:
    """The attribution of 40 steps of 20 rollouts, which 180 trials bound: 7.4 for each rollout that decides."""
    steps = {"trajectories": 800, "workers": 20, "prompts": 5, "group_size": 4, "train_s": 5}
    asked = TrainingRun(**steps, think=Think(2 * S, 0.8), precision=Precision(seed=seed))
    (row,) = project([recording], asked, effort=effort)
    found = row.attribution
    causes = {name: share for name, share in found.causes.items() if share is not None and name in AMOUNTS}
    return {"run": found.run, "sandbox": found.sandbox, **causes}


def two_sided(share: Share, unit: str) -> bool:
    return getattr(share, unit).high is not None


def holds(share: Share, truth: Share, unit: str) -> bool:
    """Whether the interval of ``share`` contains the value of ``truth``; a missing limit excludes nothing."""
    interval, value = getattr(share, unit), getattr(truth, unit).value
    return (interval.low is None or interval.low <= value) and (interval.high is None or value <= interval.high)


def main(recordings: int) -> None:
    print(f"{recordings} recordings each: share whose interval holds the truth, seconds per step and worker-hours")
    print(f"{'sd':>4} {'repetitions':>11} {'both limits':>11}  " + "  ".join(f"{name:>14}" for name in AMOUNTS))
    with tempfile.TemporaryDirectory() as name:
        truth = attributed(recorded(Path(name), 0, 1, 0.0, trials=3_000), effort=4.0)
        for sd in SDS:
            for repetitions in REPETITIONS:
                results = [
                    attributed(recorded(Path(name), seed, repetitions, sd), seed=seed)
                    for seed in range(1, recordings + 1)
                ]
                shares = [
                    " / ".join(
                        f"{sum(holds(result[amount], truth[amount], unit) for result in results) / recordings:.0%}"
                        for unit in ("step_s", "worker_hours")
                    )
                    for amount in AMOUNTS
                ]
                both = sum(two_sided(result["sandbox"], "step_s") for result in results) / recordings
                print(
                    f"{sd:>4.0%} {repetitions:>11} {both:>11.0%}  " + "  ".join(f"{share:>14}" for share in shares),
                    flush=True,
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RECORDINGS)
