"""What the ends of a file tell of a recording, and which recordings there are."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from costmodel.errors import SourceError
from costmodel.recording import events
from costmodel.recording.follower import read_events
from costmodel.recording.framing import frame
from taxtui.cli import app
from taxtui.errors import UsageError
from taxtui.live import catalogue
from taxtui.live.catalogue import END_BYTES, CatalogueEntry, inspect, newest, scan
from taxtui.recording.writer import Sealer
from taxtui.tui.recordings.list import progress
from tests.taxtui.tui import story
from tests.taxtui.tui.story import record

LONG_AGO_S = story.UNIX_NS // 10**9


def aged(path: Path, seconds: float = LONG_AGO_S) -> Path:
    os.utime(path, (seconds, seconds))
    return path


def kept(path: Path, told: list[events.Event] | None = None, later_s: float = 0.0) -> Path:
    """A story that nobody has written to for long."""
    return aged(record(path, told), LONG_AGO_S + later_s)


def written(path: Path, *frames: list[events.Event] | bytes) -> Path:
    """A file of these frames, or bytes, that nobody has written to for long."""
    path.write_bytes(b"".join(f if isinstance(f, bytes) else b"".join(Sealer().seal(f)) for f in frames))
    return aged(path)


def told(path: Path, **options: Any) -> CatalogueEntry:
    entry = inspect(path, **options)
    assert entry is not None
    return entry


HEADER = story.header([story.planned("local")])
FINISHED = [events.RunFinished("finished", {"ok": 1})]
UNFINISHED = story.run(20, until=10, finish=False)


def test_a_complete_recording_tells_what_it_holds_and_the_command_lists_the_newest_first(
    folder: Path, tmp_path: Path
) -> None:
    entry = told(kept(folder / "a.msgpack", story.run(20)))
    assert (entry.state, entry.detail) == ("complete", "")
    assert entry.outcome == "finished"
    assert entry.substrates == ("local:bwrap", "docker:runc")
    assert (entry.trials, entry.cells, entry.workloads, entry.modes) == (40, 2, ("T0 x 10",), ("exec",))
    assert entry.counts == {"ok": 38, "failed": 2}
    assert entry.when_ns == story.UNIX_NS
    assert entry.size_bytes == entry.path.stat().st_size
    (folder / "junk.msgpack").write_bytes(b"no recording")
    result = CliRunner().invoke(app, ["recordings", "list", str(folder)])
    assert result.exit_code == 0, result.exception
    words = [line.split() for line in result.output.splitlines()]
    assert any(line[:2] == ["a", "finished"] and "40" in line for line in words)
    assert any(line[:4] == ["junk", "not", "a", "recording"] for line in words)
    assert "local:bwrap, docker:runc" in result.output
    empty = tmp_path / "empty"
    empty.mkdir()
    refused = CliRunner().invoke(app, ["recordings", "list", str(empty)])
    assert isinstance(refused.exception, UsageError)


def test_what_is_written_to_just_now_and_has_no_end_is_running(folder: Path) -> None:
    empty = written(folder / "empty.msgpack")
    assert told(empty).state == "empty"
    assert told(aged(empty, time.time())).state == "running"
    path = record(folder / "a.msgpack", UNFINISHED)
    assert told(aged(path, time.time() - 1)).state == "running"
    assert told(aged(path, time.time() - 60)).state == "incomplete"
    assert told(path, running=True).state == "running"  # a run that says so may be silent
    assert told(record(folder / "b.msgpack")).state == "complete"


UNKNOWN = frame(msgspec.msgpack.encode([[99, "new"]]))  # an event of a newer minor version


@pytest.mark.parametrize(
    ("frames", "state"),
    [
        ([UNFINISHED], "incomplete"),
        ([b"".join(frame for event in UNFINISHED for frame in Sealer().seal([event]))[:-7]], "incomplete"),
        ([[HEADER], UNKNOWN, FINISHED, UNKNOWN], "complete"),
        ([[HEADER], frame(b"\x01")], "damaged"),
        ([[HEADER], frame(b"\xc1")], "damaged"),
        ([[HEADER], frame(b"\x91" * 5000)], "damaged"),
        ([[HEADER], FINISHED, b"and then this"], "damaged"),
        ([b"hello"], "not a recording"),
        ([b"\xc9"], "not a recording"),
        ([bytes(100)], "not a recording"),
        ([frame(b"\x90")], "not a recording"),
        ([frame(msgspec.msgpack.encode(7))], "not a recording"),
        ([[msgspec.structs.replace(HEADER, version=9)], frame(b"unknown")], "newer version"),
    ],
)
def test_the_state_of_a_file_is_told_by_its_ends(folder: Path, frames: list[Any], state: str) -> None:
    entry = told(written(folder / "a.msgpack", *frames))
    assert entry.state == state
    assert state != "newer version" or "format version 9" in entry.detail
    if state == "incomplete":
        assert (entry.outcome, entry.counts) == ("", {})


def test_what_is_gone_or_no_file_is_not_listed(folder: Path) -> None:
    (folder / "folder.msgpack").mkdir()
    (folder / "gone.msgpack").symlink_to("nowhere")
    (folder / "loop.msgpack").symlink_to("loop.msgpack")
    os.mkfifo(folder / "pipe.msgpack")  # to open it would wait for a writer
    (folder / "README.md").write_text("")
    listing = scan()
    assert [(entry.name, entry.state) for entry in listing.entries] == [("loop", "unreadable")]
    assert inspect(folder / "never.msgpack") is None


def test_a_header_larger_than_what_is_read_at_once(folder: Path) -> None:
    cells = [story.planned(f"docker-{n}", image="x" * 300) for n in range(400)]
    path = written(folder / "a.msgpack", [story.header(cells)], [events.RunFinished("finished", {})])
    assert path.stat().st_size > 2 * END_BYTES
    assert told(path).cells == 400
    assert newest() == path


def test_only_the_ends_of_a_file_are_read(folder: Path) -> None:
    path = record(folder / "a.msgpack", story.run(400))
    assert told(path).size_bytes > 3 * END_BYTES
    os.truncate(path, 10**12)  # a hole of a terabyte: to read all of it would run into the time limit
    entry = told(aged(path))
    assert (entry.cells, entry.state) == (2, "incomplete")
    begin, *_, end = story.trial(1, 0, 0)
    filling = [events.Notice(1, "info", "x" * 1000)] * (END_BYTES // 500)
    path = written(folder / "b.msgpack", [HEADER], [begin], filling, [end])
    assert told(path).succeeded, "of a trial that starts before the end that is read"


def test_damage_near_the_end_of_a_long_file_has_the_offset_that_a_reader_finds(folder: Path) -> None:
    run = story.run(400)
    path = folder / "a.msgpack"
    sealer = Sealer()
    frames = [frame for event in run for frame in sealer.seal([event])]
    whole = b"".join(frames)
    assert len(whole) > 3 * END_BYTES
    at = len(whole) - len(frames[-1]) - 1  # in the last frame but one
    for data, problem in (
        (whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], "checksum mismatch"),
        (b"".join([*frames[:-2], frames[-1]]), "frame"),
        (b"".join([*frames[:-2], frames[-2][:-1], frames[-1]]), "checksum mismatch"),
    ):
        path.write_bytes(data)
        with pytest.raises(SourceError, match=problem) as raised:
            read_events(path, lambda event: None)
        entry = told(aged(path))
        assert (entry.state, f"{path}: {entry.detail}") == ("damaged", raised.value.problem)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_recording_cut_or_changed_anywhere_is_never_called_complete(tmp_path: Path, data: st.DataObject) -> None:
    whole = bytearray(b"".join(Sealer().seal([event])[0] for event in story.run(3)))
    at = data.draw(st.integers(0, len(whole) - 1))
    header = len(Sealer().seal([story.run(3)[0]])[0])
    expected = "empty" if at == 0 else "not a recording" if at < header else "incomplete"
    assert told(written(tmp_path / "cut.msgpack", bytes(whole[:at]))).state == expected
    whole[at] ^= 1 << data.draw(st.integers(0, 7))
    entry = told(written(tmp_path / "flipped.msgpack", bytes(whole)))
    assert entry.state in {"damaged", "incomplete", "not a recording"}


def test_shipped_recordings_come_last_and_once(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bundle").mkdir()
    paths = {
        "../recordings/run.msgpack": record(tmp_path / "bundle/run.msgpack"),
        "../recordings/small.msgpack": record(folder / "small.msgpack"),  # as in a checkout
    }
    monkeypatch.setattr(catalogue, "SHIPPED", tuple(paths))
    monkeypatch.setattr(catalogue, "bundled", lambda name: paths[name].absolute())
    kept(folder / "mine.msgpack", story.run(2))
    listing = scan()
    shipped = [(entry.name, entry.shipped) for entry in listing.entries]
    assert shipped == [("mine", False), ("small", True), ("run", True)]
    assert listing.entries[1].path == folder / "small.msgpack"


def test_what_live_shows_is_listed_wherever_it_lies(folder: Path, tmp_path: Path) -> None:
    elsewhere = kept(tmp_path / "elsewhere.msgpack", story.run(2, finish=False))
    own = kept(folder / "own.msgpack", story.run(2, finish=False))
    listed = [(e.path, e.state) for e in scan(elsewhere, running=True).entries]
    assert listed == [(own, "incomplete"), (elsewhere, "running")]
    assert [(e.path, e.state) for e in scan(own.absolute(), running=True).entries] == [(own, "running")]
    assert len(scan(Path("no-such-folder/a.msgpack"), running=True).entries) == 1


def test_only_what_has_changed_is_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("same", "changed", "gone", "growing"):
        kept(folder / f"{name}.msgpack", story.run(2, finish=name != "growing"))
    listing = scan(folder / "growing.msgpack", running=True)
    read = Mock(wraps=catalogue.inspect)
    monkeypatch.setattr(catalogue, "inspect", read)
    (folder / "gone.msgpack").unlink()
    aged(folder / "changed.msgpack", LONG_AGO_S + 1)
    again = scan(folder / "growing.msgpack", running=True, previous=listing.entries)
    assert [call.args[0].stem for call in read.call_args_list] == ["changed", "growing"]
    assert [entry.name for entry in again.entries] == ["changed", "growing", "same"]
    assert [entry.state for entry in scan(previous=again.entries).entries] == ["complete", "incomplete", "complete"]


def test_a_folder_that_cannot_be_listed_is_one_line_and_the_rest_is_there(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = record(tmp_path / "run.msgpack")
    monkeypatch.setattr(catalogue, "bundled", lambda name: shipped)

    monkeypatch.setattr(Path, "iterdir", Mock(side_effect=PermissionError(13, "Permission denied")))
    listing = scan()
    assert listing.problem == "cannot list recordings: Permission denied"
    assert [entry.path for entry in listing.entries] == [shipped]
    assert newest() == shipped


def test_last_is_the_last_written_recording_whatever_its_clock(folder: Path) -> None:
    header, *rest = story.run(20)
    imported = kept(folder / "imported.msgpack", later_s=1)
    clock = next(event for event in rest if isinstance(event, events.Clock))
    future = msgspec.structs.replace(clock, unix_ns=clock.unix_ns + 10**18)
    ahead = kept(folder / "ahead.msgpack", [header, *(future if event is clock else event for event in rest)])
    assert [entry.path for entry in scan().entries] == [ahead, imported]
    assert newest() == catalogue.readable()[0].path == imported


def test_newest_steps_over_what_is_no_recording_and_where_asked_over_what_has_no_success(folder: Path) -> None:
    good = kept(folder / "good.msgpack")
    kept(folder / "older.msgpack", later_s=-1)
    aged(written(folder / "empty.msgpack"), LONG_AGO_S + 1)
    aged(written(folder / "text.msgpack", b"hello"), LONG_AGO_S + 2)
    aged(written(folder / "newer.msgpack", [msgspec.structs.replace(HEADER, version=9)]), LONG_AGO_S + 3)
    (folder / "gone.msgpack").symlink_to("nowhere")
    assert newest() == good
    header, clock, cell = story.run(1)[0], story.clock(), story.cell(0, "local")
    failed = story.trial(1, 0, 0, outcome=events.FAILED)
    warm_up = story.trial(2, 0, 10**9, warm_up=True)
    told_badly = [header, clock, cell, *failed, *warm_up]
    bad = kept(folder / "bad.msgpack", told_badly, later_s=5)
    kept(folder / "worse.msgpack", [*told_badly, events.RunFinished("finished", {"failed": 1})], later_s=4)
    assert newest() == bad
    assert newest(succeeded=True) == good
    for path in (good, folder / "older.msgpack"):
        path.unlink()
    assert newest(succeeded=True) == bad  # which says what is amiss


def test_what_became_of_a_run_is_apart_from_whether_its_file_is_whole(folder: Path) -> None:
    def entry(name: str, *end: events.Event) -> CatalogueEntry:
        return told(kept(folder / name, [*UNFINISHED, *end]))

    cancelled = entry("a.msgpack", events.RunFinished("cancelled", {"ok": 18, "failed": 1, "cancelled": 1}))
    assert (cancelled.fate, cancelled.state, cancelled.ended_trials) == ("cancelled", "complete", 20)
    broken = entry("b.msgpack")
    assert (broken.fate, broken.state, broken.ended_trials) == ("broken off", "incomplete", None)
    spent = entry("c.msgpack", events.RunFinished("budget", {"ok": 19, "failed": 1}))
    assert (spent.fate, progress(spent), progress(broken)) == ("budget", "20/40", "?/40")
    assert told(written(folder / "d.msgpack", b"hello")).fate == ""


def test_in_a_checkout_newest_is_the_reference_until_there_is_one_of_ones_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There what is shipped lies in the folder for one's own, all as new as the checkout."""
    for age, name in enumerate(("run", "gvisor", "small")):
        kept(folder / f"{name}.msgpack", later_s=age)
    monkeypatch.setattr(catalogue, "bundled", lambda name: Path.cwd() / name.removeprefix("../"))
    assert newest() == Path.cwd() / "recordings/run.msgpack"
    own = kept(folder / "own.msgpack", later_s=-1)
    assert newest() == own


def test_paths_are_shown_from_here_and_text_is_safe_for_a_screen(folder: Path) -> None:
    assert catalogue.path_text(folder.absolute() / "a.msgpack") == "recordings/a.msgpack"
    assert catalogue.path_text(Path("/elsewhere/a.msgpack")) == "/elsewhere/a.msgpack"
    assert catalogue.command(Path("recordings/a b.msgpack")) == "taxtui replay 'recordings/a b.msgpack'"
    header = events.Header(
        events.MAGIC, 1, "run\x1b[31m", {"cells": [story.planned("lo\x07cal")]}, {"cpu": "\u202eUPC"}
    )
    path = written(folder / os.fsdecode(b"\xff\x1b.msgpack"), [header])
    entry = told(path)
    assert (entry.name + catalogue.path_text(path) + " ".join(entry.substrates)).isprintable()
    entry.name.encode()
