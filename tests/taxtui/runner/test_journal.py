from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from costmodel.recording.events import Event, Header, Notice, RunFinished, TrialStarted
from costmodel.recording.follower import read_events
from taxtui.errors import WriteFailed
from taxtui.recording.writer import Recorder
from taxtui.runner import journal as journal_module
from taxtui.runner.journal import Journal

HEADER = Header("taxtui", 1, "r", {}, {})


@pytest.fixture
def failures() -> list[WriteFailed]:
    return []


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path / "r.msgpack")


async def regularly(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "FLUSH_S", 0.001)
    flushing = asyncio.ensure_future(journal.flush_regularly())
    await asyncio.sleep(0.01)
    flushing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await flushing


async def test_what_is_held_back_reaches_the_file_while_the_run_goes_on(
    recorder: Recorder, failures: list[WriteFailed], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(recorder, failures.append)
    journal.emit(HEADER)
    journal.emit(Notice(1, "info", "queued"))
    await regularly(journal, monkeypatch)
    got: list[Event] = []
    read_events(recorder.path, got.append)  # before it is closed
    assert got == [HEADER, Notice(1, "info", "queued")]
    recorder.close()
    assert failures == []


async def test_a_full_disk_is_reported_once_and_only_a_trials_start_is_refused(
    recorder: Recorder, failures: list[WriteFailed], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(recorder, failures.append)
    journal.emit(HEADER)
    with monkeypatch.context() as full:
        full.setattr("taxtui.recording.writer.os.write", lambda fd, data: 0)
        journal.emit(Notice(0, "info", "lost"))
        await regularly(journal, monkeypatch)
        with pytest.raises(WriteFailed, match="No space left"):
            journal.emit(TrialStarted(0, 0, "s", 0, 0))
    assert len(failures) == 1
    recorder.close()
    got: list[Event] = []
    read_events(recorder.path, got.append)
    assert got == [HEADER]


def test_after_the_end_of_the_run_nothing_is_written(recorder: Recorder, failures: list[WriteFailed]) -> None:
    journal = Journal(recorder, failures.append)
    end = RunFinished("crashed", {})
    for event in (HEADER, end, Notice(1, "error", "from a trial that could not be stopped")):
        journal.emit(event)
    recorder.close()
    got: list[Event] = []
    assert read_events(recorder.path, got.append).complete
    assert got == [HEADER, end]
