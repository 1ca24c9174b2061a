"""One trial in full, and the slowest ones: what is read of a recording, and how it is told."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from costmodel.errors import SourceError
from costmodel.recording import events
from taxtui.cli import app
from taxtui.errors import RecordingError
from taxtui.live.trial_story import read_story, slowest
from taxtui.report.trial_timeline import lines
from taxtui.terminal_text import widest
from tests.taxtui.tui import story
from tests.taxtui.tui.story import MS, S, record

FAILED = {"outcome": events.FAILED, "phase": "create", "error": "Throttled", "message": "429 [bold], \x1b[31m 4 s"}


def told() -> list[events.Event]:
    began = [story.header([story.planned("docker")]), story.clock(), story.cell(0, "docker", "runc")]
    good = story.trial(1, 0, 1 * S, durations_ns=[(1 + n) * MS for n in range(40)], think_ns=[2 * MS] * 40)
    bad = story.trial(2, 0, 3 * S, durations_ns=[], **FAILED)  # type: ignore[arg-type]  # texts all
    return [*began, *good, story.health(2 * S, lag_p99_ns=9 * MS), *bad, story.health(4 * S), story.health(5 * S)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return record(tmp_path / "a.msgpack", told())


def test_a_trial_is_told_from_its_start_to_its_end(path: Path) -> None:
    found = read_story(path, 1)
    assert [phase.phase for phase in found.phases] == ["create", "ready", "ready_again", "cleanup"]
    assert found.durations_ns == [(1 + n) * MS for n in range(40)]
    assert found.began_unix_ns == story.UNIX_NS + 1 * S
    other = read_story(path, 2)
    assert other.end
    assert other.end.error == "Throttled"
    with pytest.raises(RecordingError, match="#3 is not in this recording"):
        read_story(path, 3)


@pytest.mark.parametrize("width", [50, 100])
def test_its_timeline_has_phases_actions_and_marks_as_far_as_it_came(width: int, path: Path) -> None:
    text = lines(read_story(path, 1), width)
    assert widest(text.split("\n")) <= width
    words = ("docker:runc T0 x 10 exec · ok", "create", "40.0 ms", "40 actions", "longest 40.0 ms (action 40)")
    for each in (*words, "think time 80.0 ms", "running +40"):
        assert each in " ".join(text.split())
    begun = record(path.with_name("begun.msgpack"), told()[:6])
    assert "still runs, or was cut off" in lines(read_story(begun, 1), 80)


def test_the_command_prints_phases_and_a_line_per_action(path: Path) -> None:
    result = CliRunner().invoke(app, ["recordings", "trial", str(path), "1"])
    lines_of_output = result.output.splitlines()
    assert result.exit_code == 0, result.exception
    assert any(line.startswith("create") and "40.0 ms" in line for line in lines_of_output)
    actions = [line.split() for line in lines_of_output if line.startswith("action ")]
    assert [line[1:4] for line in actions[:2]] == [["1", "1.00", "ms"], ["2", "2.00", "ms"]]
    assert len(actions) == 40
    missing = CliRunner().invoke(app, ["recordings", "trial", str(path), "9"])
    assert isinstance(missing.exception, RecordingError)


def test_the_slowest_trials_come_first_and_warm_ups_do_not_count(tmp_path: Path) -> None:
    path = record(tmp_path / "a.msgpack", story.run(10))
    found = slowest([path], lambda cell: cell.label == "docker:runc")
    held = [one.held_ns for _, one in found]
    assert held == sorted(held, reverse=True)
    assert len(found) == 10
    assert read_story(path, found[0][1].trial).cell.label == "docker:runc"
    assert slowest([path], lambda cell: False) == []


def test_what_stands_before_damage_is_told(tmp_path: Path) -> None:
    path = record(tmp_path / "a.msgpack", story.run(30))
    whole = len(slowest([path], lambda cell: True))
    data = bytearray(path.read_bytes())
    data[-2000] ^= 4
    path.write_bytes(data)
    assert 0 <= len(slowest([path], lambda cell: True)) <= whole
    path.write_bytes(msgspec.msgpack.encode("nothing"))
    with pytest.raises(SourceError):
        slowest([path], lambda cell: True)
