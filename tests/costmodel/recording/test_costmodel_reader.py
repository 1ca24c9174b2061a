"""The cost model's own reader: what it makes of a file, and that no damage changes a number silently."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from costmodel import SourceError, load
from costmodel.recording.breakdown import UNKNOWN, Split
from tests.support.cost_model.costmodel_files import S, cell, frame, header, health, trial, write


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.msgpack"


def test_actions_may_arrive_in_parts_and_columns_of_zeros_empty(file: Path) -> None:
    events = trial(1, actions=())
    parts = [
        [6, 1, "action", 0, [], [], [S], [S], [], [], []],
        [6, 1, "action", 1, [5], [S], [S], [], [], [], []],
        [6, 1, "action", 2, [], [], [S], [UNKNOWN], [], [], []],
    ]
    events[-1][6] += 4 * S + 5
    events.insert(2, [4, 1, "started", events[1][3], 0])
    recording = load(write(file, [events[:4] + parts + events[4:]]))
    assert (recording.whole, recording.run_id) == (True, "run-1")
    (one,) = recording.cells[0].trials
    assert one.measures.orchestration_ns == 0
    assert list(one.durations_ns) == [S, S, S]
    assert list(one.gaps_ns) == [0, 5, 0]
    assert list(one.thinks_ns) == [0, S, 0]
    assert list(one.runs_ns) == [S, 0, UNKNOWN]


@pytest.mark.parametrize("run", [UNKNOWN, S + 1])
def test_a_run_that_is_unknown_or_longer_than_its_command_is_unknown(file: Path, run: int) -> None:
    (one,) = load(write(file, [trial(1, setup=[(S, run), (S, S)], runs=[run, S, 900 * S])])).cells[0].trials
    assert one.setup == Split(S, 0, S, divided=False), "of all commands of the setup together"
    assert not one.measures.divided
    assert list(one.runs_ns) == [UNKNOWN, S, UNKNOWN]


def test_what_does_not_count_is_left_out(file: Path) -> None:
    ended = [
        trial(n, outcome=outcome) for n, outcome in enumerate(("ok", "cancelled", "interrupted", "failed", "timeout"))
    ]
    running = trial(7)[:-1]  # when the writer died
    counted = load(write(file, [*ended, trial(6, warm_up=True), running])).cells[0].trials
    assert [one.ok for one in counted] == [True, False, False]


def test_trials_with_missing_actions_or_a_lost_start_are_dropped_and_counted(file: Path) -> None:
    gap = trial(1)
    gap[3][3] = 1  # the first row is lost
    recording = load(write(file, [gap, trial(3, actions=[S]), trial(4)]))
    assert (len(recording.cells[0].trials), recording.skipped) == (1, 2)
    recording = load(write(file, [trial(1)[1:], trial(2)]))
    assert (len(recording.cells[0].trials), recording.skipped) == (1, len(trial(1)[1:]))


@pytest.mark.parametrize("column", [4, 5, 7, 8, 9, 10, 11])
def test_columns_of_different_lengths_are_damage(file: Path, column: int) -> None:
    uneven = trial(2)
    [actions] = [event for event in uneven if event[0] == 6]
    actions += [[]] * (12 - len(actions))
    actions[column] = [S] * (len(actions[6]) + 1)
    with pytest.raises(SourceError, match="columns of different lengths"):
        load(write(file, [uneven]))


def test_a_busy_runner_is_noticed(file: Path) -> None:
    def problems(*seconds: list[Any]) -> list[str]:
        file.write_bytes(frame([header()]) + frame([cell(), *seconds]))
        return load(file).workers[0].problems

    assert not problems(*[health()] * 50)
    assert problems(*[health()] * 50, health(lag_p99=6_000_000)) == ["loop lag"]
    assert not problems(*[health()] * 200, health(lag_p99=6_000_000))
    assert problems(*[health(cpu_permille=900)] * 3) == ["client CPU"]


@pytest.mark.parametrize("length", [0, 4, 1 << 20 | 1, 1 << 31, 100_000])
def test_impossible_lengths_are_refused(file: Path, length: int) -> None:
    """Where intact frames follow, a wrong length is damage and no torn end."""
    first, torn, last = frame([header()]), bytearray(frame([cell()])), frame(trial(1))
    torn[1:5] = struct.pack(">I", length)
    file.write_bytes(first + bytes(torn) + last)
    with pytest.raises(SourceError, match=r"intact frames follow|not the start of a frame") as error:
        load(file)
    assert error.value.offset == len(first)
