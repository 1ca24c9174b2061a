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
from costmodel.training.length import FIXED as FIXED
from costmodel.training.length import RECORDED as RECORDED
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
MAX_OUTCOMES: Final = 64
"""Entries of the counts at the end."""
MAX_CAPABILITIES: Final = 64
MAX_VALUES: Final = 65_536
"""Values in a header's scenario, containers included."""
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

# Phases, in the order in which a trial passes through them. Strings in the file, so that more can follow.
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

# Outcomes of a trial.
OK: Final = "ok"
FAILED: Final = "failed"
TIMEOUT: Final = "timeout"
CANCELLED: Final = "cancelled"
INTERRUPTED: Final = "interrupted"
OUTCOMES: Final = (OK, FAILED, TIMEOUT, CANCELLED, INTERRUPTED)

CRASHED: Final = "crashed"
"""The outcome of a run that a bug ended, of taxtui or of an adapter."""


# Decoded events hold no cycles: the frequent ones are invisible to the garbage collector (gc=False).


class Header(msgspec.Struct, array_like=True, tag=0, frozen=True):
    """Identifies the file and its run. Alone in the first frame."""

    magic: Text
    version: Count
    run_id: Text  # time-sortable
    scenario: dict[str, Any]  # the resolved plan, allow-listed keys only
    software: Annotated[
        dict[Text, Text], msgspec.Meta(max_length=MAX_FACTS)
    ]  # versions and machine facts: python, taxtui, kernel, cpu, docker.server …


class Clock(msgspec.Struct, array_like=True, tag=1, frozen=True):
    """Opens a worker; repeated in each frame that switches worker."""

    worker: Count
    monotonic_ns: Nanoseconds  # the anchor that all of this worker's instants are relative to
    unix_ns: Nanoseconds  # orders for display only
    host: Text  # digest, never a name


class Cell(msgspec.Struct, array_like=True, tag=2, frozen=True):
    """The identity of what is measured. Trials of equal cells pool, also across files; others never do.

    Everything up to ``substrate_version`` is identity; what follows describes how it was measured.
    """

    id: Count
    substrate: Label
    variant: Label  # runtime, transport, instance type …; "" where there is only one
    tier: Label
    tier_digest: Label
    actions: Count
    mode: Label  # exec | session
    concurrency: Count
    arrival: Label  # closed, staggered:500ms: as --arrival takes it
    think: Label  # 0s | 8s | lognormal:8s,0.6
    acquire: Label  # create | reset | pool:NAME | snapshot:ID
    cache: Label  # cold | node | unknown
    cpu_milli: Count  # asked for
    memory_mib: Count  # asked for
    network: Label  # none | full
    image: Label  # digest, "" where there is none
    environment: Label  # digest of client CPU, cores, kernel, region and versions
    substrate_version: Label
    cycle: Count  # length of the tier's action cycle
    bracket: Label  # bash | none: how run_ns was taken; date in older recordings
    bracket_cost_ns: (
        MaybeNanoseconds  # UNKNOWN: differences of a few dispatches were noise. Written by the first versions
    )
    preload: Label  # none | image | trial
    limits: Label  # in force: cgroup | prlimit | none | as asked
    provenance: Label  # measured | stand_in | imported
    capabilities: Annotated[tuple[Label, ...], msgspec.Meta(max_length=MAX_CAPABILITIES)] = ()
    length: Label = FIXED  # identity too: RECORDED where each trial has a length of its own, and ``actions`` is 0
    resolution_ns: Count = 0  # of the source's clock; 0: nanoseconds


class TrialStarted(msgspec.Struct, array_like=True, tag=3, frozen=True, gc=False):
    """Written and flushed before the create request is sent, so that a lost answer can be cleaned up."""

    trial: Count
    cell: Count
    sandbox: Text
    scheduled_ns: Nanoseconds
    start_ns: Nanoseconds  # the first create request
    attempt: Count = 0  # at the same work; this engine starts every trial once
    warm_up: bool = False
    block: MaybeCount = 0  # UNKNOWN: a warm-up is in none
    repetition: Count = 0  # of the whole run, by processes, connections and seeds of its own
    task: Text = ""  # digest of the prompt or problem; "": unknown, or all trials of the cell have one
    image: Text = ""  # digest, where the trials of a cell differ in it
    image_bytes: MaybeCount = UNKNOWN
    group: Text = ""  # digest: rollouts of one prompt that are scored together
    training_step: MaybeCount = UNKNOWN


