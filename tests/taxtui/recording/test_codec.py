"""Codec and recorder: round trips, cuts, flipped bits, bounds, newer versions, full disks, and what others do."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import costmodel
from costmodel.errors import SourceError
from costmodel.recording import framing
from costmodel.recording.events import (
    Actions,
    Event,
    Header,
    Mark,
    Notice,
    PhaseEnded,
    RunFinished,
    TrialEnded,
    TrialStarted,
)
from costmodel.recording.follower import Follower, read_events
from costmodel.recording.framing import MAX_EVENTS, MAX_LENGTH
from taxtui.commands.recordings import command
from taxtui.errors import RecordingError, UsageError, WriteFailed
from taxtui.recording import writer
from taxtui.recording.writer import Recorder, Sealer
from tests.support.fuzz import hostile
from tests.taxtui.tui import story

HEADER = story.header([])


def sample() -> list[Event]:
    """A small whole recording: one trial of three actions."""
    trial = story.trial(0, 0, 5, durations_ns=[100, 200, 300], runs_ns=[90, -1, 250], think_ns=[4, 5, 6])
    return [HEADER, story.clock(), *trial, RunFinished("finished", {"ok": 1})]


def write(path: Path, stream: list[Event]) -> bytes:
    return story.record(path, stream).read_bytes()


def read_back(path: Path) -> tuple[list[Event], Follower]:
    got: list[Event] = []
    return got, read_events(path, got.append)


def test_any_msgpack_library_can_walk_the_file(tmp_path: Path) -> None:
    data = write(tmp_path / "a.msgpack", sample())
    offset = 0
    while offset < len(data):
        size = int.from_bytes(data[offset + 1 : offset + 5])
        ext = msgspec.msgpack.decode(data[offset : offset + 6 + size])
        assert (ext.code, len(ext.data)) == (0x54, size)
        offset += 6 + size


def test_every_cut_is_a_torn_tail_or_a_clear_error(tmp_path: Path) -> None:
    whole = sample()
    data = write(tmp_path / "a.msgpack", whole)
    path = tmp_path / "cut.msgpack"
    header_end = next(framing.FrameParser().feed(data))[1].__len__() + framing.PREFIX.size
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        if cut < header_end:
            with pytest.raises(SourceError):
                read_back(path)
            continue
        got, summary = read_back(path)
        assert got == whole[: len(got)], "what is left is a prefix, unchanged"
        assert not summary.complete
        assert summary.size_bytes == cut


def test_every_flipped_bit_is_noticed_or_harmless(tmp_path: Path) -> None:
    whole = sample()
    data = write(tmp_path / "a.msgpack", whole)
    path = tmp_path / "flipped.msgpack"
    for bit in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        got: list[Event] = []
        try:
            summary = read_events(path, got.append)
        except SourceError as error:
            assert "\n" not in str(error)
        else:
            assert not summary.complete, f"bit {bit} went unnoticed"
            assert summary.torn_bytes > 0
        assert got == whole[: len(got)], f"bit {bit} changed a number"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "file is empty"),
        (b"hello, this is a text file", "not a taxtui recording"),
        (framing.frame(msgspec.msgpack.encode([[9, 1, "info", "x"]])), "has no header"),
        (Sealer().seal([Header("taxtui", 2, "r", {}, {})])[0], "format version 2, this taxtui reads up to 1"),
        (framing.frame(b"\xc1\xc1"), "not a taxtui recording: "),
        (framing.frame(msgspec.msgpack.encode([[0, "other", 1, "r", {}, {}]])), "header says otherwise"),
    ],
)
def test_what_is_not_a_recording_says_so(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "x.msgpack"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=words):
        read_back(path)
    with pytest.raises(SourceError, match=r"cannot read .*: Is a directory"):
        read_back(tmp_path)


def test_unknown_events_and_later_fields_are_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "newer.msgpack"
    later: list[object] = [[99, "new"], [9, 5, "info", "text", "a field of tomorrow"], [98]]
    path.write_bytes(Sealer().seal([HEADER])[0] + framing.frame(msgspec.msgpack.encode(later)))
    got, summary = read_back(path)
    assert got == [HEADER, Notice(5, "info", "text")]
    assert summary.skipped == 2


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.msgpack"
    path.write_bytes(b"precious")
    with pytest.raises(UsageError, match="nothing is overwritten"):
        Recorder(path)
    assert path.read_bytes() == b"precious"
    with pytest.raises(UsageError, match="cannot create"):
        Recorder(tmp_path / "no" / "folder.msgpack")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_keeps_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.msgpack"
    recorder = Recorder(path)
    recorder.add(HEADER)
    whole = path.read_bytes()
    real = writer.os.write
    monkeypatch.setattr(writer.os, "write", lambda fd, data: real(fd, data[:5]) if len(data) > 5 else 0)
    with pytest.raises(WriteFailed, match="No space left"):
        recorder.add(TrialStarted(0, 0, "s", 0, 0))
    monkeypatch.undo()
    recorder.close()
    assert path.read_bytes() == whole
    assert read_back(path)[0] == [HEADER]


ints = st.integers(0, 2**63 - 1)
columns = st.lists(ints, max_size=5)
texts = st.text(max_size=30)
any_event = st.one_of(
    st.builds(TrialStarted, ints, ints, texts, ints, ints, ints, st.booleans(), ints),
    st.builds(Mark, ints, texts, ints, ints),
    st.builds(PhaseEnded, ints, texts, ints, ints),
    st.builds(
        Actions, ints, texts, ints, columns, columns, columns, st.lists(st.integers(-1, 2**63 - 1)), *[columns] * 3
    ),
    st.builds(TrialEnded, ints, texts, texts, texts, texts, ints, ints, texts),
    st.builds(Notice, ints, texts, texts),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(any_event, max_size=30))
def test_any_stream_survives_the_round_trip(tmp_path_factory: pytest.TempPathFactory, stream: list[Event]) -> None:
    path = tmp_path_factory.mktemp("r") / "a.msgpack"
    data = write(path, [HEADER, *stream])
    batches = [framing.decode(payload, offset) for offset, payload in framing.FrameParser().feed(data)]
    assert [event for batch in batches for event in batch.events] == [HEADER, *stream]


def test_a_follower_hands_out_what_stands_before_the_damage_and_then_keeps_refusing(tmp_path: Path) -> None:
    path = tmp_path / "a.msgpack"
    data = bytearray(write(path, sample()))
    offset = [offset for offset, _ in framing.FrameParser().feed(bytes(data))][-1]
    data[-1] ^= 1
    path.write_bytes(data)
    with Follower(path) as follower:
        assert follower.poll() == sample()[:-1]
        for _ in range(2):
            with pytest.raises(SourceError, match=f"damaged at byte {offset}: checksum mismatch"):
                follower.poll()
    with pytest.raises(SourceError, match=f"head -c {offset} FILE > OUT"):
        read_back(path)
    path.write_bytes(data[:offset])
    assert read_back(path)[0] == sample()[:-1]


Frames = list[bytes]
SPLICES: Final[dict[str, Callable[[Frames, Frames], Frames]]] = {
    "the slowest half removed": lambda own, _: own[:4] + own[9:],
    "one frame removed": lambda own, _: own[:7] + own[8:],
    "the second frame removed": lambda own, _: own[:1] + own[2:],
    "two frames swapped": lambda own, _: [*own[:5], own[6], own[5], *own[7:]],
    "a frame doubled": lambda own, _: [*own[:6], own[5], *own[6:]],
    "a frame of another file": lambda own, other: [*own[:6], other[7], *own[7:]],
    "another file behind": lambda own, other: own + other,
    "the same file behind": lambda own, _: own + own,
    "an unchained frame": lambda own, _: [*own[:6], framing.frame(b"\x90"), *own[6:]],
    "without its header": lambda own, _: own[1:],
}


def cut(path: Path) -> Frames:
    """A file as its frames."""
    return [framing.frame(payload) for payload in hostile.payloads(path.read_bytes())]


def chained(path: Path, trials: int = 8) -> Frames:
    return cut(story.record(path, story.run(trials)))


def without_link(payload: bytes) -> list[object]:
    link, *told = msgspec.msgpack.decode(payload)
    return told if link[0] == 11 else [link, *told]


def refused_at(path: Path) -> int:
    """The byte at which the reader refuses the file."""
    with pytest.raises(SourceError) as refusal:
        costmodel.load(path)
    assert refusal.value.offset is not None
    return refusal.value.offset


@pytest.mark.parametrize("what", SPLICES)
def test_a_spliced_file_is_damaged_where_the_splice_is(what: str, tmp_path: Path) -> None:
    own, other = chained(tmp_path / "own", trials=8), chained(tmp_path / "other", trials=9)
    spliced = SPLICES[what](own, other)
    path = tmp_path / "spliced"
    path.write_bytes(b"".join(spliced))
    first = next((n for n, (a, b) in enumerate(zip(spliced, own, strict=False)) if a != b), len(own))
    assert refused_at(path) == len(b"".join(spliced[:first]))


def test_a_chain_goes_through_every_frame_and_a_file_without_one_is_told_so(tmp_path: Path) -> None:
    linked, unchained = tmp_path / "chained", tmp_path / "unchained"
    chained(linked)
    without = [msgspec.msgpack.encode(without_link(payload)) for payload in hostile.payloads(linked.read_bytes())]
    unchained.write_bytes(hostile.sealed(without))
    seen = [read_events(path, lambda event: None) for path in (linked, unchained)]
    assert [one.chained for one in seen] == [True, False]
    assert seen[0].events == seen[1].events
    assert all(one.complete for one in seen)
    lines = CliRunner().invoke(command, ["verify", str(linked), str(unchained)]).stdout.splitlines()
    assert "unchained" not in lines[0]
    assert "unchained" in lines[1]


def test_a_link_stands_first_in_a_frame_and_nowhere_else(tmp_path: Path) -> None:
    header, second, *_ = hostile.payloads(b"".join(chained(tmp_path / "chained")))
    raws = without_link(second)
    path = tmp_path / "r"
    path.write_bytes(hostile.sealed([header, msgspec.msgpack.encode([*raws, [11, 1, 0]])]))
    assert refused_at(path) == len(framing.frame(header))


@pytest.mark.parametrize("change", [{"ok": 1}, {"ok": -1}, {"lost": 2}])
def test_an_end_that_counts_other_trials_than_are_there_is_no_end(change: dict[str, int], tmp_path: Path) -> None:
    run = story.run(8)
    counts = story.ended_trials(run)
    run[-1] = RunFinished("finished", {**counts, **{key: counts.get(key, 0) + more for key, more in change.items()}})
    path = story.record(tmp_path / "r.msgpack", run)
    _, summary = read_back(path)
    assert (summary.ended, summary.complete) == (True, False)
    assert not costmodel.load(path).complete  # type: ignore[union-attr]
    said = CliRunner().invoke(command, ["verify", str(path)])
    assert said.exit_code == 1
    assert "incomplete (trials are missing" in said.stdout


def test_a_batch_never_holds_more_events_than_the_format_allows() -> None:
    events: list[Event] = [Notice(0, "", "")] * (MAX_EVENTS + 3)
    written = Sealer().seal(events)
    sizes = [len(msgspec.msgpack.decode(payload)) for _, payload in framing.FrameParser().feed(b"".join(written))]
    assert all(size <= MAX_EVENTS for size in sizes)
    assert sum(sizes) == len(events) + len(written) - 1, "a link in each but the first"


def test_a_disk_that_is_full_only_when_it_is_forced_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(fd: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(writer.os, "fsync", fsync)  # type: ignore[attr-defined]
    recorder = Recorder(tmp_path / "r.msgpack")
    recorder.add(HEADER)
    with pytest.raises(WriteFailed, match="quota exceeded; `taxtui recordings verify` shows the intact part"):
        recorder.close()
    recorder.close()


@pytest.mark.parametrize("harm", ["removed", "replaced", "truncated", "appended to"])
@pytest.mark.parametrize("at_the_end", [False, True])
def test_what_others_do_to_the_file_is_noticed_at_the_next_write(harm: str, at_the_end: bool, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r.msgpack")
    recorder.add(HEADER)
    data = recorder.path.read_bytes()
    if harm in ("removed", "replaced"):
        recorder.path.unlink()
    if harm != "removed":
        recorder.path.write_bytes({"replaced": b"", "truncated": data[:10], "appended to": data + b"x"}[harm])
    with pytest.raises(WriteFailed, match=r"cannot continue .*; run again"):
        recorder.close() if at_the_end else recorder.add(TrialStarted(0, 0, "s", 0, 0))
    recorder.close()


@pytest.mark.parametrize("more", [0, 1])
def test_the_largest_event_fills_a_frame_and_a_larger_one_is_refused(more: int) -> None:
    event = Notice(0, "", "x" * (MAX_LENGTH - 14 + more))
    words = "one event of 1048573 bytes does not fit a frame of 1048576 bytes"
    with pytest.raises(RecordingError, match=words) if more else nullcontext():
        [data] = Sealer().seal([event])
        [(offset, payload)] = framing.FrameParser(7).feed(data)
        assert (offset, len(payload), payload[-1:]) == (7, MAX_LENGTH - 4, b"x")


def written(path: Path, events: list[Event]) -> list[bytes]:
    """Write events, behind those that are there; return the payloads of the file's frames."""
    with Recorder(path, append=path.exists()) as recorder:
        for event in events:
            recorder.add(event)
    assert recorder.size_bytes == path.stat().st_size
    return [payload for _, payload in framing.FrameParser().feed(path.read_bytes())]


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
    with pytest.raises(SourceError, match="frame 7 of this file belongs" if linked else "frame 8 of another file"):
        chain.add(frames[8], payloads[8], 99)
    with pytest.raises(SourceError, match="frame 7 of this file" if linked else "byte 99: another recording begins"):
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
