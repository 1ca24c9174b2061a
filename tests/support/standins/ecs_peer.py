"""The agent's end of a Session Manager data channel, without I/O: what the client is tested against.

It does what the real agent was seen to do, also where that is awkward: it withholds acknowledgements until its terminal
exists, acknowledges and discards input during a handshake, repeats acknowledgements of duplicates, resends only its
oldest frame, and passes output through a loop over UTF-8 characters that damages U+FFFD and holds back a torn tail.
"""

from __future__ import annotations

import codecs
import json
import struct
from typing import Any, Literal

from taxtui.substrates.aws.ecs import protocol
from taxtui.substrates.aws.ecs.protocol import Frame

RTO_NS = 200_000_000

HANDSHAKE_ACTIONS = {
    "plain": [{"ActionType": "SessionType", "ActionParameters": {"SessionType": "InteractiveCommands"}}],
    "kms": [
        {"ActionType": "SessionType", "ActionParameters": {"SessionType": "InteractiveCommands"}},
        {"ActionType": "KMSEncryption", "ActionParameters": {"KMSKeyId": "alias/x", "Challenge": "eA=="}},
    ],
}


class AgentEnd:
    """The agent's state. ``discarded`` is the input that it acknowledged and threw away."""

    def __init__(self, *, handshake: Literal["none", "plain", "kms"] = "none", terminal: bool = True) -> None:
        self.terminal = terminal
        self.terminated = False
        self.discarded = b""
        self._shaking = handshake != "none"
        self._outbox: list[bytes] = []
        self._unacked: dict[int, tuple[bytes, int]] = {}
        self._next = 0
        self._expected = 0
        self._early: dict[int, Frame] = {}
        self._tail = b""
        if self._shaking:
            request = {"AgentVersion": "3.3.0.0", "RequestedClientActions": HANDSHAKE_ACTIONS[handshake]}
            self._send(protocol.HANDSHAKE_REQUEST, json.dumps(request).encode(), 0)

    def write(self, data: bytes, now_ns: int) -> None:
        passed, self._tail = rune_loop(self._tail + data)
        for at in range(0, len(passed), 1024):
            self._send(protocol.OUTPUT, passed[at : at + 1024], now_ns)

    def take(self) -> list[bytes]:
        frames, self._outbox = self._outbox, []
        return frames

    def tick(self, now_ns: int) -> None:
        """Send the oldest unacknowledged frame again when it is due."""
        for sequence, (data, at_ns) in list(self._unacked.items())[:1]:
            if now_ns >= at_ns + RTO_NS:
                self._unacked[sequence] = (data, now_ns)
                self._outbox.append(data)

    def receive(self, data: bytes, now_ns: int) -> bytes:
        frame = Frame.decode(data)
        if frame.kind == protocol.ACKNOWLEDGE:
            self._unacked.pop(json.loads(frame.payload)["AcknowledgedMessageSequenceNumber"], None)
            return b""
        assert frame.kind == protocol.INPUT_DATA, frame.kind
        assert len(frame.payload) <= 1024
        if frame.payload_type == protocol.OUTPUT and not self.terminal and not self._shaking:
            return b""  # no acknowledgement: the client must send it again
        self._acknowledge(frame)
        if frame.sequence < self._expected:
            return b""
        self._early[frame.sequence] = frame
        taken = b""
        while self._expected in self._early:
            taken += self._accept(self._early.pop(self._expected), now_ns)
            self._expected += 1
        return taken

    @property
    def idle(self) -> bool:
        return not self._unacked

    def _accept(self, frame: Frame, now_ns: int) -> bytes:
        if frame.payload_type == protocol.FLAG:
            self.terminated = self.terminated or frame.payload == struct.pack(">I", 2)
        elif frame.payload_type == protocol.HANDSHAKE_RESPONSE:
            answers = json.loads(frame.payload)["ProcessedClientActions"]
            if any(answer["ActionStatus"] != 1 for answer in answers):
                self.terminated = True
            else:
                self._send(protocol.HANDSHAKE_COMPLETE, b'{"HandshakeTimeToComplete":1,"CustomerMessage":""}', now_ns)
            self._shaking = False
        elif frame.payload_type == protocol.OUTPUT:
            if not self._shaking:
                return frame.payload
            self.discarded += frame.payload
        return b""

    def _acknowledge(self, frame: Frame) -> None:
        body = {
            "AcknowledgedMessageType": frame.kind,
            "AcknowledgedMessageId": str(frame.id),
            "AcknowledgedMessageSequenceNumber": frame.sequence,
            "IsSequentialMessage": True,
        }
        self._outbox.append(message(protocol.ACKNOWLEDGE, json.dumps(body).encode(), flags=3))

    def _send(self, payload_type: int, payload: bytes, now_ns: int) -> None:
        data = message(protocol.OUTPUT_DATA, payload, sequence=self._next, payload_type=payload_type)
        self._unacked[self._next] = (data, now_ns)
        self._outbox.append(data)
        self._next += 1


def message(kind: str, payload: bytes, **fields: Any) -> bytes:
    return Frame(kind=kind, payload=payload, **fields).encode()


def closed(reason: str = "") -> bytes:
    """What the service sends when a session is over."""
    body = {"MessageType": "channel_closed", "SchemaVersion": 1, "SessionId": "s", "Output": reason}
    return message(protocol.CHANNEL_CLOSED, json.dumps(body).encode())


def rune_loop(data: bytes) -> tuple[bytes, bytes]:
    """``data`` as the agent passes it on, and the torn tail that it keeps for later."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    whole = decoder.decode(data)
    return whole.replace("\ufffd", "\udcef").encode("utf-8", "surrogateescape"), decoder.getstate()[0]
