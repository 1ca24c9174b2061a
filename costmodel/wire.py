"""The recording format on the wire: frames around batches of events.

An event is a positional array ``[tag, field, …]`` to which fields are only ever appended. Every field is declared,
also those that no projection needs: their types are what is checked, and what ``taxtui`` refuses is refused here.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, cast

import msgspec

from costmodel.errors import SourceError
from costmodel.measures import UNKNOWN as UNKNOWN

FORMAT_VERSION: Final = 1
MAGIC: Final = "taxtui"

PREFIX: Final = struct.Struct(">BIBI")  # ext32, length of crc and payload, type, crc
EXT32: Final = 0xC9
FRAME_TYPE: Final = 0x54
CRC_BYTES: Final = 4
MAX_LENGTH: Final = 1 << 20
MAX_EVENTS: Final = 65_536
MAX_INT: Final = (1 << 63) - 1

Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)]
MaybeCount = Annotated[int, msgspec.Meta(ge=UNKNOWN, le=MAX_INT)]
Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)]
MaybeNanoseconds = Annotated[int, msgspec.Meta(ge=UNKNOWN, le=MAX_INT)]

# What comes once per trial or more is left alone by the garbage collector: decoded events hold no cycles.


class Header(msgspec.Struct, array_like=True, tag=0, frozen=True):
    """Which run the file holds."""

    magic: str
    version: Count
    run_id: str
    scenario: dict[str, Any]
    software: dict[str, str]


class Clock(msgspec.Struct, array_like=True, tag=1, frozen=True):
    """Not needed: durations never mix the clocks of two workers."""

    worker: Count
    monotonic_ns: Nanoseconds
    unix_ns: Nanoseconds
    host: str


class Cell(msgspec.Struct, array_like=True, tag=2, frozen=True):
    """What is measured: all that tells it from other cells up to ``substrate_version``, then how."""

    id: Count
    substrate: str
    variant: str
    tier: str
    tier_digest: str
    actions: Count
    mode: str
    concurrency: Count
    arrival: str
    think: str
    acquire: str
    cache: str
    cpu_milli: Count
    memory_mib: Count
    network: str
    image: str
    environment: str
    substrate_version: str
    cycle: Count
    bracket: str
    bracket_cost_ns: MaybeNanoseconds
    preload: str
    limits: str
    provenance: str
    capabilities: tuple[str, ...] = ()
    length: str = "fixed"
    resolution_ns: Count = 0


class TrialStarted(msgspec.Struct, array_like=True, tag=3, frozen=True, gc=False):
    """The first create request is about to be sent."""

    trial: Count
    cell: Count
    sandbox: str
    scheduled_ns: Nanoseconds
    start_ns: Nanoseconds
    attempt: Count = 0
    warm_up: bool = False
    block: MaybeCount = 0
    repetition: Count = 0
    task: str = ""
    image: str = ""
    image_bytes: MaybeCount = UNKNOWN
    group: str = ""
    training_step: MaybeCount = UNKNOWN


class Mark(msgspec.Struct, array_like=True, tag=4, frozen=True, gc=False):
    """A sub-step that was seen inside a phase."""

    trial: Count
    name: str
    at_ns: Nanoseconds
    resolution_ns: Nanoseconds
    bytes: MaybeCount = UNKNOWN


class PhaseEnded(msgspec.Struct, array_like=True, tag=5, frozen=True, gc=False):
    """A phase of a trial."""

    trial: Count
    phase: str
    start_ns: Nanoseconds
    duration_ns: Nanoseconds


class Actions(msgspec.Struct, array_like=True, tag=6, frozen=True, gc=False):
    """Consecutive commands of a trial as columns; one that is all zeros may be empty, except ``duration_ns``.

    An empty ``cpu_ns`` says that none is known.
    """

    trial: Count
    step: str
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
    outcome: str
    phase: str
    error: str
    message: str
    end_ns: Nanoseconds
    queued_ns: Nanoseconds
    connection: str
    node: str = ""


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
    level: str
    text: str


class RunFinished(msgspec.Struct, array_like=True, tag=10, frozen=True):
    """The run ended in an orderly way."""

    outcome: str
    counts: dict[str, Count]


class Link(msgspec.Struct, array_like=True, tag=11, frozen=True):
    """First in every frame but the header's: which frame it is, and the checksum of the one before."""

    frame: Count
    before: Count


Event = Header | Clock | Cell | TrialStarted | Mark | PhaseEnded | Actions | TrialEnded | Health | Notice | RunFinished
TAGS: Final = range(12)
"""Of the events above, links too: one of these that cannot be read is damage, not a novelty."""

_decode_batch = msgspec.msgpack.Decoder(list[Event | Link]).decode
_decode_raw = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_decode_event = msgspec.msgpack.Decoder(Event | Link).decode
_decode_any = msgspec.msgpack.Decoder().decode