class Mark(msgspec.Struct, array_like=True, tag=4, frozen=True, gc=False):
    """A sub-step that was seen inside a phase, with the resolution at which it was observed."""

    trial: Count
    name: Text
    at_ns: Nanoseconds
    resolution_ns: Nanoseconds
    bytes: MaybeCount = UNKNOWN  # moved until then, as for an image that was pulled


class PhaseEnded(msgspec.Struct, array_like=True, tag=5, frozen=True, gc=False):
    """One finished phase of a trial; the actions themselves are in :class:`Actions`."""

    trial: Count
    phase: Text
    start_ns: Nanoseconds
    duration_ns: Nanoseconds


class Actions(msgspec.Struct, array_like=True, tag=6, frozen=True, gc=False):
    """Consecutive commands of one trial, as columns. A column whose values are all 0 is written empty.

    ``duration_ns`` is never empty unless the event holds no command: it gives the number of rows. An empty ``cpu_ns``
    or ``wrapper_ns`` means that none is known.
    """

    trial: Count
    step: Text  # SETUP or ACTION
    first: Count  # index of the first row
    gap_ns: list[Nanoseconds]  # harness time before the command, think time excluded
    think_ns: list[Nanoseconds]
    duration_ns: list[Nanoseconds]  # submitted → exit code and full output in our hands
    run_ns: list[MaybeNanoseconds]  # inside the sandbox; UNKNOWN where it could not be measured
    exit_code: list[MaybeCount]
    stdout_bytes: list[Count]
    stderr_bytes: list[Count]
    cpu_ns: list[MaybeNanoseconds] = msgspec.field(default_factory=list)  # user and system time of run; or UNKNOWN
    wrapper_ns: list[MaybeNanoseconds] = msgspec.field(default_factory=list)  # of taxtui's shell wrappers; or UNKNOWN


class TrialEnded(msgspec.Struct, array_like=True, tag=7, frozen=True, gc=False):
    """Written after cleanup. ``end_ns`` is the end of ``held``: the last action's end, or the failure."""

    trial: Count
    outcome: Text
    phase: Text  # where it ended; "" when ok
    error: Text  # class of the error; "" when ok
    message: Text  # redacted, one line
    end_ns: Nanoseconds
    queued_ns: Nanoseconds
    connection: Text  # cold | warm: was the client's connection made for this trial
    node: Text = ""  # digest of the machine that ran it, where the provider tells


class Health(msgspec.Struct, array_like=True, tag=8, frozen=True, gc=False):
    """Once a second: whether the harness itself distorted what it measured."""

    at_ns: Nanoseconds
    lag_p50_ns: Nanoseconds
    lag_p99_ns: Nanoseconds
    lag_max_ns: Nanoseconds
    cpu_permille: Count  # of one core, this process
    in_flight: Count
    pool_waits: Count  # calls of blocking SDKs that waited for a thread, since the last one
    floor_ns: MaybeNanoseconds  # p50 of posix_spawn("/bin/true"), UNKNOWN until measured


class Notice(msgspec.Struct, array_like=True, tag=9, frozen=True):
    """Something a person should know: throttled, image pulled, cleanup failed …"""

    at_ns: Nanoseconds
    level: Text  # info | warning | error
    text: Text


class RunFinished(msgspec.Struct, array_like=True, tag=10, frozen=True):
    """The run ended in an orderly way. Alone in the last frame."""

    outcome: Text  # finished | cancelled | interrupted | budget | crashed
    counts: Annotated[dict[Text, Count], msgspec.Meta(max_length=MAX_OUTCOMES)]  # trials by outcome, warm-ups excluded


class Link(msgspec.Struct, array_like=True, tag=11, frozen=True):
    """Which frame this is and which stood before it: first in every frame but the header's. Frames alone know it."""

    frame: Count  # the header's is 0
    before: Count  # checksum of the frame before


Event = Header | Clock | Cell | TrialStarted | Mark | PhaseEnded | Actions | TrialEnded | Health | Notice | RunFinished


def column(values: list[int], rows: int, empty: int = 0) -> list[int]:
    """A column of :class:`Actions` at its full length: in one that was written empty each value is ``empty``."""
    return values or [empty] * rows


def sparse(values: list[int], empty: int = 0) -> list[int]:
    """A column as :class:`Actions` has it: empty where all its values are ``empty``."""
    return [] if values.count(empty) == len(values) else values


TAGS: Final = range(12)
"""Tags of events and links. An unreadable event with one is damage; any other tag is of a later version."""
