"""Recorded trials, the identity of their cell, and the durations of a trial by name."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from costmodel.recording.breakdown import NO_COMMANDS, UNKNOWN, Measures, Split, parted
from costmodel.recording.causes import DROPPED, KEPT, RETRIED, policy_of
from costmodel.statistics.repetitions import RunKey
from costmodel.training.length import FIXED_LENGTH

_EMPTY: Final = msgspec.field(default_factory=lambda: array("q"))


class CellIdentity(NamedTuple):
    """Identity of a cell across files; trials of equal cells are pooled."""

    substrate: str
    variant: str = ""
    tier: str = ""
    tier_digest: str = ""
    actions: int = 0
    mode: str = ""
    concurrency: int = 0
    arrival: str = ""
    think: str = "0s"
    acquire: str = "create"
    cache: str = "unknown"
    cpu_milli: int = 0
    memory_mib: int = 0
    network: str = ""
    image: str = ""
    environment: str = ""
    substrate_version: str = ""
    length: str = FIXED_LENGTH

    @property
    def cell_id(self) -> str:
        """Eight hex digits, equal across files; unchanged for fixed lengths since before recorded lengths."""
        fields = tuple(self[:-1]) if self.length == FIXED_LENGTH else tuple(self)
        return f"{zlib.crc32(repr(fields).encode()):08x}"

    @property
    def label(self) -> str:
        return f"{self.substrate}:{self.variant}" if self.variant else self.substrate


class RecordedTrial(msgspec.Struct, eq=False, gc=False):
    """A counted trial: a success, a failure or a timeout. Durations are int ns."""

    run: RunKey
    block: int
    start_ns: int = 0
    worker: int = 0  # clock of the instants
    end_ns: int = 0
    freed_ns: int = 0  # after the clean-up: the slot is free
    exposed: float = 0.0  # share of the trial in bad seconds of the measuring process
    ok: bool = False
    failed_in: str = ""  # phase of the failure
    error: str = ""
    cause: str = ""  # as in costmodel.recording.causes; "": no failure
    image_cached: bool | None = None  # whether the image existed at the create request; None: unknown
    borrowed: bool = False  # another trial's sandbox
    group: str = ""  # rollouts of one prompt; "": unknown
    complete: bool = True  # no gap between the actions
    measures: Measures = Measures()  # of the trial at its recorded length
    cpu_ns: int | None = None  # of set-up and actions; None: unknown
    sandbox_ns: int = 0  # the provider's clock: accepted create request to end, clean-up apart
    setup: Split = NO_COMMANDS  # the set-up's commands
    actions: Split = NO_COMMANDS
    gap_ns: int = 0  # harness time before actions
    durations_ns: array[int] = _EMPTY  # per action
    gaps_ns: array[int] = _EMPTY  # per action: harness time before it
    thinks_ns: array[int] = _EMPTY  # per action
    runs_ns: array[int] = _EMPTY  # per action: inside the sandbox, or UNKNOWN
    wrappers_ns: array[int] = _EMPTY  # per action: wrapper time, 0 where unknown

    @property
    def treatment(self) -> str:
        """Whether the model keeps the trial, retries it, or drops it."""
        return KEPT if self.ok else RETRIED if policy_of(self.cause, self.error).retry else DROPPED


PER_ACTION: Final[dict[str, Callable[[RecordedTrial], Sequence[int]]]] = {
    "action": lambda trial: trial.durations_ns,
    "run": lambda trial: [ns for ns in trial.runs_ns if ns != UNKNOWN],
    "dispatch": lambda trial: parted(trial.durations_ns, trial.runs_ns, trial.wrappers_ns)[1],
    "wrapper": lambda trial: [ns for ns in trial.wrappers_ns if ns],
}
"""Kind of duration → values of a trial, one per action; all but the first omit unknown runs."""

_MEASURES: Final = (
    "create ready orchestration preload setup work dispatch_total wrapper_total waiting unsplit harness cold_start "
    "fresh_episode trajectory amortized_per_action ready_again queued think held verify suspend resume snapshot "
    "fork build start_delay response cleanup"
)
PER_TRIAL: Final[dict[str, Callable[[RecordedTrial], int | None]]] = {
    **{kind: attrgetter(f"measures.{kind}_ns") for kind in _MEASURES.split()},
    "dispatch_total": lambda trial: trial.measures.dispatch_ns,
    "wrapper_total": lambda trial: trial.measures.wrapper_ns or None,
    "amortized_per_action": lambda trial: (
        round(trial.measures.trajectory_ns / len(trial.durations_ns)) if trial.durations_ns else None
    ),
}
"""Kind of duration → value of a trial, or None. ``*_total`` marks totals of kinds per action."""

NOT_RECORDED: Final[dict[str, Sequence[str]]] = {
    "run": ("run", "dispatch", "dispatch_total", "work", "wrapper", "wrapper_total"),
    "create": ("create", "cold_start", "fresh_episode", "orchestration"),
    "ready": ("ready",),
    "setup": ("setup",),
    "think": ("think", "trajectory", "amortized_per_action"),
    "actions": ("action", "amortized_per_action"),
    "held": ("held", "trajectory", "amortized_per_action", "harness"),
    "verify": ("verify",),
}
"""Quantity that an imported source may lack → unknown kinds of durations."""


def values_of(trial: RecordedTrial, kind: str) -> Sequence[int]:
    """Return a trial's values in ns: one per action, one, or none if unknown. ``kind`` is in a table above."""
    if (of_actions := PER_ACTION.get(kind)) is not None:
        return of_actions(trial)
    value = PER_TRIAL[kind](trial)
    return () if value is None else (value,)
