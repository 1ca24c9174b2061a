"""Frames of a recording: how events are stored in a file, and how damage differs from a torn tail.

A frame is one msgpack ``ext32`` object of type 0x54: ``C9 | u32be length | 54 | crc32 u32be | payload``. ``length``
counts the checksum and the payload; the payload is a msgpack array of events. The whole file is a plain msgpack stream,
which docs/recording-format.md describes.

Every frame after the first begins with a link: its own number and the checksum of the frame before it.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple, cast

import msgspec

from costmodel.errors import SourceError
from costmodel.recording.events import TAGS, Event, Header, Link

EXT32: Final = 0xC9
FRAME_TYPE: Final = 0x54
PREFIX: Final = struct.Struct(">BIBI")  # ext32, length, type, crc
CRC_BYTES: Final = 4
MAX_LENGTH: Final = 1 << 20
MAX_EVENTS: Final = 65_536
MAX_SEARCHED: Final = 64 << 20
"""Maximum bytes to check in the search for an intact frame; a file with more false starts is forged."""

_BEGINNING: Final = re.compile(b"(?=\xc9\x00[\x00-\x10][\x00-\xff]{2}\x54)")

_decode_batch = msgspec.msgpack.Decoder(list[Event | Link]).decode
_decode_event = msgspec.msgpack.Decoder(Event | Link).decode


class Batch(NamedTuple):
    """The content of one frame."""

    events: list[Event]
    unknown: int  # events of later versions
    link: Link | None  # None: first frame, or a file of the first version


def frame(payload: bytes) -> bytes:
    """Return one frame around a payload of at most ``MAX_LENGTH`` - 4 bytes."""
    return PREFIX.pack(EXT32, len(payload) + CRC_BYTES, FRAME_TYPE, zlib.crc32(payload)) + payload


def decode(payload: bytes, offset: int) -> Batch:
    """Decode the events of the frame at ``offset``. No other function makes events of bytes.

    Raises:
        SourceError: the payload is no list of events, a field has an impossible value, or the events are too many.
    """
    try:
        try:
            decoded, unknown = _decode_batch(payload), 0
        except msgspec.ValidationError:
            singles = [_decode_one(raw) for raw in msgspec.msgpack.decode(payload, type=list[msgspec.Raw])]
            decoded, unknown = [event for event in singles if event is not None], singles.count(None)
        link = decoded[0] if decoded and isinstance(decoded[0], Link) else None
        events = cast("list[Event]", decoded[1:] if link else decoded)
        if Link in map(type, events):
            raise ValueError("a link within a frame")
        if (count := len(decoded) + unknown) > MAX_EVENTS:
            raise ValueError(f"{count} events in one frame")
    except Exception as error:  # not UTF-8, nested too deep …: damage
        raise damaged(offset, str(error)) from error
    return Batch(events, unknown, link)


def _decode_one(raw: msgspec.Raw) -> Event | Link | None:
    """Decode one event; None for a tag of a later version."""
    try:
        event: Event | Link = _decode_event(raw)
    except msgspec.ValidationError as error:
        value = msgspec.msgpack.decode(raw)
        if isinstance(value, list) and value and type(value[0]) is int and value[0] in TAGS:
            raise ValueError(f"event of kind {value[0]}: {error}") from error
        return None
    return event


class Chain:
    """Checks the order and integrity of frames by their links."""

    def __init__(self, *, within: bool = False) -> None:
        """``within``: the first frame is within the file, so that frames before it are unknown."""
        self.chained: bool | None = None  # None: unknown before the second frame
        self._next: Link | None = None if within else Link(0, 0)  # link to the next frame

    def add(self, batch: Batch, payload: bytes, offset: int) -> None:
        """Check the next frame. Raises ``SourceError`` where another frame belongs at ``offset``."""
        link, expected = batch.link, self._next
        number = link.frame if link else expected.frame if expected else 0
        if expected is not None and expected.frame == 0:
            if link is not None:
                raise damaged(offset, "the first frame is missing")
        else:
            if self.chained is None:  # decided by the second frame
                self.chained = link is not None
            if link is not None and not self.chained:
                raise damaged(offset, f"frame {link.frame} of another file")
            if expected is not None and self.chained and link != expected:
                raise damaged(offset, f"frame {expected.frame} of this file belongs here")
            if expected is not None and Header in map(type, batch.events):
                raise damaged(offset, "another recording begins here")
        self._next = Link(number + 1, zlib.crc32(payload))


class FrameParser:
    """Cuts a growing stream of bytes into the payloads of its frames."""

    def __init__(self, offset: int = 0) -> None:
        """``offset``: of the first byte of the stream in the file."""
        self.offset = offset  # first byte after the complete frames
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, payload) of every frame that ``chunk`` completes.

        Raises:
            SourceError: the bytes at ``offset`` are no frame, or the checksum is wrong.
        """
        self._buffer += chunk
        start = 0
        try:
            while (payload := payload_at(self._buffer, start, self.offset)) is not None:
                yield self.offset, payload
                size = PREFIX.size + len(payload)  # after the yield: a rejected frame stays the next
                start += size
                self.offset += size
        finally:
            del self._buffer[:start]

    def finish(self) -> int:
        """Return the bytes of a torn tail at the end of the file.

        Raises:
            SourceError: intact frames follow the torn one, so the file is damaged.
        """
        try:
            behind = next(intact_frames(self._buffer, 1), None)
        except SourceError as error:
            raise damaged(self.offset, f"{error} follow") from error
        if behind is not None:
            follows = f"the frame's length is wrong, intact frames follow at byte {self.offset + behind[0]}"
            raise damaged(self.offset, follows)
        return len(self._buffer)


def payload_at(data: bytes | bytearray, start: int, offset: int) -> bytes | None:
    """Return the payload of the frame at ``start``, or None if incomplete; ``offset`` is for the message."""
    if len(data) - start < PREFIX.size:
        if len(data) > start and data[start] != EXT32:
            raise damaged(offset, "not the start of a frame")
        return None
    marker, length, kind, crc = PREFIX.unpack_from(data, start)
    if marker != EXT32 or kind != FRAME_TYPE or not CRC_BYTES < length <= MAX_LENGTH:
        raise damaged(offset, "not the start of a frame")
    end = start + PREFIX.size + length - CRC_BYTES
    if end > len(data):
        return None
    with memoryview(data) as view, view[start + PREFIX.size : end] as payload:
        if zlib.crc32(payload) != crc:
            raise damaged(offset, "checksum mismatch")
        return bytes(payload)


def damaged(offset: int, problem: str) -> SourceError:
    """Return the error for damage at ``offset``."""
    return SourceError(f"damaged at byte {offset}: {problem}", offset)


def intact_frames(data: bytes | bytearray, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield offset and payload of each frame with a valid checksum in arbitrary bytes, from ``start``.

    Raises:
        SourceError: more than ``MAX_SEARCHED`` bytes of false beginnings.
    """
    searched = 0
    while (match := _BEGINNING.search(data, start)) is not None:
        start = match.start()
        del match  # releases the buffer
        try:
            payload = payload_at(data, start, start)
        except SourceError:
            payload = None
            searched += PREFIX.unpack_from(data, start)[1]
            if searched > MAX_SEARCHED:
                raise SourceError("too many beginnings of frames", start) from None
        if payload is None:
            start += 1
        else:
            yield start, payload
            start += PREFIX.size + len(payload)
