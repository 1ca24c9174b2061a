"""How often an attribution's interval holds what many trials and much simulation say: should be 95 %.

    python -m tests.benchmarks.bench_attribution [RECORDINGS [ATTEMPTS]]

Recordings of 100 trials are drawn from one law; each is attributed with a fraction of the usual effort. The truth is
one recording of 3,000 trials, simulated at length.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final

from costmodel import Demand, Recording, Think, project, read
from costmodel.attribution import replications
from costmodel.statistics.intervals import Interval
from tests.support.costmodel_files import S, cell, trial, write

RECORDINGS, ATTEMPTS = 60, 60_000
TRIALS: Final = 100
ASKED: Final = Demand(trajectories=64_000, workers=64, prompts=16, group_size=4, run_sd=0.0, think=Think(2 * S, 0.8))
SHOWN: Final = ("create", "dispatch", "failures")


def recorded(folder: Path, seed: int, count: int) -> Recording:
    """Trials of five commands, of which one in twelve fails after two."""
    rng = Random(seed)
    trials = []
    for number in range(count):
        failed = rng.random() < 0.08
        took = [round(rng.lognormvariate(0, 0.6) * S) for _ in range(2 if failed else 5)]
        runs, create = [ns * 3 // 4 for ns in took], round(rng.lognormvariate(0.5, 0.5) * S)
        outcome = "failed" if failed else "ok"
        trials.append(trial(number, create=create, actions=took, runs=runs, outcome=outcome, cleanup=S))
    found = read(write(folder / f"{seed}.msgpack", trials, cell(actions=5)))
    assert isinstance(found, Recording)
    return found


def attributed(recording: Recording, seed: int = 0) -> dict[str, Interval]:
    """Seconds per step, and worker-hours, of the run and of some of its causes."""
    (row,) = project([recording], replace(ASKED, seed=seed))
    told = row.attribution
    assert told is not None
    shares = {"run": told.run, "sandbox": told.sandbox, "interaction": told.interaction}
    shares |= {cause: share for cause in SHOWN if (share := told.causes[cause])}
    steps = {f"{name}, s per step": share.step_s for name, share in shares.items()}
    return steps | {f"{name}, worker-hours": share.worker_hours for name, share in shares.items()}


def main(recordings: int, attempts: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        usual = replications.PLAIN, replications.TWINS, replications.MOST_STEPS
        for setting, value in (("ATTEMPTS", 20_000_000), ("PLAIN", (60, 60)), ("TWINS", (4, 4)), ("MOST_STEPS", 60)):
            setattr(replications, setting, value)
        truth = attributed(recorded(folder, 0, 3_000))
        for setting, value in zip(("PLAIN", "TWINS", "MOST_STEPS"), usual, strict=True):
            setattr(replications, setting, value)
        setattr(replications, "ATTEMPTS", attempts)  # noqa: B010 (it is Final to everybody else)
        found = [attributed(recorded(folder, seed, TRIALS), seed) for seed in range(1, recordings + 1)]
    print(f"{recordings} recordings of {TRIALS} trials, {attempts:,} attempts each")
    print(f"{'':26}{'truth':>10}{'inside':>8}{'width':>10}")
    for amount, true in truth.items():
        told = [one[amount] for one in found]
        inside = sum((one.low or 0.0) <= true.value <= (one.high or 0.0) for one in told)
        width = sum((one.high or 0.0) - (one.low or 0.0) for one in told) / recordings
        print(f"{amount:26}{true.value:10.3f}{inside / recordings:8.0%}{width:10.3f}")


if __name__ == "__main__":
    asked = [int(word) for word in sys.argv[1:]]
    main(*asked, *(RECORDINGS, ATTEMPTS)[len(asked) :])
