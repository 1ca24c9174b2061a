"""The durations that trials are compared by: one name for each, and a trial's values of it in int ns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Final

from costmodel.recording.breakdown import parted
from costmodel.recording.trial import RecordedTrial

PER_ACTION: Final = MappingProxyType[str, Callable[[RecordedTrial], Sequence[int]]](
    {
        "action": lambda trial: trial.durations_ns,
        "run": lambda trial: parted(trial.durations_ns, trial.runs_ns)[0],
        "dispatch": lambda trial: parted(trial.durations_ns, trial.runs_ns, trial.wrappers_ns)[1],
        "wrapper": lambda trial: [ns for ns in trial.wrappers_ns if ns],
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
        "wrapper_total": lambda trial: trial.measures.wrapper_ns or None,
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
        "start_delay": lambda trial: trial.measures.start_delay_ns,
        "response": lambda trial: trial.measures.response_ns,
        "cleanup": lambda trial: trial.measures.cleanup_ns,
    }
)
"""Kind of duration → a trial's value of it; None where it is not known. ``*_total`` tells it from that per action."""

NOT_RECORDED: Final = MappingProxyType[str, Sequence[str]](
    {
        "run": ("run", "dispatch", "dispatch_total", "work", "wrapper", "wrapper_total"),
        "create": ("create", "cold_start", "fresh_episode", "orchestration"),
        "ready": ("ready",),
        "setup": ("setup",),
        "think": ("think", "trajectory", "amortized_per_action"),
        "actions": ("action", "amortized_per_action"),
        "held": ("held", "trajectory", "amortized_per_action", "harness"),
        "verify": ("verify",),
    }
)
"""Quantities that an imported source may lack, each with the kinds of durations that are unknown then."""


def values_of(trial: RecordedTrial, kind: str) -> Sequence[int]:
    """A trial's values, in ns: one per action or one, none where it is unknown. ``kind`` is in one of the tables."""
    if (of_actions := PER_ACTION.get(kind)) is not None:
        return of_actions(trial)
    value = PER_TRIAL[kind](trial)
    return () if value is None else (value,)


def _amortized_ns(trial: RecordedTrial) -> int | None:
    actions = len(trial.durations_ns)
    return round(trial.measures.trajectory_ns / actions) if actions else None
