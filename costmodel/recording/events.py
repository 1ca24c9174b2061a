"""The events of a recording: what a run measured, in the order in which it became known.

Each event is a msgspec array-like struct: on the wire ``[tag, field, …]``. Fields are only ever appended,
with defaults; tags are never reused. Durations and instants are int nanoseconds; an instant is the writing
worker's ``CLOCK_MONOTONIC`` minus the anchor in its :class:`Clock`. Strings are data: they are cleaned before
they reach a screen.

The types of the fields are the checks of the reader: integers in their bounds, text in UTF-8.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from costmodel.recording.breakdown import UNKNOWN as UNKNOWN
from costmodel.training.length import FIXED_LENGTH as FIXED_LENGTH
from costmodel.training.length import RECORDED_LENGTH as RECORDED_LENGTH
from costmodel.units import MAX_INT as MAX_INT

FORMAT_VERSION: Final = 1
MAGIC: Final = "taxtui"

# Bounds: the reader refuses a file beyond them, and taxtui's writer cuts longer text.
MAX_TEXT: Final = 1024
"""Characters of a string."""
MAX_LABEL: Final = 512
"""Characters of a string in a cell, which tables show."""
MAX_FACTS: Final = 1024
"""Entries of a header's ``software``."""
MAX_CAPABILITIES: Final = 64
MAX_DEPTH: Final = 16
"""Levels of a header's scenario."""
MAX_CELLS: Final = 1024
"""Different cells of a file; an identical announcement counts once."""

Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
Label = Annotated[str, msgspec.Meta(max_length=MAX_LABEL)]
Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)]
MaybeCount = Annotated[int, msgspec.Meta(ge=UNKNOWN, le=MAX_INT)]
Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)]
MaybeNanoseconds = Annotated[int, msgspec.Meta(ge=UNKNOWN, le=MAX_INT)]

# Phases in the order of a trial. Strings in the file, so that later versions can add phases.
CREATE: Final = "create"
RESET: Final = "reset"
READY: Final = "ready"
READY_AGAIN: Final = "ready_again"
PRELOAD: Final = "preload"
SETUP: Final = "setup"
ACTION: Final = "action"
CLEANUP: Final = "cleanup"
VERIFY: Final = "verify"
"""A task's own tests after the last action: the trajectory is over, the sandbox still held. Imported trials only."""

# Milestones of an imported trial's create phase.
IMAGE_CACHED: Final = "image_cached"
IMAGE_BUILT: Final = "image_built"
"""The image was built while the sandbox waited: its first use."""
BORROWED: Final = "borrowed"
"""The sandbox belongs to another trial: its create time is not this trial's."""
SUSPEND: Final = "suspend"
RESUME: Final = "resume"
"""Suspension of the sandbox between two actions, and its resume; once per long pause. The wait for both is a gap."""
SNAPSHOT: Final = "snapshot"
FORK: Final = "fork"
BUILD: Final = "build"
"""Copies and images that are measured after the last action, outside the occupied time."""
LIFE_CYCLE: Final = frozenset({SUSPEND, RESUME, SNAPSHOT, FORK, BUILD})
"""Phases during or after the actions."""

# Outcomes of a trial.
OK: Final = "ok"
FAILED: Final = "failed"
TIMEOUT: Final = "timeout"
CANCELLED: Final = "cancelled"
INTERRUPTED: Final = "interrupted"
OUTCOMES: Final = (OK, FAILED, TIMEOUT, CANCELLED, INTERRUPTED)

CRASHED: Final = "crashed"
"""Outcome of a measurement that a bug of taxtui or of an adapter ended."""


# Decoded events hold no cycles: the frequent ones are invisible to the garbage collector (gc=False).


class Header(msgspec.Struct, array_like=True, tag=0, frozen=True):
    """Description of the file and the measurement. Alone in the first frame."""

    magic: Text
    version: Count
    run_id: Text  # sorts by time
    scenario: dict[str, Any]  # resolved plan, allow-listed keys only
    software: Annotated[
        dict[Text, Text], msgspec.Meta(max_length=MAX_FACTS)
    ]  # versions and machine facts: python, taxtui, kernel, cpu, docker.server …


