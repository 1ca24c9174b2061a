"""Golden files: recordings of every version of the format read as they always did.

``golden.msgpack`` is ``STREAM`` as it is written today and changes only with the format. ``golden_first.msgpack`` was
written before any field was appended, ``golden_second.msgpack`` before wrapper time, and ``golden_third.msgpack``
before causes and the CPU time of a mark: they never change.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import costmodel
from costmodel.recording.events import (
    CANCELLED,
    INTERRUPTED,
    Actions,
    Event,
    PhaseEnded,
    TrialEnded,
    TrialStarted,
    column,
)
from costmodel.recording.follower import read_events
from costmodel.recording.reader import Recording
from taxtui.recording.writer import Recorder
from tests.support.cost_model import costmodel_files
from tests.support.golden_stream import CELL, FIRST, OTHER, SECOND, STREAM, THIRD

GOLDEN: Final = Path(__file__).parent / "golden.msgpack"
GOLDEN_FIRST: Final = GOLDEN.with_name("golden_first.msgpack")
GOLDEN_SECOND: Final = GOLDEN.with_name("golden_second.msgpack")
GOLDEN_THIRD: Final = GOLDEN.with_name("golden_third.msgpack")
VERSIONS: Final = pytest.mark.parametrize(
    ("golden", "stream"),
    [(GOLDEN, STREAM), (GOLDEN_THIRD, THIRD), (GOLDEN_SECOND, SECOND), (GOLDEN_FIRST, FIRST)],
    ids=["today", "third", "second", "first"],
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


Trials = dict[tuple[str, str], list[Numbers]]
"""Counted trials in order, by the cell's substrate and mode."""


def from_events(path: Path) -> Trials:
    """By arithmetic of this file over the events."""
    events: list[Event] = []
    read_events(path, events.append)
    trials: Trials = {}
    started = {event.trial: event for event in events if isinstance(event, TrialStarted)}
    names = {cell.id: (cell.substrate, cell.mode) for cell in (CELL, OTHER)}
    for end in events:
        if isinstance(end, TrialEnded) and end.outcome not in (CANCELLED, INTERRUPTED):
            start = started[end.trial]
            if not start.warm_up:
                numbers = _numbers(start, end, [event for event in events if getattr(event, "trial", -1) == end.trial])
                trials.setdefault(names[start.cell], []).append(numbers)
    return trials


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


def from_trials(path: Path) -> Trials:
    """By the cost model's reader."""
    recording = costmodel.load(path)
    assert isinstance(recording, Recording)
    trials: Trials = {}
    for cell in recording.cells:
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
    return trials


def written(path: Path, stream: list[Event]) -> bytes:
    with Recorder(path) as recorder:
        for event in stream:
            recorder.add(event)
    return path.read_bytes()


def test_the_golden_file_is_what_the_recorder_writes_today(tmp_path: Path) -> None:
    assert written(tmp_path / "today.msgpack", STREAM) == GOLDEN.read_bytes()


@VERSIONS
def test_the_golden_file_reads_as_its_events(golden: Path, stream: list[Event]) -> None:
    events: list[Event] = []
    summary = read_events(golden, events.append)
    assert events == stream
    assert (summary.complete, summary.skipped, summary.torn_bytes) == (True, 0, 0)


@VERSIONS
def test_trials_have_the_numbers_of_their_events(golden: Path, stream: list[Event]) -> None:
    trials = from_events(golden)
    assert {key: len(numbers) for key, numbers in trials.items()} == {("docker", "exec"): 2, ("docker", "session"): 2}
    assert trials["docker", "exec"][0].held_ns == 450
    assert from_trials(golden) == trials


@VERSIONS
def test_cells_have_the_identity_of_their_events(golden: Path, stream: list[Event]) -> None:
    recording = costmodel.load(golden)
    assert isinstance(recording, Recording)
    for cell in recording.cells[:2]:
        announced = CELL if cell.identity.mode == CELL.mode else OTHER
        assert cell.identity == tuple(getattr(announced, name) for name in cell.identity._fields)
        assert (cell.cycle, cell.provenance) == (announced.cycle, announced.provenance)


def test_a_cell_that_is_announced_again_is_still_one_row() -> None:
    training_run = costmodel.TrainingRun(trajectories=1_000, workers=10)
    rows = costmodel.project([costmodel.load(GOLDEN_FIRST)], training_run)
    assert sorted((row.identity.mode, row.trials, row.failures) for row in rows) == [("exec", 2, 1), ("session", 2, 1)]


def test_a_file_written_from_the_description_of_the_format_alone_is_read(tmp_path: Path) -> None:
    trials = [
        costmodel_files.trial(1, gaps=(1, 2, 3), thinks=(0, 5, 0), queued=7, ready_again=11, cleanup=13),
        costmodel_files.trial(2, runs=(-1, 4, 5), setup=[(20, 10)], block=3),
        costmodel_files.trial(3, outcome="failed", actions=(17,)),
    ]
    path = costmodel_files.write(tmp_path / "described.msgpack", trials)
    numbers = from_events(path)
    assert len(numbers["docker", "exec"]) == 3
    assert from_trials(path) == numbers
