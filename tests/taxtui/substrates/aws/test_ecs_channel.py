"""The data channel under any interleaving of drop, duplicate, reorder and delay."""

from __future__ import annotations

import contextlib
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from taxtui.errors import ExecFailed
from taxtui.substrates.aws.ecs import protocol
from taxtui.substrates.aws.ecs.protocol import Channel, Frame, FrameError
from tests.support.standins.ecs_peer import AgentEnd, closed, message

MS = 1_000_000
DATA = st.binary(min_size=1, max_size=3000).map(lambda data: data.replace(b"\xef", b"."))  # the agent damages U+FFFD


class Interleavings(RuleBasedStateMachine):
    """A client and an agent with two bags of frames between them, from which any frame may come next."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.client = Channel("token")
        self.bags: tuple[list[bytes], list[bytes]] = ([], [])  # to the agent, to the client
        self.typed, self.printed = b"", b""
        self.arrived, self.shown = b"", b""

    @initialize(handshake=st.sampled_from(["none", "plain"]), terminal=st.booleans())
    def connect(self, handshake: str, terminal: bool) -> None:
        self.agent = AgentEnd(handshake=handshake, terminal=terminal)  # type: ignore[arg-type]

    def collect(self) -> None:
        self.bags[0].extend(self.client.take())
        self.bags[1].extend(self.agent.take())

    def hand_over(self, to_client: bool, frame: bytes) -> None:
        if to_client:
            self.shown += self.client.receive(frame, self.now)
        else:
            self.arrived += self.agent.receive(frame, self.now)
        self.collect()

    @rule(data=DATA)
    def client_writes(self, data: bytes) -> None:
        self.typed += data
        self.client.write(data, self.now)
        self.collect()

    @rule(data=DATA)
    def agent_writes(self, data: bytes) -> None:
        self.printed += data
        self.agent.write(data, self.now)
        self.collect()

    @rule()
    def terminal_appears(self) -> None:
        self.agent.terminal = True

    @rule(ms=st.integers(1, 5000))
    def time_passes(self, ms: int) -> None:
        self.now += ms * MS
        self.client.tick(self.now)
        self.agent.tick(self.now)
        self.collect()

    @precondition(lambda self: any(self.bags))
    @rule(data=st.data(), fate=st.sampled_from(["deliver", "deliver", "deliver", "drop", "duplicate", "damage"]))
    def network(self, data: st.DataObject, fate: str) -> None:
        to_client = data.draw(st.sampled_from([side for side in (0, 1) if self.bags[side]]))
        bag = self.bags[to_client]
        at = data.draw(st.integers(0, len(bag) - 1))
        if fate == "duplicate":
            self.hand_over(bool(to_client), bag[at])
            return
        frame = bag.pop(at)
        if fate == "damage" and to_client and len(frame) > 120:
            self.hand_over(True, frame[:-1] + bytes([frame[-1] ^ 1]))
        elif fate != "drop":
            self.hand_over(bool(to_client), frame)

    @invariant()
    def once_and_in_order(self) -> None:
        assert self.typed.startswith(self.arrived)
        assert self.printed.startswith(self.shown)
        assert self.client.end is None

    def teardown(self) -> None:
        """Once the network behaves, everything arrives within a bounded time."""
        if not hasattr(self, "agent"):
            return
        self.agent.terminal = True
        self.printed += b"\n"
        self.agent.write(b"\n", self.now)  # frees what the agent holds back of a torn character
        for _ in range(2000):
            self.collect()
            while any(self.bags):
                for to_client in (0, 1):
                    frames, self.bags[to_client][:] = list(self.bags[to_client]), []
                    for frame in frames:
                        self.hand_over(bool(to_client), frame)
            if (self.arrived, self.shown) == (self.typed, self.printed):
                break
            self.time_passes(1000)
        assert self.agent.discarded == b"", "input was sent during the handshake"
        assert (self.arrived, self.shown) == (self.typed, self.printed)


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_an_agent_that_never_acknowledges_ends_the_channel_with_a_named_error() -> None:
    client = Channel("token")
    client.receive(message(protocol.OUTPUT_DATA, b"$ ", payload_type=protocol.OUTPUT), 0)
    client.write(b"echo\n", 0)
    now = 0
    while client.end is None:
        now += protocol.RESEND_NS
        client.tick(now)
    assert isinstance(client.end, ExecFailed)
    assert "acknowledged nothing" in str(client.end)
    assert 300_000 * MS <= now <= 301_000 * MS  # five minutes of attempts


SEEDS = [
    message(protocol.OUTPUT_DATA, b"hello", payload_type=1),
    message(protocol.OUTPUT_DATA, b'{"RequestedClientActions":[{"ActionType":"SessionType"}]}', payload_type=5),
    message(protocol.ACKNOWLEDGE, b'{"AcknowledgedMessageSequenceNumber":0}', flags=3),
    message("start_publication", b""),
    closed("reason"),
]


@settings(max_examples=200)
@given(
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), min_size=1, max_size=4),
    st.integers(0, 400),
)
def test_a_damaged_frame_raises_only_the_documented_error(
    frame: bytes, changes: list[tuple[int, int]], length: int
) -> None:
    data = bytearray(frame)
    for at, value in changes:
        data[at % len(data)] = value
    damaged = bytes(data[:length])
    with contextlib.suppress(FrameError):
        Frame.decode(damaged)
    Channel("token").receive(damaged, 1)


@pytest.mark.parametrize("payload", [b"[" * 100_000, b'{"Output":' + b"[" * 100_000, b"\xff" * 50, b"null", b"3", b""])
def test_hostile_json_under_a_valid_digest_is_dropped(payload: bytes) -> None:
    for kind, payload_type in ((protocol.ACKNOWLEDGE, 0), (protocol.CHANNEL_CLOSED, 0)):
        channel = Channel("token")
        assert channel.receive(message(kind, payload, payload_type=payload_type), 1) == b""
        assert channel.end is None
    channel = Channel("token")
    channel.receive(message(protocol.OUTPUT_DATA, payload, payload_type=protocol.HANDSHAKE_REQUEST), 1)
    assert isinstance(channel.end, ExecFailed)


def test_the_halves_of_an_identifier_are_swapped_on_the_wire() -> None:
    frame_id = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
    wire = Frame(kind="x", id=frame_id).encode()
    assert wire[64:80].hex() == "8899aabbccddeeff0011223344556677"
