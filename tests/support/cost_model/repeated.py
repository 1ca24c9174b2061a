"""The six repetitions of scenarios/aa.toml, taken apart into recordings of their own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Final, NamedTuple

from costmodel.recording.reader import read_recording
from costmodel.recording.trial import RecordedTrial
from costmodel.statistics.repetitions import Estimate, assumed, estimate, interval
from costmodel.statistics.verdict import DIFFERS, judge
from costmodel.workload.pool import Pool, pools

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
    return _estimated([trial for trial in pool.trials if trial.run.repetition in repetitions])


def everything(pool: Pool) -> Estimate:
    """The same over all runs."""
    return _estimated(pool.trials)


def _estimated(trials: Sequence[RecordedTrial]) -> Estimate:
    origins = [(trial.run, trial.block) for trial in trials]
    return estimate([trial.measures.held_ns for trial in trials], list(map(_ok, trials)), origins)


def _ok(trial: RecordedTrial) -> int:
    return int(trial.ok)


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
