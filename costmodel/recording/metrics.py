"""Compared durations by name, with a trial's values in int ns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
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
"""Kind of duration → values of a trial, one per action; all but the first omit unknown runs."""

_MEASURES: Final = (
    "create ready orchestration preload setup work dispatch_total wrapper_total waiting unsplit harness cold_start "
    "fresh_episode trajectory amortized_per_action ready_again queued think held verify suspend resume snapshot "
    "fork build start_delay response cleanup"
)
PER_TRIAL: Final = MappingProxyType[str, Callable[[RecordedTrial], int | None]](
    {
        **{kind: attrgetter(f"measures.{kind}_ns") for kind in _MEASURES.split()},
        "dispatch_total": lambda trial: trial.measures.dispatch_ns,
        "wrapper_total": lambda trial: trial.measures.wrapper_ns or None,
        "amortized_per_action": lambda trial: _amortized_ns(trial),
    }
)
"""Kind of duration → value of a trial, or None. ``*_total`` marks totals of kinds per action."""

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
"""Quantity that an imported source may lack → unknown kinds of durations."""


def values_of(trial: RecordedTrial, kind: str) -> Sequence[int]:
    """Return a trial's values in ns: one per action, one, or none if unknown. ``kind`` is in a table above."""
    if (of_actions := PER_ACTION.get(kind)) is not None:
        return of_actions(trial)
    value = PER_TRIAL[kind](trial)
    return () if value is None else (value,)


def _amortized_ns(trial: RecordedTrial) -> int | None:
    actions = len(trial.durations_ns)
    return round(trial.measures.trajectory_ns / actions) if actions else None