class Clock(msgspec.Struct, array_like=True, tag=1, frozen=True):
    """Start of a worker's events; repeated in each frame with another worker."""

    worker: Count
    monotonic_ns: Nanoseconds  # anchor of all instants of this worker
    unix_ns: Nanoseconds  # Unix time of the anchor, for display only
    host: Text  # digest


class Cell(msgspec.Struct, array_like=True, tag=2, frozen=True):
    """Identity of a cell: trials of equal cells pool, also across files.

    Everything up to ``substrate_version`` is identity; what follows describes how it was measured.
    """

    id: Count  # `TrialStarted.cell` refers to this number
    substrate: Label
    variant: Label  # runtime, transport or instance type; may be empty
    tier: Label
    tier_digest: Label  # 16 hex digits over the content of the tier
    actions: Count  # of a trajectory
    mode: Label  # exec, session
    concurrency: Count  # trials at a time
    arrival: Label  # closed, open:20/s: as --arrival takes it; staggered:500ms in older files
    think: Label  # 0s, 8s, lognormal:8s,0.6
    acquire: Label  # create, reset, pool:NAME
    cache: Label  # cold, node, unknown
    cpu_milli: Count  # requested, 1/1000 vCPU
    memory_mib: Count  # requested
    network: Label  # none, full
    image: Label  # digest, or empty
    environment: Label  # digest of client CPU, cores, kernel, region and versions
    substrate_version: Label  # of provider and runtime; end of the identity
    cycle: Count  # actions of the tier's cycle
    bracket: Label  # clock of run_ns: bash, none, date (old files)
    bracket_cost_ns: MaybeNanoseconds  # unknown, except in the first versions
    preload: Label  # none, image, trial
    limits: Label  # in force: cgroup v2, cgroup v1, none …
    provenance: Label  # measured, stand_in, imported
    capabilities: Annotated[tuple[Label, ...], msgspec.Meta(max_length=MAX_CAPABILITIES)] = ()  # deadlines, unknowns
    length: Label = (
        FIXED_LENGTH  # fixed, or recorded: each trial has its own length, and actions is 0; part of the identity
    )
    resolution_ns: Count = 0  # resolution of the source's clock; 0: nanoseconds


class TrialStarted(msgspec.Struct, array_like=True, tag=3, frozen=True, gc=False):
    """Start of a trial: written before the create request, so that a lost answer can be cleaned up."""

    trial: Count
    cell: Count
    sandbox: Text  # name of the sandbox
    scheduled_ns: Nanoseconds  # scheduled start, or the time of a free slot
    start_ns: Nanoseconds  # first create request
    attempt: Count = 0  # number of the attempt
    warm_up: bool = False  # recorded, not counted
    block: MaybeCount = 0  # −1: warm-up
    repetition: Count = 0  # number of the repetition
    task: Text = ""  # digest of the prompt or problem, or empty
    image: Text = ""  # digest, where trials of a cell differ
    image_bytes: MaybeCount = UNKNOWN
    group: Text = ""  # digest; rollouts of the same prompt
    training_step: MaybeCount = UNKNOWN


class Mark(msgspec.Struct, array_like=True, tag=4, frozen=True, gc=False):
    """Milestone inside a phase."""

    trial: Count
    name: Text  # accepted, scheduled, running …
    at_ns: Nanoseconds
    resolution_ns: Nanoseconds  # interval of observation
    bytes: MaybeCount = UNKNOWN  # transferred, as for a pulled image; memory in use before or during a suspension
    cpu_ns: MaybeNanoseconds = UNKNOWN  # CPU time of the sandbox since its start, before and during a suspension


class PhaseEnded(msgspec.Struct, array_like=True, tag=5, frozen=True, gc=False):
    """Finished phase of a trial."""

    trial: Count
    phase: Text  # create, reset, ready, ready_again, preload, setup, action, suspend, resume, snapshot, fork, build …
    start_ns: Nanoseconds
    duration_ns: Nanoseconds


