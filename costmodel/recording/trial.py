"""Recorded trials."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from costmodel.recording.breakdown import NO_COMMANDS, NOTHING, Measures, Split
from costmodel.statistics.repetitions import Origin, RunKey

if TYPE_CHECKING:
    _Column = array[int]
else:
    _Column = array  # which takes no parameter at run time

_EMPTY: Final = msgspec.field(default_factory=lambda: array("q"))


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
    measures: Measures = NOTHING  # of the trial at its recorded length
    cpu_ns: int | None = None  # of set-up and actions; None: unknown
    sandbox_ns: int = 0  # the provider's clock: accepted create request to end, clean-up apart
    setup: Split = NO_COMMANDS  # the set-up's commands
    actions: Split = NO_COMMANDS
    gap_ns: int = 0  # harness time before actions
    durations_ns: _Column = _EMPTY  # per action
    gaps_ns: _Column = _EMPTY  # per action: harness time before it; empty where all are 0
    thinks_ns: _Column = _EMPTY  # per action; empty where all are 0
    runs_ns: _Column = _EMPTY  # per action: inside the sandbox, or UNKNOWN
    wrappers_ns: _Column = _EMPTY  # per action: wrapper time, 0 where unknown; empty where all are 0


def origins_of(trials: Iterable[RecordedTrial]) -> list[Origin]:
    """Return run and block of each trial."""
    return [(trial.run, trial.block) for trial in trials]
