"""Frames: how events stand in a file, and how damage is told from a torn tail.

A frame is one msgpack ``ext32`` object of type 0x54: ``C9 | u32be length | 54 | crc32 u32be | payload``, where
``length`` counts crc and payload, and the payload is a msgpack array of events. So the file is a plain msgpack
stream; docs/recording-format.md describes all of it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from taxtui.errors import RecordingError
from taxtui.recording.events import TAGS, Event

EXT32: Final = 0xC9
FRAME_TYPE: Final = 0x54
PREFIX: Final = struct.Struct(">BIBI")  # ext32, length, type, crc
CRC_BYTES: Final = 4
MAX_LENGTH: Final = 1 << 20
MAX_EVENTS: Final = 65_536

_encode = msgspec.msgpack.Encoder().encode
_decode_batch = msgspec.msgpack.Decoder(list[Event]).decode
_decode_event = msgspec.msgpack.Decoder(Event).decode
_decode_any = msgspec.msgpack.Decoder().decode
split = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
"""The events of a payload that ``decode`` has accepted, each as its bytes."""


class Batch(NamedTuple):
    """What one frame holds."""

    events: list[Event]
    unknown: int  # events of kinds that a later version added


def frame(payload: bytes) -> bytes:
    """One frame around a payload of at most ``MAX_LENGTH`` − 4 bytes."""
    return PREFIX.pack(EXT32, len(payload) + CRC_BYTES, FRAME_TYPE, zlib.crc32(payload)) + payload


def encode(events: list[Event]) -> list[bytes]:
    """Events as frames: one, or as many as the bounds on size and count require."""
    if len(events) > MAX_EVENTS:
        return encode(events[:MAX_EVENTS]) + encode(events[MAX_EVENTS:])
    payload = _encode(events)
    if len(payload) + CRC_BYTES <= MAX_LENGTH:
        return [frame(payload)]
    if len(events) == 1:
        raise RecordingError(f"one event of {len(payload)} bytes does not fit a frame of {MAX_LENGTH} bytes")
    half = len(events) // 2
    return encode(events[:half]) + encode(events[half:])


def decode(payload: bytes, offset: int) -> Batch:
    """The events of the frame at ``offset``: the only place where taxtui makes events of bytes.

    Raises:
        RecordingError: with that offset: no list of events, a value that its field cannot have, or too many events.
    """
    try:
        try:
            batch = Batch(_decode_batch(payload), 0)
        except msgspec.ValidationError:
            told = [_known(raw) for raw in split(payload)]
            batch = Batch([event for event in told if event is not None], told.count(None))
    except Exception as error:  # not UTF-8, nested too deep …: whatever it is, these bytes are not what was written
        raise RecordingError(f"damaged at byte {offset}: {error}", offset) from error
    if (count := len(batch.events) + batch.unknown) > MAX_EVENTS:
        raise RecordingError(f"damaged at byte {offset}: {count} events in one frame", offset)
    return batch


def _known(raw: msgspec.Raw) -> Event | None:
    """An event, None where a later version added it. Raises whatever msgspec does."""
    try:
        event: Event = _decode_event(raw)
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
        behind = next_valid(self._buffer, 1)
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
    payload = bytes(memoryview(data)[start + PREFIX.size : end])
    if zlib.crc32(payload) != crc:
        raise RecordingError(f"damaged at byte {offset}: checksum mismatch", offset)
    return payload


def next_valid(data: bytes | bytearray, start: int) -> int | None:
    """Where the next frame with a valid checksum starts, at or after ``start``."""
    while (start := data.find(EXT32, start)) >= 0:
        try:
            if payload_at(data, start, start) is not None:
                return start
        except RecordingError:
            pass  # not a frame: look on
        start += 1
    return None
