"""taxtui and the cost model read the same bytes, each with code of its own: the same numbers, the same refusals.

``golden.msgpack`` is ``STREAM`` as it is written today and changes only with the format. ``golden_first.msgpack`` was
written before any field was appended, and never changes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

import costmodel
from costmodel.recording.reader import Recording
from taxtui import errors
from taxtui.recording import frames, reader
from taxtui.recording.events import CANCELLED, INTERRUPTED, Actions, Event, PhaseEnded, TrialEnded, TrialStarted, column
from taxtui.recording.writer import Recorder
from tests.support import costmodel_files
from tests.support.golden_stream import CELL, FIRST, OTHER, STREAM

GOLDEN: Final = Path(__file__).parent / "golden.msgpack"
GOLDEN_FIRST: Final = GOLDEN.with_name("golden_first.msgpack")
BOTH: Final = pytest.mark.parametrize(
    ("golden", "stream"), [(GOLDEN, STREAM), (GOLDEN_FIRST, FIRST)], ids=["today", "first"]
)


class Numbers(NamedTuple):
    """What a projection needs of one counted trial."""

    ok: bool
    held_ns: int
    queued_ns: int
    cold_ns: int
    cleanup_ns: int
    block: int
    durations_ns: list[int]
    gaps_ns: list[int]
    thinks_ns: list[int]
    runs_ns: list[int]


class Refusal(NamedTuple):
    """Where a reader says that the damage begins."""

    offset: int | None


class Reading(NamedTuple):
    """What a reader made of a file."""

    complete: bool
    torn_bytes: int
    trials: dict[tuple[str, str], list[Numbers]]  # by the cell's substrate and mode, in order


def of_taxtui(path: Path) -> Reading | Refusal:
    """By taxtui's reader and this file's own arithmetic over its events."""
    events: list[Event] = []
    try:
        summary = reader.read(path, events.append)
    except errors.RecordingError as error:
        return Refusal(error.offset)
    trials: dict[tuple[str, str], list[Numbers]] = {}
    started = {event.trial: event for event in events if isinstance(event, TrialStarted)}
    names = {cell.id: (cell.substrate, cell.mode) for cell in (CELL, OTHER)}
    for end in events:
        if isinstance(end, TrialEnded) and end.outcome not in (CANCELLED, INTERRUPTED):
            start = started[end.trial]
            if not start.warm_up:
                numbers = _numbers(start, end, [event for event in events if getattr(event, "trial", -1) == end.trial])
                trials.setdefault(names[start.cell], []).append(numbers)
    return Reading(summary.complete, summary.torn_bytes, trials)


def _numbers(start: TrialStarted, end: TrialEnded, own: list[Event]) -> Numbers:
    phases = {event.phase: event.duration_ns for event in own if isinstance(event, PhaseEnded)}
    actions = [event for event in own if isinstance(event, Actions) and event.step == "action"]

    def joined(values: Callable[[Actions], list[int]]) -> list[int]:
        return [value for part in actions for value in column(values(part), len(part.duration_ns))]

    gaps, durations = joined(lambda part: part.gap_ns), joined(lambda part: part.duration_ns)
    return Numbers(
        ok=end.outcome == "ok",
        held_ns=end.end_ns - start.start_ns - phases.get("ready_again", 0),
        queued_ns=end.queued_ns,
        cold_ns=phases.get("create", 0) + phases.get("ready", 0),
        cleanup_ns=phases.get("cleanup", 0),
        block=start.block,
        durations_ns=durations,
        gaps_ns=gaps,
        thinks_ns=joined(lambda part: part.think_ns),
        runs_ns=joined(lambda part: part.run_ns),
    )


def of_costmodel(path: Path) -> Reading | Refusal:
    """By the cost model's reader."""
    try:
        found = costmodel.read(path)
    except costmodel.SourceError as error:
        return Refusal(error.offset)
    assert isinstance(found, Recording)
    trials: dict[tuple[str, str], list[Numbers]] = {}
    for cell in found.cells:
        for trial in cell.trials:
            numbers = Numbers(
                trial.ok,
                trial.measures.held_ns,
                trial.measures.queued_ns,
                trial.measures.cold_start_ns,
                trial.measures.cleanup_ns or 0,
                trial.block,
                list(trial.durations_ns),
                list(trial.gaps_ns) or [0] * len(trial.durations_ns),
                list(trial.thinks_ns) or [0] * len(trial.durations_ns),
                list(trial.runs_ns),
            )
            trials.setdefault((cell.identity.substrate, cell.identity.mode), []).append(numbers)
    return Reading(found.complete, found.torn_bytes, trials)


def written(path: Path, stream: list[Event]) -> bytes:
    with Recorder(path) as recorder:
        for event in stream:
            recorder.add(event)
    return path.read_bytes()


def test_the_golden_file_is_what_the_recorder_writes_today(tmp_path: Path) -> None:
    assert written(tmp_path / "today.msgpack", STREAM) == GOLDEN.read_bytes()


