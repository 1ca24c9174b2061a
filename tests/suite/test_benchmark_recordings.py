"""What a benchmark measures as a recording is one: a reader refuses what could not have happened."""

from __future__ import annotations

from pathlib import Path

from costmodel.recording.follower import read_events
from taxtui.recording.writer import Recorder
from tests.benchmarks.bench_recording import LENGTH, stream


def test_the_recording_of_a_million_actions_could_have_been_measured(tmp_path: Path) -> None:
    with Recorder(tmp_path / "r.msgpack") as recorder:
        for event in stream(2 * LENGTH):
            recorder.add(event)
    assert read_events(tmp_path / "r.msgpack", lambda event: None).complete
