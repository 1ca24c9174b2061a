"""The exact samples behind the tables: every duration of every successful trial of a cell, as columns."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from costmodel.measures import parted
from costmodel.recording import RecordedTrial, Recording, read_recording
from costmodel.samples import Pool, pools

PER_ACTION: Final = MappingProxyType[str, Callable[[RecordedTrial], Sequence[int]]](
    {
        "action": lambda trial: trial.durations_ns,
        "run": lambda trial: parted(trial.durations_ns, trial.runs_ns)[0],
        "dispatch": lambda trial: parted(trial.durations_ns, trial.runs_ns)[1],
    }
)
"""Kind of duration → a trial's values of it, one per action; those whose run is unknown are in the first alone."""

PER_TRIAL: Final = MappingProxyType[str, Callable[[RecordedTrial], int | None]](
    {
        "create": lambda trial: trial.measures.create_ns,
        "ready": lambda trial: trial.measures.ready_ns,
        "orchestration": lambda trial: trial.measures.orchestration_ns,
        "preload": lambda trial: trial.measures.preload_ns,
        "setup": lambda trial: trial.measures.setup_ns,
        "work": lambda trial: trial.measures.work_ns,
        "dispatch_total": lambda trial: trial.measures.dispatch_ns,
        "waiting": lambda trial: trial.measures.waiting_ns,
        "unsplit": lambda trial: trial.measures.unsplit_ns,
        "harness": lambda trial: trial.measures.harness_ns,
        "cold_start": lambda trial: trial.measures.cold_start_ns,
        "fresh_episode": lambda trial: trial.measures.fresh_episode_ns,
        "trajectory": lambda trial: trial.measures.trajectory_ns,
        "amortized_per_action": lambda trial: _amortized_ns(trial),
        "ready_again": lambda trial: trial.measures.ready_again_ns,
        "queued": lambda trial: trial.measures.queued_ns,
        "think": lambda trial: trial.measures.think_ns,
        "held": lambda trial: trial.measures.held_ns,
        "verify": lambda trial: trial.measures.verify_ns,
        "start_delay": lambda trial: trial.start_delay_ns,
        "cleanup": lambda trial: trial.measures.cleanup_ns,
    }
)
"""Kind of duration → a trial's value of it; None where it is not known. ``*_total`` tells it from that per action."""


class Column:
    """One kind of duration in ns: the values of the first successful trial, of the second, and so on."""

    __slots__ = ("sizes", "values")

    def __init__(self) -> None:
        """Begin without a trial."""
        self.values = array("q")
        self.sizes = array("q")  # values per trial: 0 where it is unknown, 1, or one per action

    def add(self, values: Sequence[int]) -> None:
        """The values of one more trial."""
        self.values.extend(values)
        self.sizes.append(len(values))


def column(trials: Iterable[RecordedTrial], name: str) -> Column:
    """One of ``PER_TRIAL`` or ``PER_ACTION`` of trials that succeeded."""
    found = Column()
    if (of_actions := PER_ACTION.get(name)) is not None:
        for trial in trials:
            found.add(of_actions(trial))
        return found
    of_trial = PER_TRIAL[name]
    for trial in trials:
        value = of_trial(trial)
        found.add(() if value is None else (value,))
    return found


def read_samples(paths: Iterable[Path]) -> tuple[list[Pool], list[Recording]]:
    """The cells of all recordings in the order in which they first appear, and the recordings.

    Raises:
        costmodel.errors.RecordingError: not a recording, damaged, of a newer version, or the same run twice.
    """
    recordings = [read_recording(path) for path in paths]
    return pools(recordings), recordings


def _amortized_ns(trial: RecordedTrial) -> int | None:
    actions = len(trial.durations_ns)
    return round(trial.measures.trajectory_ns / actions) if actions else None
