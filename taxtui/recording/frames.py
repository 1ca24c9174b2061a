"""Frames: how events stand in a file, and how damage is told from a torn tail.

A frame is one msgpack ``ext32`` object of type 0x54: ``C9 | u32be length | 54 | crc32 u32be | payload``, where
``length`` counts crc and payload, and the payload is a msgpack array of events. So the file is a plain msgpack
stream; docs/recording-format.md describes all of it.

Each frame names its number and the one before it, so that none can be taken out, moved or put in unnoticed.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, cast

import msgspec

from taxtui.errors import RecordingError
from taxtui.recording.events import TAGS, Event, Header, Link

EXT32: Final = 0xC9
FRAME_TYPE: Final = 0x54
PREFIX: Final = struct.Struct(">BIBI")  # ext32, length, type, crc
CRC_BYTES: Final = 4
MAX_LENGTH: Final = 1 << 20
MAX_EVENTS: Final = 65_536
MAX_SEARCHED: Final = 64 << 20
"""Bytes whose checksums are tried in looking for an intact frame: what has more beginnings was made to have them."""
_BEGINNING: Final = re.compile(b"(?=\xc9\x00[\x00-\x10][\x00-\xff]{2}\x54)")

_encode = msgspec.msgpack.Encoder().encode
_decode_batch = msgspec.msgpack.Decoder(list[Event | Link]).decode
_decode_event = msgspec.msgpack.Decoder(Event | Link).decode
_decode_any = msgspec.msgpack.Decoder().decode
_split = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


class Batch(NamedTuple):
    """What one frame holds."""

    events: list[Event]
    unknown: int  # events of kinds that a later version added
    link: Link | None  # None: the header's frame, or a file from before there were links


def frame(payload: bytes) -> bytes:
    """One frame around a payload of at most ``MAX_LENGTH`` − 4 bytes."""
    return PREFIX.pack(EXT32, len(payload) + CRC_BYTES, FRAME_TYPE, zlib.crc32(payload)) + payload


class Sealer:
    """Makes the frames of one file, each linked to the one before."""

    def __init__(self) -> None:
        """The next frame is the header's."""
        self._frame = 0
        self._before = 0

    def seal(self, events: Sequence[Event | msgspec.Raw]) -> list[bytes]:
        """Events as frames: one, or as many as the bounds on size and count require.

        Raises:
            RecordingError: one event alone is too large.
        """
        links = [Link(self._frame, self._before)] if self._frame else []
        if len(events) < MAX_EVENTS:
            payload = _encode([*links, *events])
            if len(payload) + CRC_BYTES <= MAX_LENGTH:
                self.passed(payload)
                return [frame(payload)]
            if len(events) == 1:
                raise RecordingError(f"one event of {len(payload)} bytes does not fit a frame of {MAX_LENGTH} bytes")
        half = len(events) // 2
        return self.seal(events[:half]) + self.seal(events[half:])

    def passed(self, payload: bytes) -> None:
        """Take a frame for written that holds this: the next one names it."""
        self._frame += 1
        self._before = zlib.crc32(payload)


class Chain:
    """Whether the frames of a file are the ones that were written, in that order."""

    def __init__(self, *, within: bool = False) -> None:
        """Begin with the header's frame, or ``within`` the file, where the first link is believed."""
        self.chained: bool | None = None  # None: not known before the second frame
        self._within = within
        self._frame = 0
        self._before = 0

    def add(self, batch: Batch, payload: bytes, offset: int) -> None:
        """The next frame.

        Raises:
            RecordingError: another frame belongs at ``offset``.
        """
        link = batch.link
        if self._within:
            self.chained, self._within = link is not None, False
        elif self._frame == 0:
            if link is not None:
                raise RecordingError(f"damaged at byte {offset}: the first frame is missing", offset)
        else:
            if self.chained is None:  # the second frame decides
                self.chained = link is not None
            self._check(link, offset)
        if self._frame and Header in map(type, batch.events):
            raise RecordingError(f"damaged at byte {offset}: another recording begins here", offset)
        self._frame = (link.frame if link else self._frame) + 1
        self._before = zlib.crc32(payload)

    def _check(self, link: Link | None, offset: int) -> None:
        if self.chained and link != Link(self._frame, self._before):
            stands = "a frame of another file" if link is None or link.frame == self._frame else f"frame {link.frame}"
            raise RecordingError(f"damaged at byte {offset}: {stands} stands where frame {self._frame} belongs", offset)
        if not self.chained and link is not None:
            raise RecordingError(f"damaged at byte {offset}: frame {link.frame} of another file", offset)


def split(payload: bytes) -> list[msgspec.Raw]:
    """The events of a payload that ``decode`` has accepted, each as its bytes."""
    raws = _split(payload)
    return raws[1:] if raws and _decode_any(raws[0])[:1] == [Link.__struct_config__.tag] else raws


