"""Reads a recording: followed live by the TUI, read back by everything else, salvaged where it is damaged."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

import msgspec

from taxtui.errors import RecordingError
from taxtui.recording.events import FORMAT_VERSION, MAGIC, Event, Header, RunFinished
from taxtui.recording.frames import PREFIX, FrameParser, decode, next_valid, payload_at


class Follower:
    """Reads a recording while it is being written, and afterwards."""

    CHUNK_BYTES: Final = 1 << 20

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            RecordingError: there is no such file, or it cannot be read.
        """
        try:
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise RecordingError(f"cannot read {path}: {error.strerror}") from error
        self.path = path
        self.header: Header | None = None
        self.complete = False  # RunFinished was seen
        self.skipped = 0  # events that this version does not understand
        self.frames = 0
        self._begun = False  # a first byte was read
        self._parser = FrameParser()
        self._damage: RecordingError | None = None  # to be raised once the events before it are handed out

    @property
    def offset(self) -> int:
        """Where the next frame begins: bytes of complete frames up to what was read last."""
        return self._parser.offset

    def poll(self, max_bytes: int = 8 << 20) -> list[Event]:
        """What was appended since the last call, about ``max_bytes`` of it; empty only at the end of the file.

        Raises:
            RecordingError: damage, not a recording, or a version that this program does not know. The events
                before it have been returned.
        """
        if self._damage:
            raise self._damage
        events: list[Event] = []
        at_once = min(self.CHUNK_BYTES, max_bytes)
        while (max_bytes > 0 or not events) and (chunk := self._file.read(at_once)):
            max_bytes -= len(chunk)
            self._begun = True
            try:
                for offset, payload in self._parser.feed(chunk):
                    events += self._events(offset, payload)
            except RecordingError as error:
                what = error if self.frames else "not a taxtui recording"
                self._damage = RecordingError(f"{self.path}: {what}", error.offset)
                if not events:
                    raise self._damage from error
                break
        return events

    def resume(self, offset: int) -> None:
        """Go on at ``offset``, where a frame begins; the header must have been read before."""
        self._file.seek(offset)
        self._parser = FrameParser(offset)
        self._damage = None
        self.complete = False

    def _events(self, offset: int, payload: bytes) -> list[Event]:
        self.frames += 1
        events, unknown = decode(payload, offset)
        self.skipped += unknown
        if self.header is None:
            self._check_header(events, offset)
        if events and isinstance(events[-1], RunFinished):
            self.complete = True
        return events

    def _check_header(self, events: list[Event], offset: int) -> None:
        first = events[0] if events else None
        if not isinstance(first, Header) or first.magic != MAGIC:
            raise RecordingError("not a taxtui recording: it has no header", offset)
        if first.version > FORMAT_VERSION:
            raise RecordingError(
                f"format version {first.version}, this taxtui reads up to {FORMAT_VERSION}",
                offset,
                fix="install a newer taxtui",
            )
        self.header = first

    def finish(self) -> int:
        """Say that nothing more will come; the size in bytes of a torn tail. Raises ``RecordingError``."""
        if self.header is None:
            what = "not a taxtui recording" if self._begun else "the file is empty"
            raise RecordingError(f"{self.path}: {what}", 0)
        try:
            return self._parser.finish()
        except RecordingError as error:
            raise RecordingError(f"{self.path}: {error}", error.offset) from error

    def summary(self, events: int) -> RecordingSummary:
        """What the whole file turned out to be, once all its events have been handed out. Raises ``RecordingError``."""
        torn = self.finish()
        assert self.header is not None  # finish() has checked it
        return RecordingSummary(
            header=self.header,
            complete=self.complete,
            frames=self.frames,
            events=events,
            skipped=self.skipped,
            torn_bytes=torn,
            size_bytes=self.offset + torn,
        )

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._file.close()

    def __enter__(self) -> Self:
        """The follower itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close it."""
        self.close()


class RecordingSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What a whole file turned out to be."""

    header: Header
    complete: bool  # it ends with RunFinished
    frames: int
    events: int
    skipped: int
    torn_bytes: int
    size_bytes: int


def read(path: Path, apply: Callable[[Event], object]) -> RecordingSummary:
    """Hand every event of a finished or crashed recording to ``apply``, in order.

    Raises:
        RecordingError: with the byte offset where the damage begins; the events before it have been applied.
    """
    count = 0
    with Follower(path) as follower:
        while events := follower.poll():
            for event in events:
                apply(event)
            count += len(events)
        return follower.summary(count)


def salvage(path: Path, out: Path) -> tuple[int, int]:
    """Copy the intact frames of a damaged recording to a new file; (frames kept, bytes lost).

    Raises:
        RecordingError: it cannot be read, no header frame is left, or ``out`` exists.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror}") from error
    kept: list[bytes] = []
    first: Event | None = None
    end = 0
    while (start := next_valid(data, end)) is not None:
        payload = payload_at(data, start, start)
        assert payload is not None
        end = start + PREFIX.size + len(payload)
        with contextlib.suppress(RecordingError):  # a valid checksum over what no reader would take is no intact frame
            events = decode(payload, start).events
            first = first if kept else next(iter(events), None)
            kept.append(data[start:end])
    if not isinstance(first, Header):
        raise RecordingError(f"{path}: its header is lost, nothing can be salvaged", 0)
    try:
        with out.open("xb") as file:
            file.writelines(kept)
    except OSError as error:
        raise RecordingError(f"cannot create {out}: {error.strerror}", fix="choose another name") from error
    return len(kept), len(data) - sum(map(len, kept))