class Actions(msgspec.Struct, array_like=True, tag=6, frozen=True, gc=False):
    """Consecutive commands of a trial, as columns. A column of zeros is written empty.

    ``duration_ns`` is never empty unless the event holds no command: it gives the number of rows. An empty ``cpu_ns``
    or ``wrapper_ns`` means that none is known.
    """

    trial: Count
    step: Text  # preload, setup, action
    first: Count  # index of the first row
    gap_ns: list[Nanoseconds]  # runner gap before the command
    think_ns: list[Nanoseconds]  # model time before the command
    duration_ns: list[Nanoseconds]  # submission to exit code and full output; gives the number of rows
    run_ns: list[MaybeNanoseconds]  # in-sandbox time; unknown where longer than duration_ns
    exit_code: list[MaybeCount]
    stdout_bytes: list[Count]  # size; no output is kept
    stderr_bytes: list[Count]
    cpu_ns: list[MaybeNanoseconds] = msgspec.field(default_factory=list)  # CPU time; empty: unknown
    wrapper_ns: list[MaybeNanoseconds] = msgspec.field(default_factory=list)  # wrapper time; empty: unknown


class TrialEnded(msgspec.Struct, array_like=True, tag=7, frozen=True, gc=False):
    """End of a trial, written after the clean-up."""

    trial: Count
    outcome: Text  # ok, failed, timeout, cancelled, interrupted
    phase: Text  # phase of the failure
    error: Text  # class of the error
    message: Text  # redacted, one line
    end_ns: Nanoseconds  # last action's end, or the failure
    queued_ns: Nanoseconds  # throttled
    connection: Text  # cold: opened for this trial; warm
    node: Text = ""  # digest of the machine, where known
    cause: Text = ""  # of the failure or limit; empty: by the class of the error


class Health(msgspec.Struct, array_like=True, tag=8, frozen=True, gc=False):
    """Health of the runner, once a second."""

    at_ns: Nanoseconds
    lag_p50_ns: Nanoseconds  # event loop lag: excess of a 10 ms sleep
    lag_p99_ns: Nanoseconds
    lag_max_ns: Nanoseconds
    cpu_permille: Count  # of a core, the measuring process
    in_flight: Count  # trials
    pool_waits: Count  # calls without a free thread, since the last event
    floor_ns: MaybeNanoseconds  # median of spawning `true`


class Notice(msgspec.Struct, array_like=True, tag=9, frozen=True):
    """Message for a person: throttled, image pulled, clean-up failed."""

    at_ns: Nanoseconds
    level: Text  # info, warning, error
    text: Text


class RunFinished(msgspec.Struct, array_like=True, tag=10, frozen=True):
    """Orderly end of the measurement. Alone in the last frame."""

    outcome: Text  # finished, cancelled, interrupted, budget, crashed
    counts: Annotated[dict[Text, Count], msgspec.Meta(max_length=64)]  # trials by outcome, warm-ups excluded


class Link(msgspec.Struct, array_like=True, tag=11, frozen=True):
    """Number of the frame and checksum of the frame before: first in every frame except the header's."""

    frame: Count  # 0: the header's
    before: Count  # checksum of the frame before


Event = Header | Clock | Cell | TrialStarted | Mark | PhaseEnded | Actions | TrialEnded | Health | Notice | RunFinished


def column(values: list[int], rows: int, empty: int = 0) -> list[int]:
    """Return a column of :class:`Actions` at full length: an empty column becomes ``rows`` times ``empty``."""
    return values or [empty] * rows


def sparse(values: list[int], empty: int = 0) -> list[int]:
    """Return a column as in :class:`Actions`: empty if all values are ``empty``."""
    return [] if values.count(empty) == len(values) else values


TAGS: Final = range(12)
"""Tags of events and links. An unreadable event with one is damage; any other tag is of a later version."""
