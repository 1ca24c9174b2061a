"""Frames at their bounds, between other bytes, and behind those of an earlier run."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest

from costmodel.errors import SourceError
from costmodel.recording import framing
from costmodel.recording.events import Event, Notice
from costmodel.recording.follower import read_events
from costmodel.recording.framing import MAX_LENGTH
from taxtui.errors import RecordingError, UsageError
from taxtui.recording.writer import Recorder, Sealer
from tests.taxtui.tui import story

HEADER: list[Any] = [0, "taxtui", 1, "r", {}, {}]


def written(path: Path, events: list[Event]) -> list[bytes]:
    """Write events, behind those that are there; return the payloads of the file's frames."""
    with Recorder(path, append=path.exists()) as recorder:
        for event in events:
            recorder.add(event)
    assert recorder.size_bytes == path.stat().st_size
    return [payload for _, payload in framing.FrameParser().feed(path.read_bytes())]


@pytest.mark.parametrize("more", [0, 1])
def test_a_plan_and_a_frame_at_their_bounds_are_read_and_beyond_them_refused(more: int, tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(14 + more):
        deep = [deep]
    for batches in ([[[0, "taxtui", 1, "r", {"deep": deep}, {}]]], [[HEADER], [[9, 0, "", ""]] * (65_536 + more)]):
        path = tmp_path / "r"
        path.write_bytes(b"".join(framing.frame(msgspec.msgpack.encode(batch)) for batch in batches))
        with pytest.raises(SourceError) if more else nullcontext():
            read_events(path, lambda event: None)


@pytest.mark.parametrize("more", [0, 1])
def test_the_largest_event_fills_a_frame(more: int) -> None:
    event = Notice(0, "", "x" * (MAX_LENGTH - 14 + more))
    with pytest.raises(RecordingError) if more else nullcontext():
        [data] = Sealer().seal([event])
        [(offset, payload)] = framing.FrameParser(7).feed(data)
        assert (offset, len(payload), payload[-1:]) == (7, MAX_LENGTH - 4, b"x")


def test_intact_frames_are_found_between_other_bytes() -> None:
    first, second = framing.frame(b"\x90"), framing.frame(b"\x91\xc0")
    broken = first[:-1] + b"?"
    data = b"\xc9\x00" + first + broken + second + first[:9]
    places = [2, 2 + 2 * len(first)]
    assert list(framing.intact_frames(data)) == [(places[0], b"\x90"), (places[1], b"\x91\xc0")]
    assert list(framing.intact_frames(data, 3)) == [(places[1], b"\x91\xc0")]


@pytest.mark.parametrize("linked", [True, False])
def test_a_chain_may_begin_within_a_file(linked: bool, tmp_path: Path) -> None:
    payloads = written(tmp_path / "own", story.run(8))
    frames = [framing.decode(payload, 0) for payload in payloads]
    chain = framing.Chain(within=True)
    for number in (5, 6):
        batch = frames[number] if linked else frames[number]._replace(link=None)
        chain.add(batch, payloads[number], 0)
        assert chain.chained is linked
    with pytest.raises(SourceError, match="frame 7 of this file belongs here" if linked else "frame 8 of another"):
        chain.add(frames[8], payloads[8], 99)
    with pytest.raises(SourceError, match="byte 99: another recording begins" if not linked else "frame 7 of this"):
        chain.add(frames[0], payloads[0], 99)


def test_a_recording_is_continued_behind_its_last_frame(tmp_path: Path) -> None:
    path, run = tmp_path / "r.msgpack", story.run(8)
    written(path, run[:40])
    written(path, run[40:])
    summary = read_events(path, lambda event: None)
    assert (summary.chained, summary.complete, summary.events) == (True, True, len(run))
    path.write_bytes(path.read_bytes()[:-9] + b"x" * 9)
    with pytest.raises(RecordingError, match="checksum mismatch"):
        Recorder(path, append=True)
    with pytest.raises(UsageError, match="cannot read"):
        Recorder(tmp_path / "none", append=True)
