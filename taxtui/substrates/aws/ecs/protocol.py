"""The Session Manager data channel of ECS Exec, without I/O: frames and instants in, frames and bytes out.

A channel carries one terminal. Both directions number stream messages from 0. The receiver acknowledges each message,
and the sender repeats a message until the acknowledgement. Bytes are delivered once and in order although the network
drops, doubles, delays or reorders messages; or the channel ends with the reason.

::

    writer --write--> waiting --(open, window)--> unacked --take--> socket
    reader <--bytes-- expected <-- early <-------- receive <------- socket

Instants are nanoseconds of any monotonic clock. ``channel.py`` connects the protocol to a socket. A binary message is
116 bytes of header, the payload's length and the payload, big-endian throughout; the only text comes before.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import struct
import time
import uuid
from collections import deque
from typing import Final, TypeVar

import msgspec

from taxtui.errors import ExecFailed, SandboxLost, SubstrateError, SubstrateUnavailable

INPUT_DATA: Final = "input_stream_data"
OUTPUT_DATA: Final = "output_stream_data"
ACKNOWLEDGE: Final = "acknowledge"
CHANNEL_CLOSED: Final = "channel_closed"

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

CLIENT_VERSION: Final = "1.2.707.0"
"""Agents enable features by the version of the plug-in."""

_T = TypeVar("_T")

CHUNK: Final = 1024
"""Bytes per frame; as agents use."""
WINDOW: Final = 128
"""Unacknowledged frames at most. An agent without a terminal drops frames."""
EARLY_LIMIT: Final = 10_000
"""Frames that arrived early, at most."""

RESEND_NS: Final = 500_000_000
"""Wait for an acknowledgement before a frame is sent again."""
RESENDS: Final = 600
"""Attempts to send a frame again before the channel ends: five minutes."""


class FrameError(ValueError):
    """The bytes are not a frame of this protocol."""


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One message; only stream messages are numbered."""

    kind: str
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
            time.time_ns() // 1_000_000,
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
            size, kind, _, created_ms, sequence, flags, id_, digest, payload_type = _HEADER.unpack_from(data)
            payload = data[size + _LENGTH.size :]  # a later version may have a longer header
            (length,) = _LENGTH.unpack_from(data, size)
        except struct.error as error:
            raise FrameError(f"{len(data)} bytes are too few for a header") from error
        if size < _HEADER.size or length != len(payload) or created_ms == 0:
            raise FrameError("the header does not fit the frame")
        if payload and hashlib.sha256(payload).digest() != digest:
            raise FrameError("the payload does not match the digest")
        return cls(
            kind=kind.strip(b" \0").decode("ascii", "replace"),
            sequence=sequence,
            flags=flags,
            id=uuid.UUID(bytes=_swap(id_)),
            payload_type=payload_type,
            payload=payload,
        )


def _swap(id_: bytes) -> bytes:
    """A UUID as sent: the low half first."""
    return id_[8:] + id_[:8]


class SessionCut(SandboxLost):
    """The connection of a session broke; the container may still run."""


class _Acknowledgement(msgspec.Struct, rename="pascal"):
    acknowledged_message_type: str
    acknowledged_message_id: str
    acknowledged_message_sequence_number: int
    is_sequential_message: bool = True


class _Action(msgspec.Struct, rename="pascal"):
    action_type: str


class _HandshakeRequest(msgspec.Struct, rename="pascal"):
    requested_client_actions: list[_Action]


class _Closed(msgspec.Struct, rename="pascal"):
    output: str = ""


