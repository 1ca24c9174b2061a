"""A compacted recording: the same numbers in fewer bytes, or a refusal that leaves nothing behind."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.errors import CostModelError
from costmodel.reading import read as read_costs
from taxtui import compaction, frames
from taxtui.compaction import compact
from taxtui.errors import RecordingError, UsageError, WriteFailed
from taxtui.events import ACTION, Actions, Clock, Event, PhaseEnded, RunFinished, column
from taxtui.recording import read
from taxtui.state import RunState
from tests.support.golden_stream import STREAM
from tests.tui import story
from tests.tui.recorded import record

durations = st.integers(0, 2**62)


@st.composite
def runs(draw: st.DrawFn) -> list[Event]:
    """Trials whose actions were written in pieces, interleaved, some never ending, from one worker or two."""
    told: list[Event] = [story.header([story.planned("local")]), story.clock(), story.cell(0, "local")]
    trials: list[list[Event]] = []
    for key in range(draw(st.integers(1, 4))):
        lasting = draw(st.lists(durations, min_size=1, max_size=9))
        runs_ns = draw(st.sampled_from([[], [-1] * len(lasting), [ns // 2 for ns in lasting]]))
        trial = story.trial(key, 0, key * 10**9, durations_ns=lasting, runs_ns=runs_ns)
        at = next(number for number, event in enumerate(trial) if isinstance(event, Actions))
        pieces = cut(trial[at], draw(st.sets(st.integers(1, 8))))
        trials.append([*trial[:at], *pieces, *trial[at + 1 :]][: draw(st.integers(1, 20))])
    while any(trials):
        waiting = [trial for trial in trials if trial]
        told.append(waiting[draw(st.integers(0, len(waiting) - 1))].pop(0))
        if draw(st.integers(0, 19)) == 0:
            told.append(draw(st.sampled_from([story.health(10**9), story.clock(unix_ns=story.UNIX_NS + 7)])))
    if draw(st.booleans()):
        told.append(RunFinished("finished", {}))
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
            **{name: sparse(getattr(event, name)[low:high]) for name in compaction.COLUMNS if name != "duration_ns"},
            duration_ns=event.duration_ns[low:high],
        )
        for low, high in itertools.pairwise(edges)
    ]


def sparse(values: list[int]) -> list[int]:
    return values if any(values) else []


def told_by(path: Path) -> list[Event]:
    told: list[Event] = []
    read(path, told.append)
    return told


def rows(told: list[Event]) -> dict[tuple[int, str], list[tuple[int, ...]]]:
    """Every command of every step, in order."""
    found: dict[tuple[int, str], list[tuple[int, ...]]] = {}
    for event in told:
        if isinstance(event, Actions):
            columns = [column(getattr(event, name), len(event.duration_ns)) for name in compaction.COLUMNS]
            found.setdefault((event.trial, event.step), []).extend(zip(*columns, strict=True))
    return found


def shown(told: list[Event]) -> tuple[object, ...]:
    """What a person sees of the end of a replay."""
    state = RunState()
    for event in told:
        state.apply(event)
    flying = {key: (trial.phases, trial.done, trial.last_ns) for key, trial in state.open.items()}
    return state.cells, state.log, state.actions, state.now_unix_ns, state.outcome, flying


def for_costs(path: Path) -> object:
    """What the cost model reads, or that it does not believe the file."""
    try:
        return [
            [getattr(trial, name) for name in trial.__slots__]
            for cell in read_costs(path).cells
            for trial in cell.trials
        ]
    except CostModelError as error:
        return str(error).replace(path.name, "")


@settings(deadline=None, max_examples=60)
@given(runs())
def test_the_numbers_stay_and_the_pieces_go(told: list[Event]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, out, again = (Path(folder) / name for name in "abc")
        record(path, told)
        before, after = compact(path, out)
        whole = told_by(out)
        assert (before, after) == (path.stat().st_size, out.stat().st_size)
        assert rows(whole) == rows(told)
        others = [event for event in told if not isinstance(event, Actions)]
        assert [event for event in whole if not isinstance(event, Actions)] == others
        assert shown(whole) == shown(told)
        assert for_costs(out) == for_costs(path)
        compact(out, again)
        assert again.read_bytes() == out.read_bytes()


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
        Actions(1, ACTION, 1, [], [], [6, 7], [1], [], [], []),  # a column of another length
    ],
    ids=["gap", "step", "uneven"],
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
    compact(path, tmp_path / "b")
    summary = read(tmp_path / "b", lambda event: None)
    assert (summary.complete, summary.torn_bytes) == (False, 0)


def test_a_file_that_exists_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"precious")
    with pytest.raises(UsageError, match="b exists; choose another name with -o"):
        compact(record(tmp_path / "a", list(STREAM)), tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"precious"


@pytest.mark.parametrize("what", ["damaged", "newer event", "newer field", "no recording", "nothing"])
def test_what_cannot_be_kept_is_refused_and_nothing_is_left(what: str, tmp_path: Path) -> None:
    path, out = record(tmp_path / "a", list(STREAM)), tmp_path / "b"
    data = path.read_bytes()
    size = len(data)
    newer = {"newer event": [99, 1], "newer field": [*msgspec.to_builtins(story.health(5)), 1]}
    if what in newer:
        path.write_bytes(data + frames.frame(msgspec.msgpack.encode([newer[what]])))
        words = f"at byte {size} there is what this taxtui does not know; use a newer one"
    elif what == "damaged":
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        words = "checksum"
    else:
        path.write_bytes(b"junk" * 9 if what == "no recording" else b"")
        words = "not a taxtui recording" if what == "no recording" else "the file is empty"
    with pytest.raises(RecordingError, match=words):
        compact(path, out)
    assert not out.exists()


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = record(tmp_path / "a", story.run(3))

    def full(self: object, data: bytes) -> None:
        raise WriteFailed("cannot write b: No space left on device")

    monkeypatch.setattr("taxtui.recording.Recorder._write", full)
    with pytest.raises(WriteFailed):
        compact(path, tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_no_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot create"):
        compact(record(tmp_path / "a", list(STREAM)), tmp_path / "none" / "b")