class Frames:
    """The batches of a whole file, checked; ``skipped`` and ``torn_bytes`` are known once it is exhausted."""

    def __init__(self, path: Path) -> None:
        """Read the file into memory; raises SourceError if that fails."""
        self.path = path
        self.skipped = 0  # events of kinds that this version does not know
        self.torn_bytes = 0  # an unfinished last frame: the writer died
        self.offset = 0  # of the frame whose batch was handed out last
        try:
            self._data = path.read_bytes()
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror}") from error
        if not self._data:
            raise SourceError(f"{path} is empty", 0)

    def __iter__(self) -> Iterator[list[Event]]:
        """Batch after batch, a header first; raises SourceError, with the offset, where the file is damaged."""
        view = memoryview(self._data)
        start = before = count = 0
        chained = False
        while start < len(view):
            end = self._frame_end(start)
            if end is None:
                self._check_torn_tail(start)
                break
            payload = view[start + PREFIX.size : end]
            link, events = self._events(payload, start)
            if count == 0:
                self._check_header(events)
            elif count == 1:
                chained = link is not None
            if link != (Link(count, before) if chained else None):
                raise self._damaged(start, f"another frame belongs here, number {count}")
            if count and Header in map(type, events):
                raise self._damaged(start, "another recording begins here")
            self.offset = start
            yield events
            start, before, count = end, zlib.crc32(payload), count + 1
        if start == 0:
            raise self._damaged(0, "it has no header")

    def _check_header(self, events: list[Event]) -> None:
        first = events[0] if events else None
        if not isinstance(first, Header):
            raise self._damaged(0, "it has no header")
        if first.magic != MAGIC:
            raise self._damaged(0, "its header says otherwise")
        if first.version > FORMAT_VERSION:
            raise SourceError(
                f"{self.path} has format version {first.version}, this program reads up to "
                f"{FORMAT_VERSION}; install a newer one",
                0,
            )

    def _frame_end(self, start: int) -> int | None:
        """Where the frame at ``start`` ends, None if the file ends before; SourceError if it is none."""
        data = self._data
        if len(data) - start < PREFIX.size:
            if data[start] != EXT32:
                raise self._damaged(start, "not the start of a frame")
            return None
        marker, length, kind, crc = PREFIX.unpack_from(data, start)
        if marker != EXT32 or kind != FRAME_TYPE or not CRC_BYTES < length <= MAX_LENGTH:
            raise self._damaged(start, "not the start of a frame")
        end: int = start + PREFIX.size + length - CRC_BYTES
        if end > len(data):
            return None
        if zlib.crc32(memoryview(data)[start + PREFIX.size : end]) != crc:
            raise self._damaged(start, "checksum mismatch")
        return end

    def _check_torn_tail(self, start: int) -> None:
        """A frame that runs past the end is a crash only if no intact one starts behind its first byte."""
        behind = start
        while (behind := self._data.find(EXT32, behind + 1)) >= 0:
            try:
                intact = self._frame_end(behind) is not None
            except SourceError:
                continue
            if intact:
                raise self._damaged(start, f"its length is wrong, an intact frame follows at byte {behind}")
        self.torn_bytes = len(self._data) - start

    def _events(self, payload: memoryview, offset: int) -> tuple[Link | None, list[Event]]:
        told: list[Event | Link]
        try:
            try:
                told, unknown = _decode_batch(payload), 0
            except msgspec.ValidationError:
                known = [_known(raw) for raw in _decode_raw(payload)]
                told, unknown = [event for event in known if event is not None], known.count(None)
        except Exception as error:  # not UTF-8, nested too deep …: whatever it is, this is not what was written
            raise self._damaged(offset, str(error)) from error
        if len(told) + unknown > MAX_EVENTS:
            raise self._damaged(offset, f"{len(told) + unknown} events in one frame")
        self.skipped += unknown
        link = told[0] if told and isinstance(told[0], Link) else None
        events = cast("list[Event]", told[1:] if link else told)
        if Link in map(type, events):
            raise self._damaged(offset, "a link within a frame")
        return link, events

    def _damaged(self, offset: int, what: str) -> SourceError:
        if offset == 0:
            return SourceError(f"{self.path} is not a taxtui recording: {what}", 0)
        return SourceError(
            f"{self.path}: damaged at byte {offset}: {what}; "
            "`taxtui recordings verify --salvage OUT` keeps what is intact",
            offset,
        )


def _known(raw: msgspec.Raw) -> Event | Link | None:
    """An event, None where a later version added it. Raises whatever msgspec does."""
    try:
        event: Event | Link = _decode_event(raw)
    except msgspec.ValidationError as error:
        told = _decode_any(raw)
        if isinstance(told, list) and told and type(told[0]) is int and told[0] in TAGS:
            raise ValueError(f"event of kind {told[0]}: {error}") from error
        return None
    return event
