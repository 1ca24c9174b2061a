from __future__ import annotations

from pathlib import Path

import pytest

from costmodel.recording.events import Event, Header, Notice, RunFinished
from costmodel.recording.follower import read_events
from taxtui.errors import WriteFailed
from taxtui.recording.writer import Recorder
from taxtui.runner.journal import Journal

HEADER = Header("taxtui", 1, "r", {}, {})


@pytest.fixture
def failures() -> list[WriteFailed]:
    return []


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path / "r.msgpack")


def test_after_the_end_of_the_run_nothing_is_written(recorder: Recorder, failures: list[WriteFailed]) -> None:
    journal = Journal(recorder, failures.append)
    end = RunFinished("crashed", {})
    for event in (HEADER, end, Notice(1, "error", "from a trial that could not be stopped")):
        journal.emit(event)
    recorder.close()
    got: list[Event] = []
    assert read_events(recorder.path, got.append).complete
    assert got == [HEADER, end]
