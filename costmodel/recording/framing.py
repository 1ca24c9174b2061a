"""The recording format on the wire: frames around batches of events, checked from the first byte to the last."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

import msgspec

from costmodel.errors import SourceError
from costmodel.recording.events import TAGS, Event, Header, Link
from costmodel.recording.validation import Causality
from costmodel.regular_file import read_regular

FORMAT_VERSION: Final = 1
MAGIC: Final = "taxtui"

PREFIX: Final = struct.Struct(">BIBI")  # ext32, length of crc and payload, type, crc
EXT32: Final = 0xC9
FRAME_TYPE: Final = 0x54
CRC_BYTES: Final = 4
MAX_LENGTH: Final = 1 << 20
MAX_EVENTS: Final = 65_536
MAX_FILE: Final = 4 << 30
"""Bytes of a recording. The model needs up to 20 times as much memory."""
MAX_SEARCHED: Final = 64 << 20
"""Bytes whose checksums are tried in looking for an intact frame: what has more beginnings was made to have them."""

_BEGINNING: Final = re.compile(b"(?=\xc9\x00[\x00-\x10][\x00-\xff]{2}\x54)")

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
            self._data = read_regular(path, MAX_FILE)
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror}") from error
        if not self._data:
            raise SourceError(f"{path} is empty", 0)

    def __iter__(self) -> Iterator[list[Event]]:
        """Batch after batch, a header first; raises SourceError, with the offset, where the file is damaged."""
        view = memoryview(self._data)
        start = before = count = 0
        chained, causality = False, Causality()
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
            try:
                causality.add(events)
            except ValueError as error:
                raise self._damaged(start, str(error)) from error
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
        behind, searched = start + 1, 0
        while (found := _BEGINNING.search(self._data, behind)) is not None:
            behind = found.start() + 1
            try:
                end = self._frame_end(found.start())
            except SourceError:
                searched += PREFIX.unpack_from(self._data, found.start())[1]
                if searched > MAX_SEARCHED:
                    raise self._damaged(start, "too many beginnings of frames follow") from None
                continue
            if end is not None:
                raise self._damaged(start, f"its length is wrong, an intact frame follows at byte {found.start()}")
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
