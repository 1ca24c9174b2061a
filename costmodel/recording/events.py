"""The events of a recording, with the bounds of every field.

An event is a positional array ``[tag, field, …]`` to which fields are only ever appended. Every field is declared,
also those that no projection needs: their types are what is checked, and what ``taxtui`` refuses is refused here.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from costmodel.recording.breakdown import UNKNOWN as UNKNOWN
from costmodel.units import MAX_INT

MAX_TEXT: Final = 1024
MAX_LABEL: Final = 512
MAX_FACTS: Final = 1024
MAX_OUTCOMES: Final = 64
MAX_CAPABILITIES: Final = 64
MAX_VALUES: Final = 65_536
MAX_DEPTH: Final = 16
MAX_CELLS: Final = 1024

Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
Label = Annotated[str, msgspec.Meta(max_length=MAX_LABEL)]
Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)]
MaybeCount = Annotated[int, msgspec.Meta(ge=UNKNOWN, le=MAX_INT)]
Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)]
MaybeNanoseconds = Annotated[int, msgspec.Meta(ge=UNKNOWN, le=MAX_INT)]

# What comes once per trial or more is left alone by the garbage collector: decoded events hold no cycles.


class Header(msgspec.Struct, array_like=True, tag=0, frozen=True):
    """Which run the file holds."""

    magic: Text
    version: Count
    run_id: Text
    scenario: dict[str, Any]  # within MAX_VALUES and MAX_DEPTH
    software: Annotated[dict[Text, Text], msgspec.Meta(max_length=MAX_FACTS)]


class Clock(msgspec.Struct, array_like=True, tag=1, frozen=True):
    """Not needed: durations never mix the clocks of two workers."""

    worker: Count
    monotonic_ns: Nanoseconds
    unix_ns: Nanoseconds
    host: Text


class Cell(msgspec.Struct, array_like=True, tag=2, frozen=True):
    """What is measured: all that tells it from other cells up to ``substrate_version``, then how."""

    id: Count
    substrate: Label
    variant: Label
    tier: Label
    tier_digest: Label
    actions: Count
    mode: Label
    concurrency: Count
    arrival: Label
    think: Label
    acquire: Label
    cache: Label
    cpu_milli: Count
    memory_mib: Count
    network: Label
    image: Label
    environment: Label
    substrate_version: Label
    cycle: Count
    bracket: Label
    bracket_cost_ns: MaybeNanoseconds
    preload: Label
    limits: Label
    provenance: Label
    capabilities: Annotated[tuple[Label, ...], msgspec.Meta(max_length=MAX_CAPABILITIES)] = ()
    length: Label = "fixed"
    resolution_ns: Count = 0


class TrialStarted(msgspec.Struct, array_like=True, tag=3, frozen=True, gc=False):
    """The first create request is about to be sent."""

    trial: Count
    cell: Count
    sandbox: Text
    scheduled_ns: Nanoseconds
    start_ns: Nanoseconds
    attempt: Count = 0
    warm_up: bool = False
    block: MaybeCount = 0
    repetition: Count = 0
    task: Text = ""
    image: Text = ""
    image_bytes: MaybeCount = UNKNOWN
    group: Text = ""
    training_step: MaybeCount = UNKNOWN


class Mark(msgspec.Struct, array_like=True, tag=4, frozen=True, gc=False):
    """A sub-step that was seen inside a phase."""

    trial: Count
    name: Text
    at_ns: Nanoseconds
    resolution_ns: Nanoseconds
    bytes: MaybeCount = UNKNOWN


class PhaseEnded(msgspec.Struct, array_like=True, tag=5, frozen=True, gc=False):
    """A phase of a trial."""

    trial: Count
    phase: Text
    start_ns: Nanoseconds
    duration_ns: Nanoseconds


class Actions(msgspec.Struct, array_like=True, tag=6, frozen=True, gc=False):
    """Consecutive commands of a trial as columns; one that is all zeros may be empty, except ``duration_ns``.

    An empty ``cpu_ns`` says that none is known.
    """

    trial: Count
    step: Text
    first: Count
    gap_ns: list[Nanoseconds]
    think_ns: list[Nanoseconds]
    duration_ns: list[Nanoseconds]
    run_ns: list[MaybeNanoseconds]
    exit_code: list[MaybeCount]
    stdout_bytes: list[Count]
    stderr_bytes: list[Count]
    cpu_ns: list[MaybeNanoseconds] = msgspec.field(default_factory=list)


class TrialEnded(msgspec.Struct, array_like=True, tag=7, frozen=True, gc=False):
    """The trial is over; ``end_ns`` is the last action's end, or the failure."""

    trial: Count
    outcome: Text
    phase: Text
    error: Text
    message: Text
    end_ns: Nanoseconds
    queued_ns: Nanoseconds
    connection: Text
    node: Text = ""


class Health(msgspec.Struct, array_like=True, tag=8, frozen=True, gc=False):
    """One second of the measuring process."""

    at_ns: Nanoseconds
    lag_p50_ns: Nanoseconds
    lag_p99_ns: Nanoseconds
    lag_max_ns: Nanoseconds
    cpu_permille: Count
    in_flight: Count
    pool_waits: Count
    floor_ns: MaybeNanoseconds


class Notice(msgspec.Struct, array_like=True, tag=9, frozen=True):
    """Not needed: words for people."""

    at_ns: Nanoseconds
    level: Text
    text: Text


class RunFinished(msgspec.Struct, array_like=True, tag=10, frozen=True):
    """The run ended in an orderly way."""

    outcome: Text
    counts: Annotated[dict[Text, Count], msgspec.Meta(max_length=MAX_OUTCOMES)]


class Link(msgspec.Struct, array_like=True, tag=11, frozen=True):
    """First in every frame but the header's: which frame it is, and the checksum of the one before."""

    frame: Count
    before: Count


Event = Header | Clock | Cell | TrialStarted | Mark | PhaseEnded | Actions | TrialEnded | Health | Notice | RunFinished
TAGS: Final = range(12)
"""Of the events above, links too: one of these that cannot be read is damage, not a novelty."""