@BOTH
def test_taxtui_reads_its_golden_file(golden: Path, stream: list[Event]) -> None:
    events: list[Event] = []
    summary = reader.read(golden, events.append)
    assert events == stream
    assert (summary.complete, summary.skipped, summary.torn_bytes) == (True, 0, 0)


@BOTH
def test_both_read_the_same_numbers(golden: Path, stream: list[Event]) -> None:
    reading = of_taxtui(golden)
    assert isinstance(reading, Reading)
    assert {key: len(trials) for key, trials in reading.trials.items()} == {
        ("docker", "exec"): 2,
        ("docker", "session"): 2,
    }
    assert reading.trials["docker", "exec"][0].held_ns == 450
    assert of_costmodel(golden) == reading


@BOTH
def test_both_read_the_same_identity(golden: Path, stream: list[Event]) -> None:
    found = costmodel.read(golden)
    assert isinstance(found, Recording)
    for cell in found.cells[:2]:
        announced = CELL if cell.identity.mode == CELL.mode else OTHER
        assert cell.identity == tuple(getattr(announced, name) for name in cell.identity._fields)
        assert (cell.cycle, cell.provenance) == (announced.cycle, announced.provenance)


def test_a_cell_that_is_announced_again_is_still_one_row() -> None:
    demand = costmodel.Demand(trajectories=1_000, workers=10)
    rows = costmodel.project([costmodel.read(GOLDEN_FIRST)], demand)
    assert sorted((row.identity.mode, row.trials, row.failures) for row in rows) == [("exec", 2, 1), ("session", 2, 1)]


def test_taxtui_reads_what_was_written_from_the_formats_description_alone(tmp_path: Path) -> None:
    trials = [
        costmodel_files.trial(1, gaps=(1, 2, 3), thinks=(0, 5, 0), queued=7, ready_again=11, cleanup=13),
        costmodel_files.trial(2, runs=(-1, 4, 5), setup=[(20, 10)], block=3),
        costmodel_files.trial(3, outcome="failed", actions=(17,)),
    ]
    path = costmodel_files.write(tmp_path / "described.msgpack", trials)
    reading = of_taxtui(path)
    assert isinstance(reading, Reading)
    assert reading.complete
    assert len(reading.trials["docker", "exec"]) == 3
    assert of_costmodel(path) == reading


def test_a_tail_torn_at_any_byte_leaves_both_with_the_same(tmp_path: Path) -> None:
    data, path = GOLDEN.read_bytes(), tmp_path / "torn.msgpack"
    readings = []
    with path.open("wb", buffering=0) as file:  # grows: a file written anew each time waits for the disk each time
        for size in range(len(data)):
            reading = of_taxtui(path)
            assert of_costmodel(path) == reading, f"cut at {size}"
            readings.append(reading)
            file.write(data[size : size + 1])
    assert any(isinstance(reading, Reading) and reading.torn_bytes for reading in readings)
    assert isinstance(readings[0], Refusal)


@contextlib.contextmanager
def flipped_bit(path: Path, bit: int) -> Iterator[None]:
    """A file with one bit the other way round, in place: to write it anew each time is to wait for the disk."""

    def flip() -> None:
        with path.open("r+b", buffering=0) as file:
            file.seek(bit // 8)
            (byte,) = file.read(1)
            file.seek(bit // 8)
            file.write(bytes([byte ^ 1 << bit % 8]))

    flip()
    yield
    flip()


@pytest.mark.slow
def test_any_flipped_bit_is_refused_by_both_at_the_same_byte(tmp_path: Path) -> None:
    data, path = GOLDEN.read_bytes(), tmp_path / "flipped.msgpack"
    whole: Any = of_taxtui(GOLDEN)
    path.write_bytes(data)
    refused = 0
    for bit in range(len(data) * 8):
        with flipped_bit(path, bit):
            reading = of_taxtui(path)
            assert of_costmodel(path) == reading, f"bit {bit}"
        if isinstance(reading, Refusal):
            refused += 1
            assert reading.offset is not None
            assert reading.offset <= bit // 8
        else:  # the length of the last frame: it looks like a torn tail, and is said to be one
            assert reading == whole._replace(complete=False, torn_bytes=reading.torn_bytes)
            assert reading.torn_bytes > 0
    assert refused > 0.99 * len(data) * 8


@pytest.mark.parametrize("payload", [b"\xc1", b"\x91\xc1", b"\x2a", b"\x80", b"\x91\x93\x00\xa1x", b"\x91" * 5_000])
def test_a_frame_of_nonsense_with_a_good_checksum_is_refused_by_both(tmp_path: Path, payload: bytes) -> None:
    path = tmp_path / "nonsense.msgpack"
    header = frames.Sealer().seal(STREAM[:1])[0]
    path.write_bytes(header + frames.frame(payload) + frames.Sealer().seal(STREAM[1:])[0])
    assert of_taxtui(path) == of_costmodel(path) == Refusal(len(header))
