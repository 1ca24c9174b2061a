"""A compacted recording: the same numbers in fewer bytes, or a refusal that leaves nothing behind."""

from __future__ import annotations

import errno
import itertools
import os
import tempfile
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.errors import SourceError
from costmodel.recording.events import ACTION, Actions, Clock, Event, PhaseEnded, RunFinished, column, sparse
from costmodel.recording.follower import read_events
from costmodel.recording.reader import load as read_costs
from taxtui.errors import UsageError, WriteFailed
from taxtui.live.state import RunState
from taxtui.recording import compact as compaction
from taxtui.recording.compact import compact
from tests.support.command_line import events as told_by
from tests.support.fuzz import hostile
from tests.support.golden_stream import STREAM
from tests.taxtui.tui import story
from tests.taxtui.tui.story import record

durations = st.integers(0, 2**40)


@st.composite
def runs(draw: st.DrawFn) -> list[Event]:
    """Trials whose actions were written in pieces, interleaved, some never ending, from one worker or two."""
    told: list[Event] = [story.header([story.planned("local")]), story.clock(), story.cell(0, "local")]
    trials: list[list[Event]] = []
    for key in range(draw(st.integers(1, 4))):
        lasting = draw(st.lists(durations, min_size=10, max_size=10))  # as many as the cell plans
        runs_ns = draw(st.sampled_from([[], [-1] * len(lasting), [ns // 2 for ns in lasting]]))
        trial = story.trial(key, 0, key * 10**9, durations_ns=lasting, runs_ns=runs_ns)
        at = next(number for number, event in enumerate(trial) if isinstance(event, Actions))
        pieces = cut(trial[at], draw(st.sets(st.integers(1, 9))))
        trials.append([*trial[:at], *pieces, *trial[at + 1 :]][: draw(st.integers(1, 20))])
    while any(trials):
        waiting = [trial for trial in trials if trial]
        told.append(waiting[draw(st.integers(0, len(waiting) - 1))].pop(0))
        if draw(st.integers(0, 19)) == 0:
            told.append(draw(st.sampled_from([story.health(10**9), story.clock(unix_ns=story.UNIX_NS + 7)])))
    if draw(st.booleans()):
        told.append(RunFinished("finished", story.ended_trials(told)))
    return told


def cut(event: Event, places: set[int]) -> list[Event]:
    """Actions in pieces, as a run writes them: zeros are left out in each."""
    assert isinstance(event, Actions)
    rows = len(event.duration_ns)
    edges = sorted({0, *(place for place in places if place < rows), rows})
    return [
        msgspec.structs.replace(
            event,
            first=event.first + low,
            **{
                name: sparse(getattr(event, name)[low:high], empty)
                for name, empty in compaction.COLUMNS.items()
                if name != "duration_ns"
            },
            duration_ns=event.duration_ns[low:high],
        )
        for low, high in itertools.pairwise(edges)
    ]


def rows_of(told: list[Event]) -> dict[tuple[int, str], list[tuple[int, ...]]]:
    """Every command of every step, in order."""
    found: dict[tuple[int, str], list[tuple[int, ...]]] = {}
    for event in told:
        if isinstance(event, Actions):
            columns = [
                column(getattr(event, name), len(event.duration_ns), empty)
                for name, empty in compaction.COLUMNS.items()
            ]
            found.setdefault((event.trial, event.step), []).extend(zip(*columns, strict=True))
    return found


def shown(told: list[Event]) -> tuple[object, ...]:
    """What a person sees of the end of a replay."""
    state = RunState()
    for event in told:
        state.apply(event)
    flying = {key: (trial.phases, trial.actions_done, trial.last_ns) for key, trial in state.open.items()}
    return state.cells, state.log, state.actions, state.now_unix_ns, state.outcome, flying


def for_costs(path: Path) -> list[list[object]]:
    """What the cost model reads of each trial."""
    trials = [trial for cell in read_costs(path).cells for trial in cell.trials]
    return [[getattr(trial, name) for name in trial.__slots__] for trial in trials]


@settings(deadline=None, max_examples=60)
@given(runs())
def test_the_numbers_stay_and_the_pieces_go(told: list[Event]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, out, again = (Path(folder) / name for name in "abc")
        record(path, told)
        summary = compact(path, out)
        whole = told_by(out)
        assert (summary.size_bytes, summary.events) == (path.stat().st_size, len(told))
        assert summary.complete == isinstance(told[-1], RunFinished)
        assert rows_of(whole) == rows_of(told)
        others = [event for event in told if not isinstance(event, Actions)]
        assert [event for event in whole if not isinstance(event, Actions)] == others
        assert shown(whole) == shown(told)
        assert for_costs(out) == for_costs(path)
        compact(out, again)
        assert again.read_bytes() == out.read_bytes()


def test_the_cost_model_reads_the_same_trials(tmp_path: Path) -> None:
    whole = story.run(4)
    told = [piece for event in whole for piece in (cut(event, {2, 3, 9}) if isinstance(event, Actions) else [event])]
    compact(record(tmp_path / "a", told), tmp_path / "b")
    assert for_costs(tmp_path / "b") == for_costs(tmp_path / "a")
    assert len(for_costs(tmp_path / "b")) == 8
    assert (tmp_path / "b").stat().st_size < (tmp_path / "a").stat().st_size


def test_a_step_of_any_length_fits_its_frames(tmp_path: Path) -> None:
    rows = 3 * compaction.MAX_ROWS
    most = [2**40] * rows  # nine bytes each
    trial = story.trial(0, 0, 0, durations_ns=most, runs_ns=most, think_ns=most)
    told = [story.header([story.planned("local")]), story.clock(), story.cell(0, "local")]
    for event in trial:
        told += cut(event, set(range(500, rows, 500))) if isinstance(event, Actions) else [event]
    compact(record(tmp_path / "a", told), tmp_path / "b")
    assert rows_of(told_by(tmp_path / "b")) == rows_of(told)
    assert sum(isinstance(event, Actions) for event in told_by(tmp_path / "b")) == 4


def test_a_frame_ends_where_a_trial_does(tmp_path: Path) -> None:
    """The list of recordings reads no more than the ends of a file."""
    starts = [story.trial(key, 0, key)[0] for key in range(9)]
    rest = [event for key in range(9) for event in story.trial(key, 0, key)[1:]]
    told = [story.header([story.planned("local")]), story.clock(), story.cell(0, "local"), *starts, *rest]
    compact(record(tmp_path / "a", told), tmp_path / "b")
    assert read_events(tmp_path / "b", lambda event: None).frames > 18


def test_a_step_becomes_one_event_right_before_what_follows_it(tmp_path: Path) -> None:
    (trial,) = (story.trial(7, 0, 0),)
    at = next(number for number, event in enumerate(trial) if isinstance(event, Actions))
    start = [story.header([story.planned("local")]), story.clock(), story.cell(0, "local")]
    pieces = cut(trial[at], {2, 3, 9})
    told = [*start, *trial[:at], pieces[0], story.health(5), *pieces[1:], *trial[at + 1 :]]
    compact(record(tmp_path / "a", told), tmp_path / "b")
    assert told_by(tmp_path / "b") == [*start, *trial[:at], story.health(5), *trial[at:]]
    assert isinstance(trial[at + 1], PhaseEnded)


def test_nothing_crosses_the_clock_of_another_worker(tmp_path: Path) -> None:
    first, second = cut(Actions(1, ACTION, 0, [], [], [5, 6], [], [], [], []), {1})
    told = [
        story.header([story.planned("local")]),
        story.clock(),
        first,
        story.clock(unix_ns=story.UNIX_NS + 9),
        second,
    ]
    compact(record(tmp_path / "a", told), tmp_path / "b")
    assert [type(event) for event in told_by(tmp_path / "b")[1:]] == [Clock, Actions, Clock, Actions]


@pytest.mark.parametrize(
    "second",
    [
        Actions(1, ACTION, 3, [], [], [6], [], [], [], []),  # a row is missing before it
        Actions(1, "setup", 1, [], [], [6], [], [], [], []),
    ],
    ids=["gap", "step"],
)
def test_what_does_not_continue_stays_apart(second: Actions, tmp_path: Path) -> None:
    told = [
        story.header([story.planned("local")]),
        story.clock(),
        Actions(1, ACTION, 0, [], [], [5], [], [], [], []),
        second,
    ]
    compact(record(tmp_path / "a", told), tmp_path / "b")
    assert told_by(tmp_path / "b") == told


def test_a_torn_tail_is_left_out_and_the_run_stays_unfinished(tmp_path: Path) -> None:
    path = record(tmp_path / "a", list(STREAM))
    path.write_bytes(path.read_bytes()[:-3])
    found = compact(path, tmp_path / "b")
    assert found.torn_bytes > 0
    assert found.size_bytes == path.stat().st_size
    summary = read_events(tmp_path / "b", lambda event: None)
    assert (summary.complete, summary.torn_bytes) == (False, 0)


@pytest.mark.parametrize("out", ["itself", "another", "a link to it", "a link to nothing"])
def test_a_file_that_exists_is_not_touched(out: str, tmp_path: Path) -> None:
    path, other = record(tmp_path / "a", list(STREAM)), tmp_path / "b"
    data = path.read_bytes()
    if out == "itself":
        other = path
    elif out == "another":
        other.write_bytes(data)
    else:
        other.symlink_to(path if out == "a link to it" else tmp_path / "nothing")
    with pytest.raises(UsageError, match=f"{other.name} exists; choose another name with -o"):
        compact(path, other)
    assert path.read_bytes() == data
    assert other.is_symlink() or other.read_bytes() == data
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize(
    "what", ["damaged", "newer event", "newer field", "newer and older", "no recording", "nothing"]
)
def test_what_cannot_be_kept_is_refused_and_nothing_is_left(what: str, tmp_path: Path) -> None:
    path, out = record(tmp_path / "a", list(STREAM)), tmp_path / "b"
    data = path.read_bytes()
    started = msgspec.to_builtins(story.trial(7, 0, 0)[0])[:6]  # without the fields that were added later
    newer = {
        "newer event": [[99, 1]],
        "newer field": [[*msgspec.to_builtins(story.health(5)), 1]],
        "newer and older": [started, [*msgspec.to_builtins(story.health(5)), 1]],
    }
    if what in newer:
        *before, end = hostile.payloads(data)
        path.write_bytes(hostile.sealed([*before, msgspec.msgpack.encode([[11, 0, 0], *newer[what]]), end]))
        words = f"a newer version wrote the events at byte {len(hostile.sealed(before))}; install a newer taxtui"
    elif what == "damaged":
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        words = "checksum"
    else:
        path.write_bytes(b"junk" * 9 if what == "no recording" else b"")
        words = "not a taxtui recording" if what == "no recording" else "the file is empty"
    with pytest.raises(SourceError, match=words):
        compact(path, out)
    assert not out.exists()


@pytest.mark.parametrize("when", ["as it is written", "when it is forced"])
def test_a_full_disk_leaves_nothing(when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real = record(tmp_path / "a", story.run(30)), os.write
    if when == "as it is written":
        monkeypatch.setattr("taxtui.recording.writer.os.write", lambda fd, data: real(fd, data[:5]))
    else:
        monkeypatch.setattr("taxtui.recording.writer.os.fsync", full)
    with pytest.raises(WriteFailed, match=r"cannot write .*b: No space left on device; the new file was removed"):
        compact(path, tmp_path / "b")
    assert not (tmp_path / "b").exists()


def full(fd: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_an_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    path = record(tmp_path / "a", story.run(3))
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compact(path, tmp_path / "b")
    assert not (tmp_path / "b").exists()
    monkeypatch.setattr(compaction, "_joined", interrupted)
    monkeypatch.setattr(compaction.Follower, "summary", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compact(path, tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_a_pipe_and_an_empty_file_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    for name, why in (("pipe", "a pipe, not a regular file"), ("empty", "the file is empty")):
        with pytest.raises(SourceError, match=why):
            compact(tmp_path / name, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot create"):
        compact(record(tmp_path / "a", list(STREAM)), tmp_path / "none" / "b")
