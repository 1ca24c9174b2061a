"""The interface of a reader of another tool's logs, and the neutral trial that readers return.

A reader finds the files of its format, recognises one by its content and streams trials from it. It copies raw names
into the fields made for them and nothing else: digests, redaction, identities, order and the recording itself are the
importer's. It invents nothing: what the source does not tell is left out and said in ``unknown``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Final, NamedTuple, Protocol

import msgspec

from costmodel import CAUSE_OF, CAUSE_POLICIES, events
from taxtui.errors import RecordingError

HEAD_BYTES: Final = 1 << 16
"""Bytes at the beginning of a file by which a reader recognises the format."""

# Quantities that a source may lack, as ``Unknown`` names them and the cell of the recording repeats them.
RUN: Final = "run"  # a command's time inside the sandbox: dispatch and work are one
THINK: Final = "think"  # the model's time before a command
ACTIONS: Final = "actions"  # where one command ends and the next begins: the agent's time is one piece
CREATE: Final = "create"  # how long the sandbox took to come
READY: Final = "ready"  # ... from there to the first command; where only both together are known, create holds them
SETUP: Final = "setup"
VERIFY: Final = "verify"
HELD: Final = "held"  # from the first request to the last action's end
INSTANTS: Final = "instants"  # when anything happened; only durations are known
EXIT: Final = "exit codes"
GROUP: Final = "group"
IMAGE: Final = "image"
SUBSTRATE: Final = "substrate"


AGENT_LIMITS: Final = frozenset(error for error, cause in CAUSE_OF.items() if CAUSE_POLICIES[cause].reward_valid)
"""Error classes that end a trajectory without a failure of its sandbox: the agent's budget ran out, or it refused."""


class Unknown(NamedTuple):
    """One quantity that the source does not tell of this trial, and why; both from the reader's code, not the data."""

    quantity: str
    why: str
    partly: bool = False  # some of it is told: what is there counts, and no table hides it


class Phase(NamedTuple):
    """A finished phase, by a name of ``costmodel.recording.events``."""

    name: str
    start_ns: int  # Unix, or since the trial's start where it is not dated
    duration_ns: int


class ImportedAction(NamedTuple):
    """One command of the agent, in ns: first the gap, then the think time, then the command."""

    duration_ns: int
    think_ns: int = 0
    gap_ns: int = 0  # the harness's own time before it
    run_ns: int = events.UNKNOWN
    exit_code: int = events.UNKNOWN


class Failure(NamedTuple):
    """Why a trial did not succeed. An unsolved task is no failure: the sandbox did what it was asked."""

    error: str  # the class of an exception
    phase: str  # where it ended
    outcome: str = events.FAILED  # or TIMEOUT, CANCELLED
    cause: str = ""  # a name of costmodel.recording.causes; "": by the class of the error


class ImportedTrial(msgspec.Struct, frozen=True, kw_only=True):
    """One sandbox and its trajectory. Names are as the source has them: the importer makes digests of them.

    ``timeline.Timeline`` makes the four fields of time so that nothing is negative or counted twice.
    """

    start_ns: int  # the request for the sandbox, or the first thing known; Unix time
    end_ns: int  # the last action's end, or the failure
    phases: tuple[Phase, ...]
    actions: tuple[ImportedAction, ...]
    setup: tuple[ImportedAction, ...] = ()  # commands of the phase "setup", one behind the other
    dated: bool = True  # False: instants count from the trial's own start, which is 0
    failure: Failure | None = None
    limit: str = ""  # error class of the agent's own limit that ended a delivered trajectory, as in AGENT_LIMITS
    resolution_ns: int  # of the source's clock
    image_cached: bool | None = None  # whether the image existed at the create request
    borrowed: bool = False  # another trial's sandbox: its create time is not this trial's
    unknown: tuple[Unknown, ...]  # never empty: no source tells a command's time inside the sandbox

    # what was held: identity
    substrate: str = ""  # docker, daytona …
    variant: str = ""  # instance type, runtime, class of the environment
    substrate_version: str = ""
    cpu_milli: int = 0
    memory_mib: int = 0
    # what was run: identity
    workload: tuple[str, ...] = ()  # agent, model, their versions
    concurrency: int = 0  # trials in flight, where the source says so; 0: counted from the instants
    arrival: str = ""  # burst, staggered:500ms …; "": closed

    # of this trial alone
    task: str = ""
    image: str = ""
    image_bytes: int = events.UNKNOWN
    group: str = ""
    training_step: int = events.UNKNOWN
    attempt: int = 0
    node: str = ""


class Skipped(NamedTuple):
    """A piece of a file that could not be read while the rest can: a line, a sample."""

    where: str  # "line 7"; never from the data
    why: str


class Unreadable(RecordingError):
    """A file that a reader has to leave out; the message says why and holds nothing of the content."""


class Asked(msgspec.Struct, frozen=True):
    """Options of the command line for a reader."""

    span_phases: Mapping[str, str] = {}
    """``--map``: phase or ``think`` or ``action`` by the name of a span. Only where ``takes_map``."""


class Reader(Protocol):
    """One format. Made without arguments; it keeps nothing between files."""

    name: ClassVar[str]
    """As ``taxtui import NAME`` has it."""

    summary: ClassVar[str]
    """One line: which tool writes it, which versions are read."""

    takes_map: ClassVar[bool]
    """Whether ``--map`` means anything to it."""

    def files(self, folder: Path) -> Iterator[Path]:
        """The files below a folder that may hold trials, sorted, as they are found; by their names alone."""
        ...

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether this file is of the format, by its content; ``head`` is its first ``HEAD_BYTES``."""
        ...

    def trials(self, path: Path, asked: Asked) -> Iterator[ImportedTrial | Skipped]:
        """The trials of one file, one at a time. A file of the format that holds none (a job's summary) yields nothing.

        Raises:
            Unreadable: nothing more of the file can be believed, with the reason. Trials before it count.
        """
        ...
