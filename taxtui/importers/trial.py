"""The trial that readers of logs return.

Raw names go into the fields for names and nowhere else: the importer makes digests, cells and the recording. A reader
invents no value: a missing quantity is declared in ``unknown``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from costmodel import causes, events
from taxtui.importers.values import MICROSECOND_NS

PHASES: Final = {
    "create": events.CREATE,
    "ready": events.READY,
    "setup": events.PRELOAD,
    "verify": events.VERIFY,
    "cleanup": events.CLEANUP,
}
"""Phase in a CSV row or in ``--map`` → phase in the recording. The set-up of another tool is a preload."""

AGENT_LIMITS: Final = frozenset(
    error for error, cause in causes.CAUSE_OF.items() if causes.CAUSE_POLICIES[cause].reward_valid
)
"""Error classes that end a trajectory without a failure of the sandbox: the agent refused, or reached a limit."""


class Quantity(StrEnum):
    """A quantity that a source may lack. The recording's cell has the same name."""

    RUN = "run"  # in-sandbox time; unknown: command time and dispatch are undivided
    THINK = "think"  # model time
    ACTIONS = "actions"  # single commands
    GAPS = "gaps"  # time between model and command
    CREATE = "create"
    READY = "ready"  # create contains ready where only their sum is known
    SETUP = "setup"
    VERIFY = "verify"
    HELD = "held"  # occupied time
    INSTANTS = "instants"  # only durations are known
    EXIT = "exit codes"
    GROUP = "group"
    SUBSTRATE = "substrate"


TIMES: Final = (*PHASES, Quantity.THINK, events.ACTION)
"""Times of a CSV row and of ``--map``: phases, model time and action."""


class Unknown(NamedTuple):
    """A quantity that a trial lacks, and the reason. Both are the reader's words, never the file's."""

    quantity: str
    why: str
    partly: bool = False  # known values count


class Phase(NamedTuple):
    """A finished phase, by a name of ``costmodel.recording.events``."""

    name: str
    start_ns: int  # Unix, or since the trial's start where it is not dated
    duration_ns: int


class ImportedAction(NamedTuple):
    """A command in ns: first the gap, then the model time, then the command."""

    duration_ns: int
    think_ns: int = 0
    gap_ns: int = 0  # the harness's time before the command
    run_ns: int = events.UNKNOWN
    exit_code: int = events.UNKNOWN


Span = tuple[int | None, int | None]
"""Start and end in Unix ns; None: unknown."""


class Failure(NamedTuple):
    """Why a trial did not succeed. An unsolved task is no failure."""

    error: str  # class of an exception
    phase: str
    outcome: str = events.FAILED  # or TIMEOUT, CANCELLED
    cause: str = ""  # a name of costmodel.recording.causes; "": by the class of the error


def failure_of(error: str, phase: str) -> Failure:
    """Return the failure of an exception: cancelled, timed out or failed, by the class of the exception."""
    cancelled = events.CANCELLED if causes.cause_of(error) == events.CANCELLED else ""
    return Failure(error, phase, cancelled or (events.TIMEOUT if "timeout" in error.lower() else events.FAILED))


def failed_phase(spans: Mapping[str, Span], otherwise: str) -> str:
    """Return the name of the last span without an end, else of the last span with a start, else ``otherwise``."""
    started = [name for name, (start_ns, _) in spans.items() if start_ns is not None]
    unfinished = [name for name in started if spans[name][1] is None]
    return (unfinished or started or [otherwise])[-1]


class ImportedTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A sandbox and the trajectory, with names as in the source.

    ``timeline.Timeline`` makes the fields of time: no duration is negative or counted twice.
    """

    start_ns: int  # Unix time of the create request, or of the first known span
    end_ns: int  # end of the last action, or the failure
    phases: tuple[Phase, ...]
    actions: tuple[ImportedAction, ...]
    preload: tuple[ImportedAction, ...] = ()  # commands of the phase "preload"
    dated: bool = True  # False: instants count from the trial's start, which is 0
    failure: Failure | None = None
    limit: str = ""  # error class in AGENT_LIMITS at the end of a delivered trajectory
    resolution_ns: int = MICROSECOND_NS  # of the source's clock
    image_cached: bool | None = None  # whether the image existed at the create request
    borrowed: bool = False  # another trial's sandbox, without a create time of this trial
    unknown: tuple[Unknown, ...]  # never empty: no source has in-sandbox times

    # names and sizes of the sandbox: identity of the cell
    substrate: str = ""
    variant: str = ""  # instance type, runtime, class of the environment
    substrate_version: str = ""
    cpu_milli: int = 0
    memory_mib: int = 0
    # names of the workload: identity of the cell
    workload: tuple[str, ...] = ()  # agent, model, versions
    concurrency: int = 0  # 0: the importer counts trials in flight
    arrival: str = ""  # burst, staggered:500ms …; "": closed

    # names of this trial
    task: str = ""
    image: str = ""
    image_bytes: int = events.UNKNOWN
    group: str = ""
    training_step: int = events.UNKNOWN
    attempt: int = 0
    node: str = ""
