"""The binary messages of a Session Manager data channel: 116 bytes of header, the payload's length, the payload.

Big-endian throughout; text messages appear only once, before the first frame.
"""

from __future__ import annotations

import hashlib
import struct
import uuid
from typing import Final

import msgspec

INPUT_DATA: Final = "input_stream_data"
OUTPUT_DATA: Final = "output_stream_data"
ACKNOWLEDGE: Final = "acknowledge"
CHANNEL_CLOSED: Final = "channel_closed"
RESUMED: Final = "start_publication"
PAUSED: Final = "pause_publication"
UNCHECKED: Final = frozenset({RESUMED, PAUSED})
"""Messages of the service to agents, also sent to clients. May be short, without a valid digest."""

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
    created_ms: int  # Unix time
    sequence: int = 0
    flags: int = 0
    id: uuid.UUID
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
        if len(data) < _HEADER.size + _LENGTH.size:
            raise FrameError(f"{len(data)} bytes are too few for a header")
        size, kind, _, created_ms, sequence, flags, id_, digest, payload_type = _HEADER.unpack_from(data)
        if not _HEADER.size <= size <= len(data) - _LENGTH.size:
            raise FrameError(f"header length {size} in a frame of {len(data)} bytes")
        payload = data[size + _LENGTH.size :]  # a later version may have a longer header
        if _LENGTH.unpack_from(data, size) != (len(payload),):
            raise FrameError(f"the payload has {len(payload)} bytes, unlike the header's length")
        if payload and hashlib.sha256(payload).digest() != digest:
            raise FrameError("the payload does not match the digest")
        if created_ms == 0 or not kind.isascii():
            raise FrameError("no creation date" if kind.isascii() else "the message type is not ASCII")
        return cls(
            kind=kind_of(data),
            created_ms=created_ms,
            sequence=sequence,
            flags=flags,
            id=uuid.UUID(bytes=_swap(id_)),
            payload_type=payload_type,
            payload=payload,
        )


def _swap(id_: bytes) -> bytes:
    """A UUID as sent: the low half first."""
    return id_[8:] + id_[:8]


def kind_of(data: bytes) -> str:
    """The message type of a frame, possibly malformed, padded with spaces or NULs."""
    return data[4:36].strip(b" \0").decode("ascii", "replace")
