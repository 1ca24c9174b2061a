"""The Session Manager data channel of ECS Exec, without I/O: frames and instants in, frames and bytes out.

A channel carries one terminal. Both directions number stream messages from 0. The receiver acknowledges each message,
and the sender repeats a message until the acknowledgement. Bytes are delivered once and in order although the network
drops, doubles, delays or reorders messages; or the channel ends with the reason.

::

    writer --write--> waiting --(open, window)--> unacked --take--> socket
    reader <--bytes-- expected <-- early <-------- receive <------- socket

Instants are nanoseconds of any monotonic clock. ``channel.py`` connects the protocol to a socket.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections import deque
from typing import Final, TypeVar

import msgspec

from taxtui.errors import ExecFailed, SandboxLost, SubstrateError, SubstrateUnavailable
from taxtui.substrates.aws.ecs.frame import (
    ACKNOWLEDGE,
    CHANNEL_CLOSED,
    FLAG,
    HANDSHAKE_REQUEST,
    HANDSHAKE_RESPONSE,
    INPUT_DATA,
    OUTPUT,
    OUTPUT_DATA,
    PAUSED,
    STDERR,
    TERMINATE,
    Frame,
    FrameError,
    kind_of,
)

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
"""Attempts to send a frame before the channel ends: five minutes."""


class SessionCut(SandboxLost):
    """The connection of a session broke; the container may still run."""


class _Sent(msgspec.Struct):
    data: bytes
    at_ns: int
    resends: int = 0


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
        pauses: number of requests for a pause in a row: repeated requests may be the only sign of a dead agent.
    """

    def __init__(self, token: str) -> None:
        self.end: SubstrateError | None = None
        self.pauses = 0
        self._token = token
        self._open = False
        self._outbox: list[bytes] = []
        self._waiting: deque[bytes] = deque()
        self._unacked: dict[int, _Sent] = {}
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
        for sent in self._unacked.values():
            if self.end or now_ns < sent.at_ns + RESEND_NS:
                continue
            if sent.resends >= RESENDS:
                self.end = ExecFailed(
                    f"the session agent acknowledged nothing after {RESENDS} attempts",
                    fix="check the session agent of the task",
                )
                return
            sent.at_ns = now_ns
            sent.resends += 1
            self._outbox.append(sent.data)

    def lost(self, reason: str) -> None:
        """Record that the socket is gone; an earlier end stays the reason."""
        self.end = self.end or SessionCut(f"the session's connection was cut: {reason}")

    def receive(self, data: bytes, now_ns: int) -> bytes:
        """Take one binary message; return the new terminal output, often none. The sender repeats unreadable frames."""
        if self.end:
            return b""
        self.pauses = self.pauses + 1 if kind_of(data) == PAUSED else 0
        with contextlib.suppress(FrameError):
            frame = Frame.decode(data)
            if frame.kind == OUTPUT_DATA:
                return self._on_output(frame, now_ns)
            if frame.kind == ACKNOWLEDGE:
                self._on_acknowledge(frame, now_ns)
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
        output = []
        while self._expected in self._early and not self.end:
            output.append(self._accept(self._early.pop(self._expected), now_ns))
            self._expected += 1
        return b"".join(output)

    def _accept(self, frame: Frame, now_ns: int) -> bytes:
        """The next message in order."""
        if frame.payload_type == HANDSHAKE_REQUEST:
            self._answer_handshake(frame, now_ns)
            return b""
        self._open = True
        self._release(now_ns)
        return frame.payload if frame.payload_type in (OUTPUT, STDERR) else b""

    def _answer_handshake(self, frame: Frame, now_ns: int) -> None:
        try:
            actions = [action.action_type for action in _parse(frame, _HandshakeRequest).requested_client_actions]
        except FrameError as error:
            self.end = ExecFailed(f"the session agent's handshake cannot be read: {error}")
            return
        refused = [action for action in actions if action != "SessionType"]
        answer = {
            "ClientVersion": CLIENT_VERSION,
            "ProcessedClientActions": [
                {
                    "ActionType": action,
                    "ActionStatus": 3 if action in refused else 1,
                    "ActionResult": None,
                    "Error": "unsupported" if action in refused else "",
                }
                for action in actions
            ],
            "Errors": [f"{action} is unsupported" for action in refused],
        }
        self._send(HANDSHAKE_RESPONSE, json.dumps(answer).encode(), now_ns)
        if refused:
            self.end = SubstrateUnavailable(
                f"taxtui does not support an action of the session agent: {', '.join(refused)}",
                fix="if KMS encrypts the cluster's sessions, remove the kmsKeyId of executeCommandConfiguration",
            )

    def _on_acknowledge(self, frame: Frame, now_ns: int) -> None:
        self._unacked.pop(_parse(frame, _Acknowledgement).acknowledged_message_sequence_number, None)
        self._release(now_ns)

    def _acknowledge(self, frame: Frame) -> None:
        body = msgspec.json.encode(_Acknowledgement(frame.kind, str(frame.id), frame.sequence))
        self._outbox.append(Frame(kind=ACKNOWLEDGE, payload=body, flags=3).encode())  # SYN and FIN, as agents do

    def _release(self, now_ns: int) -> None:
        while self._open and self._waiting and len(self._unacked) < WINDOW:
            self._send(OUTPUT, self._waiting.popleft(), now_ns)

    def _send(self, payload_type: int, payload: bytes, now_ns: int) -> None:
        frame = Frame(kind=INPUT_DATA, payload=payload, sequence=self._next, payload_type=payload_type)
        self._unacked[self._next] = _Sent(frame.encode(), now_ns)
        self._outbox.append(self._unacked[self._next].data)
        self._next += 1


def _parse(frame: Frame, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(frame.payload, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(f"{frame.kind}: {error}") from error
