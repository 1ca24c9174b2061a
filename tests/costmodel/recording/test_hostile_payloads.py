"""Frames with a valid checksum and a hostile payload: the reader refuses them with the offset of the frame."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, seed, settings

import costmodel
from costmodel import SourceError, framing, read_events
from tests.support.fuzz import hostile

HEADER = msgspec.msgpack.encode([[0, "taxtui", 1, "r", {}, {}]])


def outcome(path: Path) -> tuple[int, int] | int:
    """Events and skipped ones; the offset where the file is refused."""
    try:
        summary = read_events(path, lambda event: None)
    except SourceError as error:
        assert "\n" not in str(error)
        return error.offset
    return summary.events, summary.skipped


@seed(18)
@settings(max_examples=300, deadline=None)
@given(hostile.recordings)
def test_any_bytes_are_read_or_refused_at_a_frame(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("r") / "r.msgpack"
    path.write_bytes(data)
    result = outcome(path)
    if isinstance(result, int):
        assert result in [0, *(offset for offset, _ in framing.FrameParser().feed(data))]


@pytest.mark.parametrize(
    "event",
    [
        b"\x94\x09\x01\xa4info\xa2\xff\xfe",  # a notice that is not UTF-8
        b"\x95\x09\x01\xa4info\xa1x" + b"\x91" * 5_000 + b"\x90",  # a field of tomorrow, nested without end
        b"\x92\x63\xa1\xff",  # an event of tomorrow that is not UTF-8
        msgspec.msgpack.encode([9, -1, "info", "x"]),
        msgspec.msgpack.encode([9, 2**63, "info", "x"]),
        msgspec.msgpack.encode([4, 1, "running", 1.5, 0]),
        msgspec.msgpack.encode([6, 1, "action", 0, [], [], [float("nan")], [0], [], [], []]),
        msgspec.msgpack.encode([6, 1, "action", 0, [], [], [5], [-2], [], [], []]),
        msgspec.msgpack.encode([7, 1, "ok", "", "", "", -5, 0, "warm"]),
        msgspec.msgpack.encode([4, 1, "running"]),
        msgspec.msgpack.encode([8, 0, 0, float("nan"), 0, 0, 0, 0, 0]),
        msgspec.msgpack.encode([10, "finished", {"ok": -1}]),
    ],
)
def test_an_event_that_cannot_be_is_damage_with_the_offset_of_its_frame(tmp_path: Path, event: bytes) -> None:
    path = tmp_path / "r.msgpack"
    path.write_bytes(hostile.sealed([HEADER, b"\x91" + event]))
    offset = len(framing.frame(HEADER))
    assert outcome(path) == offset
    with pytest.raises(SourceError, match=f"damaged at byte {offset}: "):
        costmodel.load(path)


def test_durations_that_add_up_to_more_than_a_recording_can_say_are_damage_in_the_cost_model(tmp_path: Path) -> None:
    batches = [msgspec.msgpack.decode(payload) for payload in hostile.payloads()]
    for event in (event for batch in batches for event in batch if event[0] == 6 and event[2] == "action"):
        event[4] = event[6] = [hostile.MAX_INT] * len(event[6])
    path = tmp_path / "r.msgpack"
    path.write_bytes(hostile.sealed([msgspec.msgpack.encode(batch) for batch in batches]))
    with pytest.raises(SourceError, match="damaged"):
        costmodel.load(path)
