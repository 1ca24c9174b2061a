"""Reading a recording to its last byte, and what is remembered of it; deleting to the trash."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import msgspec
import pytest

from taxtui.errors import TaxtuiError
from taxtui.live.catalogue import CatalogueEntry, inspect
from taxtui.recording import events
from taxtui.recording.frames import Sealer, frame
from taxtui.tui.recordings import trash, verification
from taxtui.tui.recordings.verification import Verdict, Verification
from tests.tui import story
from tests.tui.story import record


def entry_of(path: Path) -> CatalogueEntry:
    entry = inspect(path)
    assert entry is not None
    return entry


def verdict_on(path: Path) -> Verdict:
    verdict = Verification(entry_of(path)).run()
    assert verdict is not None
    return verdict


def test_a_complete_recording_is_counted(tmp_path: Path) -> None:
    run = story.run(20)
    verdict = verdict_on(record(tmp_path / "a.msgpack", run))
    assert verdict.state == "complete"
    assert verdict.text.startswith(f"complete and intact: {len(run)} events in ")
    assert verdict.advice == ""


def test_a_recording_without_its_end_says_what_is_torn_and_what_is_newer(tmp_path: Path) -> None:
    path = tmp_path / "a.msgpack"
    data = b"".join(Sealer().seal([event])[0] for event in story.run(3, finish=False))
    path.write_bytes(data + frame(msgspec.msgpack.encode([[99, "new"]])) + Sealer().seal([story.clock()])[0][:-4])
    verdict = verdict_on(path)
    assert verdict.state == "incomplete"
    assert verdict.text.startswith("intact, but the end of the run is missing: ")
    assert "1 events of a newer version are ignored" in verdict.text
    assert "bytes of a torn frame at the end are ignored" in verdict.text


def test_damage_far_from_both_ends_is_found_and_says_how_to_keep_the_rest(tmp_path: Path) -> None:
    path = record(tmp_path / "a b.msgpack", story.run(400))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert entry_of(path).state == "complete"  # the ends say so
    verdict = verdict_on(path)
    assert verdict.state == "damaged"
    assert verdict.text.startswith("damaged at byte ")
    assert verdict.advice == f"taxtui recordings verify '{path}' --salvage OUT.msgpack"


def test_of_what_is_no_recording_nothing_can_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.msgpack"
    path.write_bytes(b"hello")
    assert verdict_on(path) == Verdict("damaged", "not a taxtui recording")


def test_a_file_that_has_vanished_and_a_disk_that_fails_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = entry_of(record(tmp_path / "a.msgpack"))

    def fail(*args: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(verification.Follower, "poll", fail)
        verdict = Verification(entry).run()
    assert verdict == Verdict("damaged", "cannot be read beyond byte 0: Input/output error")
    entry.path.unlink()
    verdict = Verification(entry).run()
    assert verdict is not None
    assert verdict.text == f"cannot read {entry.path}: No such file or directory"


def test_frames_without_events_and_frames_of_the_largest_size_are_read_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.msgpack"
    large = [events.Notice(0, "info", "x" * 1000)] * 900
    frames = [Sealer().seal([story.header([])])[0], frame(b"\x90") * 200_000, Sealer().seal(large)[0] * 3]
    path.write_bytes(b"".join(frames) + Sealer().seal([events.RunFinished("finished", {})])[0])
    verdict = verdict_on(path)
    assert verdict == Verdict(
        "complete", "complete and intact: 2,702 events in 200,005 frames, unchained: of an early version"
    )


def test_it_stops_between_two_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "SLICE_BYTES", 4096)
    job = Verification(entry_of(record(tmp_path / "a.msgpack", story.run(400))))
    begun, stopped = threading.Event(), threading.Event()
    poll = verification.Follower.poll

    def slow(self: verification.Follower, max_bytes: int) -> list[events.Event]:
        told = poll(self, max_bytes)
        if self.offset > 50_000:
            begun.set()
            assert stopped.wait(20)
        return told

    monkeypatch.setattr(verification.Follower, "poll", slow)
    answers: list[Verdict | None] = []
    thread = threading.Thread(target=lambda: answers.append(job.run()))
    thread.start()
    assert begun.wait(20)
    assert 0.1 < job.share < 0.9
    job.stop()
    stopped.set()
    thread.join(20)
    assert answers == [None]
    assert job.share < 0.9


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The trash of a home of the test's own."""
    plat = pytest.importorskip("send2trash.plat_other", reason="the desktop's own trash is not for tests")
    monkeypatch.setattr("send2trash.send2trash", plat.send2trash)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(plat, "XDG_DATA_HOME", os.fsencode(tmp_path / "share"))
    monkeypatch.setattr(plat, "HOMETRASH_B", os.fsencode(tmp_path / "share/Trash"))
    return tmp_path


def test_a_file_goes_to_the_trash_and_can_be_taken_back(home: Path) -> None:
    path = record(home / "a.msgpack")
    content = path.read_bytes()
    trash.discard(path)
    assert not path.exists()
    assert (home / "share/Trash/files/a.msgpack").read_bytes() == content
    assert "a.msgpack" in (home / "share/Trash/info/a.msgpack.trashinfo").read_text()


def test_where_the_trash_fails_nothing_is_deleted(home: Path) -> None:
    path = record(home / "a.msgpack")
    (home / "share").write_text("in the way")
    with pytest.raises(TaxtuiError, match=r"^a\.msgpack was not deleted: the trash refused it: "):
        trash.discard(path)
    assert path.exists()
    path.unlink()
    with pytest.raises(TaxtuiError, match="File not found"):
        trash.discard(path)