def decode(payload: bytes, offset: int) -> Batch:
    """The events of the frame at ``offset``: the only place where taxtui makes events of bytes.

    Raises:
        RecordingError: with that offset: no list of events, a value that its field cannot have, or too many events.
    """
    try:
        try:
            told, unknown = _decode_batch(payload), 0
        except msgspec.ValidationError:
            known = [_known(raw) for raw in _split(payload)]
            told, unknown = [event for event in known if event is not None], known.count(None)
        link = told[0] if told and isinstance(told[0], Link) else None
        events = cast("list[Event]", told[1:] if link else told)
        if Link in map(type, events):
            raise ValueError("a link within a frame")
    except Exception as error:  # not UTF-8, nested too deep …: whatever it is, these bytes are not what was written
        raise RecordingError(f"damaged at byte {offset}: {error}", offset) from error
    if (count := len(told) + unknown) > MAX_EVENTS:
        raise RecordingError(f"damaged at byte {offset}: {count} events in one frame", offset)
    return Batch(events, unknown, link)


def _known(raw: msgspec.Raw) -> Event | Link | None:
    """An event, None where a later version added it. Raises whatever msgspec does."""
    try:
        event: Event | Link = _decode_event(raw)
    except msgspec.ValidationError:
        told = _decode_any(raw)
        if isinstance(told, list) and told and type(told[0]) is int and told[0] in TAGS:
            raise
        return None
    return event


class FrameParser:
    """Cuts a growing stream of bytes into the payloads of its frames."""

    def __init__(self, offset: int = 0) -> None:
        """Begin at ``offset`` of the file, where a frame does."""
        self.offset = offset  # of the first byte that is not yet part of a complete frame
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, payload) of every frame that ``chunk`` completes.

        Raises:
            RecordingError: what stands at ``offset`` cannot be a frame, or its checksum is wrong.
        """
        self._buffer += chunk
        start = 0
        try:
            while (payload := payload_at(self._buffer, start, self.offset)) is not None:
                yield self.offset, payload
                size = PREFIX.size + len(payload)  # counted once it is taken: whoever refuses it stands before it
                start += size
                self.offset += size
        finally:
            del self._buffer[:start]

    def finish(self) -> int:
        """Say that the file ends here; the size in bytes of the torn tail, 0 where there is none.

        Raises:
            RecordingError: intact frames stand behind the torn one, so it is damage and not a crash.
        """
        try:
            behind = next_valid(self._buffer, 1)
        except RecordingError as error:
            raise RecordingError(f"damaged at byte {self.offset}: {error} follow", self.offset) from error
        if behind is not None:
            raise RecordingError(
                f"damaged at byte {self.offset}: the frame's length is wrong, intact frames follow at byte "
                f"{self.offset + behind}",
                self.offset,
                fix="`taxtui recordings verify --salvage OUT` keeps them",
            )
        return len(self._buffer)


def payload_at(data: bytes | bytearray, start: int, offset: int) -> bytes | None:
    """The payload of the frame at ``start``, None where it is not complete; ``offset`` is for the message."""
    if len(data) - start < PREFIX.size:
        if len(data) > start and data[start] != EXT32:
            raise RecordingError(f"damaged at byte {offset}: not the start of a frame", offset)
        return None
    marker, length, kind, crc = PREFIX.unpack_from(data, start)
    if marker != EXT32 or kind != FRAME_TYPE or not CRC_BYTES < length <= MAX_LENGTH:
        raise RecordingError(f"damaged at byte {offset}: not the start of a frame", offset)
    end = start + PREFIX.size + length - CRC_BYTES
    if end > len(data):
        return None
    with memoryview(data) as view, view[start + PREFIX.size : end] as payload:
        if zlib.crc32(payload) != crc:
            raise RecordingError(f"damaged at byte {offset}: checksum mismatch", offset)
        return bytes(payload)


class Search:
    """Looks for frames with a valid checksum in bytes that need not be any."""

    def __init__(self, data: bytes | bytearray, most_bytes: int = MAX_SEARCHED) -> None:
        """``most_bytes``: how many may be tried in vain, in all."""
        self._data = data
        self._left = most_bytes

    def next(self, start: int) -> int | None:
        """Where the next one starts, at or after ``start``.

        Raises:
            RecordingError: there are so many beginnings without a frame that the rest is not looked at.
        """
        while (found := _BEGINNING.search(self._data, start)) is not None:
            start = found.start()
            del found  # it holds the buffer
            try:
                if payload_at(self._data, start, start) is not None:
                    return start
            except RecordingError:
                self._left -= PREFIX.unpack_from(self._data, start)[1]
                if self._left < 0:
                    raise RecordingError("too many beginnings of frames", start) from None
            start += 1
        return None


def next_valid(data: bytes | bytearray, start: int) -> int | None:
    """Where the next frame with a valid checksum starts, at or after ``start``. Raises as ``Search.next``."""
    return Search(data).next(start)
