"""The binary messages of a Session Manager data channel: 116 bytes of header, the payload's length, the payload.

Big-endian throughout; text messages appear only once, before the first frame.
"""

from __future__ import annotations

import hashlib
import struct
import time
import uuid
from typing import Final

import msgspec

INPUT_DATA: Final = "input_stream_data"
OUTPUT_DATA: Final = "output_stream_data"
ACKNOWLEDGE: Final = "acknowledge"
CHANNEL_CLOSED: Final = "channel_closed"
PAUSED: Final = "pause_publication"

OUTPUT: Final = 1
HANDSHAKE_REQUEST: Final = 5
HANDSHAKE_RESPONSE: Final = 6
HANDSHAKE_COMPLETE: Final = 7
FLAG: Final = 10
STDERR: Final = 11

TERMINATE: Final = struct.pack(">I", 2)
"""Payload of a ``FLAG`` message: the agent must end the session."""

_HEADER: Final = struct.Struct(">I32sIQqQ16s32sI")
_LENGTH: Final = struct.Struct(">I")


class FrameError(ValueError):
    """The bytes are not a frame of this protocol."""


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One message; only stream messages are numbered."""

    kind: str
    created_ms: int = msgspec.field(default_factory=lambda: time.time_ns() // 1_000_000)  # Unix time
    sequence: int = 0
    flags: int = 0
    id: uuid.UUID = msgspec.field(default_factory=uuid.uuid4)
    payload_type: int = 0
    payload: bytes = b""

    def encode(self) -> bytes:
        head = _HEADER.pack(
            _HEADER.size,
            self.kind.encode("ascii").ljust(32),
            1,  # schema version
            self.created_ms,
            self.sequence,
            self.flags,
            _swap(self.id.bytes),
            hashlib.sha256(self.payload).digest(),
            self.payload_type,
        )
        return head + _LENGTH.pack(len(self.payload)) + self.payload

    @classmethod
    def decode(cls, data: bytes) -> Frame:
        """The frame in ``data``, with a valid digest. Raises :class:`FrameError`, and no other exception."""
        try:
            size, _, _, created_ms, sequence, flags, id_, digest, payload_type = _HEADER.unpack_from(data)
            payload = data[size + _LENGTH.size :]  # a later version may have a longer header
            (length,) = _LENGTH.unpack_from(data, size)
        except struct.error as error:
            raise FrameError(f"{len(data)} bytes are too few for a header") from error
        if size < _HEADER.size or length != len(payload) or created_ms == 0:
            raise FrameError("the header does not fit the frame")
        if payload and hashlib.sha256(payload).digest() != digest:
            raise FrameError("the payload does not match the digest")
        return cls(
            kind=kind_of(data),
            created_ms=created_ms,
            sequence=sequence,
            flags=flags,
            id=uuid.UUID(bytes=_swap(id_)),
            payload_type=payload_type,
            payload=payload,
        )


def kind_of(data: bytes) -> str:
    """The kind of a message, also without a valid digest."""
    return data[4:36].strip(b" \0").decode("ascii", "replace")


def _swap(id_: bytes) -> bytes:
    """A UUID as sent: the low half first."""
    return id_[8:] + id_[:8]