class Channel:
    """The client's end of one data channel.

    Input waits for the agent's first message: an agent acknowledges and discards input before the end of a handshake,
    and only the first message shows whether a handshake comes. Therefore the command of a session must print at once.
    Agents shake hands if KMS encrypts sessions; taxtui refuses encrypted sessions.

    Attributes:
        end: the reason of the channel's end, or None: :class:`SandboxLost` when the session ended, :class:`SessionCut`,
            :class:`ExecFailed` when the agent never acknowledged or is unintelligible,
            :class:`SubstrateUnavailable` for an encrypted session.
    """

    def __init__(self, token: str) -> None:
        self.end: SubstrateError | None = None
        self._token = token
        self._open = False
        self._outbox: list[bytes] = []
        self._waiting: deque[bytes] = deque()
        self._unacked: dict[int, tuple[bytes, int, int]] = {}  # frame, when sent, how often sent again
        self._next = 0
        self._expected = 0
        self._early: dict[int, Frame] = {}

    def greeting(self) -> str:
        """The text message before any frame; the token is the only credential of the channel."""
        return json.dumps(
            {
                "MessageSchemaVersion": "1.0",
                "RequestId": str(uuid.uuid4()),
                "TokenValue": self._token,
                "ClientId": str(uuid.uuid4()),
                "ClientVersion": CLIENT_VERSION,
            }
        )

    def write(self, data: bytes, now_ns: int) -> None:
        self._waiting.extend(data[at : at + CHUNK] for at in range(0, len(data), CHUNK))
        self._release(now_ns)

    def terminate(self, now_ns: int) -> None:
        """Ask the agent to end the session, ahead of unsent input."""
        self._waiting.clear()
        self._send(FLAG, TERMINATE, now_ns)

    def take(self) -> list[bytes]:
        """The frames to put on the socket now, in this order."""
        frames, self._outbox = self._outbox, []
        return frames

    def tick(self, now_ns: int) -> None:
        """Send every unacknowledged frame again when due."""
        for sequence, (data, at_ns, resends) in self._unacked.items():
            if self.end or now_ns < at_ns + RESEND_NS:
                continue
            if resends >= RESENDS:
                self.end = ExecFailed(
                    f"the session agent acknowledged nothing after {RESENDS} attempts",
                    fix="check the session agent of the task",
                )
                return
            self._unacked[sequence] = data, now_ns, resends + 1
            self._outbox.append(data)

    def lost(self, reason: str) -> None:
        """Record that the socket is gone; an earlier end stays the reason."""
        self.end = self.end or SessionCut(f"the session's connection was cut: {reason}")

    def receive(self, data: bytes, now_ns: int) -> bytes:
        """Take one binary message; return the new terminal output, often none. The sender repeats unreadable frames."""
        if self.end:
            return b""
        with contextlib.suppress(FrameError):
            frame = Frame.decode(data)
            if frame.kind == OUTPUT_DATA:
                return self._on_output(frame, now_ns)
            if frame.kind == ACKNOWLEDGE:
                self._unacked.pop(_parse(frame, _Acknowledgement).acknowledged_message_sequence_number, None)
                self._release(now_ns)
            elif frame.kind == CHANNEL_CLOSED:
                reason = _parse(frame, _Closed).output
                self.end = SandboxLost(f"the session ended: {reason}" if reason else "the session ended")
        return b""

    def _on_output(self, frame: Frame, now_ns: int) -> bytes:
        if frame.sequence >= self._expected + EARLY_LIMIT:
            return b""  # no room: without an acknowledgement the agent repeats the frame
        self._acknowledge(frame)
        if frame.sequence < self._expected:
            return b""
        self._early.setdefault(frame.sequence, frame)
        output = bytearray()
        while self._expected in self._early and not self.end:
            following = self._early.pop(self._expected)
            self._expected += 1
            if following.payload_type == HANDSHAKE_REQUEST:
                self._answer_handshake(following, now_ns)
                continue
            self._open = True
            self._release(now_ns)
            if following.payload_type in (OUTPUT, STDERR):
                output += following.payload
        return bytes(output)

    def _answer_handshake(self, frame: Frame, now_ns: int) -> None:
        try:
            actions = [action.action_type for action in _parse(frame, _HandshakeRequest).requested_client_actions]
        except FrameError as error:
            self.end = ExecFailed(f"the session agent's handshake cannot be read: {error}")
            return
        refused = [action for action in actions if action != "SessionType"]
        if refused:
            self.end = SubstrateUnavailable(
                f"taxtui does not support an action of the session agent: {', '.join(refused)}",
                fix="if KMS encrypts the cluster's sessions, remove the kmsKeyId of executeCommandConfiguration",
            )
            return
        done = [{"ActionType": action, "ActionStatus": 1, "ActionResult": None, "Error": ""} for action in actions]
        answer = {"ClientVersion": CLIENT_VERSION, "ProcessedClientActions": done, "Errors": []}
        self._send(HANDSHAKE_RESPONSE, json.dumps(answer).encode(), now_ns)

    def _acknowledge(self, frame: Frame) -> None:
        body = msgspec.json.encode(_Acknowledgement(frame.kind, str(frame.id), frame.sequence))
        self._outbox.append(Frame(kind=ACKNOWLEDGE, payload=body, flags=3).encode())  # SYN and FIN, as agents do

    def _release(self, now_ns: int) -> None:
        while self._open and self._waiting and len(self._unacked) < WINDOW:
            self._send(OUTPUT, self._waiting.popleft(), now_ns)

    def _send(self, payload_type: int, payload: bytes, now_ns: int) -> None:
        frame = Frame(kind=INPUT_DATA, payload=payload, sequence=self._next, payload_type=payload_type)
        data = frame.encode()
        self._unacked[self._next] = data, now_ns, 0
        self._outbox.append(data)
        self._next += 1


def _parse(frame: Frame, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(frame.payload, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(f"{frame.kind}: {error}") from error
