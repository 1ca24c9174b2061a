"""The writing side: bounds, disks that fill up early and late, and what a reader says of what it cannot open."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from costmodel.errors import SourceError
from costmodel.recording import framing
from costmodel.recording.events import Event, Header, Notice, TrialStarted
from costmodel.recording.follower import read_events
from costmodel.recording.framing import MAX_EVENTS
from taxtui.errors import RecordingError, WriteFailed
from taxtui.recording import writer
from taxtui.recording.writer import Recorder, Sealer

HEADER = Header("taxtui", 1, "r", {}, {})


def test_a_batch_never_holds_more_events_than_the_format_allows() -> None:
    events: list[Event] = [Notice(0, "", "")] * (MAX_EVENTS + 3)
    written = Sealer().seal(events)
    sizes = [len(msgspec.msgpack.decode(payload)) for _, payload in framing.FrameParser().feed(b"".join(written))]
    assert all(size <= MAX_EVENTS for size in sizes)
    assert sum(sizes) == len(events) + len(written) - 1, "a link in each but the first"


def test_a_reader_refuses_a_batch_with_more(tmp_path: Path) -> None:
    path = tmp_path / "r.msgpack"
    many = msgspec.msgpack.encode([[9, 0, "", ""]] * (MAX_EVENTS + 1))
    path.write_bytes(Sealer().seal([HEADER])[0] + framing.frame(many))
    with pytest.raises(SourceError, match=f"{MAX_EVENTS + 1} events in one frame"):
        read_events(path, lambda event: None)


def test_one_event_that_is_larger_than_a_frame_is_refused() -> None:
    with pytest.raises(RecordingError, match="one event of 1048594 bytes does not fit a frame of 1048576 bytes"):
        Sealer().seal([Notice(0, "", "x" * ((1 << 20) + 8))])


def test_closing_twice_is_fine_and_writes_what_is_queued(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r.msgpack")
    recorder.add(HEADER)
    recorder.add(Notice(1, "info", "queued"))
    recorder.close()
    recorder.close()
    got: list[Event] = []
    assert not read_events(recorder.path, got.append).complete
    assert got[-1] == Notice(1, "info", "queued")


def test_a_disk_that_is_full_only_when_it_is_forced_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(fd: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(writer.os, "fsync", fsync)  # type: ignore[attr-defined]
    recorder = Recorder(tmp_path / "r.msgpack")
    recorder.add(HEADER)
    with pytest.raises(WriteFailed, match="quota exceeded; `taxtui recordings verify` shows the intact part"):
        recorder.close()
    recorder.close()


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"cannot read .*: Is a directory"):
        read_events(tmp_path, lambda event: None)


def removed(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"")


def truncated(path: Path) -> None:
    os.truncate(path, 10)


def appended_to(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


@pytest.mark.parametrize("harm", [removed, replaced, truncated, appended_to])
@pytest.mark.parametrize("at_the_end", [False, True])
def test_what_others_do_to_the_file_is_noticed_at_the_next_write(
    harm: Callable[[Path], None], at_the_end: bool, tmp_path: Path
) -> None:
    recorder = Recorder(tmp_path / "r.msgpack")
    recorder.add(Header("taxtui", 1, "r", {}, {}))
    harm(recorder.path)
    with pytest.raises(WriteFailed, match=r"cannot continue .*; run again"):
        recorder.close() if at_the_end else recorder.add(TrialStarted(0, 0, "s", 0, 0))
    recorder.close()
