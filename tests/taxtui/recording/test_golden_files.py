"""Golden files: recordings of every version of the format read as they always did.

``golden.msgpack`` is ``STREAM`` as it is written today and changes only with the format. ``golden_first.msgpack`` was
written before any field was appended, ``golden_second.msgpack`` before wrapper time, and ``golden_third.msgpack``
before causes and the CPU time of a mark: they never change.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
import pytest

import costmodel
from costmodel.recording.events import (
    UNKNOWN,
    Actions,
    Cell,
    Clock,
    Event,
    Header,
    Health,
    Mark,
    Notice,
    PhaseEnded,
    RunFinished,
    TrialEnded,
    TrialStarted,
)
from costmodel.recording.follower import read_events
from costmodel.recording.reader import Recording
from tests.support.command_line import events
from tests.support.cost_model import costmodel_files
from tests.taxtui.tui import story

RUN: Final = "20260101t000000z-00000000"
CELL: Final = Cell(
    id=0,
    substrate="docker",
    variant="runc",
    tier="T0",
    tier_digest="d0",
    actions=3,
    mode="exec",
    concurrency=1,
    arrival="sequential",
    think="0s",
    acquire="create",
    cache="node",
    cpu_milli=1000,
    memory_mib=1024,
    network="none",
    image="sha256:1",
    environment="e",
    substrate_version="27",
    cycle=10,
    bracket="bash",
    bracket_cost_ns=UNKNOWN,
    preload="image",
    limits="cgroup v2",
    provenance="measured",
    capabilities=("bash",),
)
OTHER: Final = msgspec.structs.replace(CELL, id=1, mode="session", think="1s", bracket="none", capabilities=())


def _phases(trial: int, *phases: tuple[str, int, int]) -> list[Event]:
    return [PhaseEnded(trial, phase, start_ns, duration_ns) for phase, start_ns, duration_ns in phases]


_TOLD: Final[list[Event]] = [
    Header("taxtui", 1, RUN, {"name": "golden"}, {"python": "3"}),
    Clock(0, 5_000, 1_767_225_600_000_000_000, "h"),
    CELL,
    OTHER,
    Health(1, 2, 3, 4, 50, 0, 0, 900_000),
    # A warm-up, after which the cell is announced again with the cost of its bracket.
    TrialStarted(0, 0, "taxtui-g-0", 10, 12, warm_up=True, repetition=0),
    *_phases(0, ("create", 12, 100), ("ready", 112, 50), ("ready_again", 162, 9)),
    msgspec.structs.replace(CELL, bracket_cost_ns=77),
    Actions(0, "action", 0, [1, 1, 1], [], [9, 9, 9], [8, 8, 8], [], [], []),
    TrialEnded(0, "ok", "", "", "", 201, 0, "cold"),
    # Columns full and empty, actions in two parts, an unknown run, a throttled create, a set-up, two blocks.
    TrialStarted(1, 0, "taxtui-g-1", 300, 300),
    Mark(1, "started", 460, 1_000),
    *_phases(1, ("create", 350, 100), ("ready", 450, 40), ("ready_again", 490, 10)),
    Actions(1, "setup", 0, [2], [], [30], [25], [], [3], []),
    *_phases(1, ("setup", 500, 32)),
    Actions(1, "action", 0, [3, 4], [], [60, 70], [50, UNKNOWN], [], [5, 6], []),
    Notice(600, "warning", "docker: throttled, waits 0.1 s"),
    Actions(1, "action", 2, [], [11], [80], [], [0], [], [7]),
    *_phases(1, ("cleanup", 760, 90)),
    TrialEnded(1, "ok", "", "", "", 760, 50, "warm"),
    TrialStarted(2, 1, "taxtui-g-2", 900, 905, attempt=1, block=1),
    *_phases(2, ("create", 905, 20), ("ready", 925, 20)),
    Actions(2, "action", 0, [], [0, 500, 700], [10, 10, 10], [UNKNOWN] * 3, [], [], []),
    TrialEnded(2, "ok", "", "", "", 2_175, 0, "warm"),
    # What fails, what runs out of time, and what a person stopped.
    TrialStarted(3, 1, "taxtui-g-3", 3_000, 3_000),
    *_phases(3, ("create", 3_000, 25)),
    TrialEnded(3, "failed", "ready", "SandboxLost", "it is gone", 3_100, 0, "warm"),
    TrialStarted(4, 0, "taxtui-g-4", 4_000, 4_000),
    *_phases(4, ("create", 4_000, 30), ("ready", 4_030, 30)),
    Actions(4, "action", 0, [1], [], [40], [35], [1], [], []),
    TrialEnded(4, "timeout", "action", "ExecTimeout", "", 9_000, 0, "warm"),
    TrialStarted(5, 0, "taxtui-g-5", 9_500, 9_500),
    TrialEnded(5, "cancelled", "create", "", "", 9_600, 0, "warm"),
]
_APPENDED: Final[list[Event]] = [
    msgspec.structs.replace(CELL, id=2, actions=0, provenance="imported", length="recorded", resolution_ns=1_000_000),
    TrialStarted(6, 2, "", 9_700, 9_700, 1, False, 0, 1, "t", "sha256:2", 2_000_000_000, "g", 42),
    Mark(6, "pulled", 9_720, 0, 700),
    Actions(6, "action", 0, [], [], [10, 20], [9, UNKNOWN], [], [], [], [8, UNKNOWN], [1, UNKNOWN]),
    *_phases(6, ("verify", 9_740, 30)),
    TrialEnded(6, "cancelled", "verify", "", "", 9_800, 0, "warm", "n", "cancelled"),
]

ENDED: Final = RunFinished("cancelled", {"cancelled": 2, "failed": 1, "ok": 2, "timeout": 1})

FIRST: Final[list[Event]] = [*_TOLD, RunFinished("cancelled", {"cancelled": 1, "failed": 1, "ok": 2, "timeout": 1})]
"""What the first writer of version 1 knew."""
THIRD: Final[list[Event]] = [
    *_TOLD,
    *(msgspec.structs.replace(event, cause="") if isinstance(event, TrialEnded) else event for event in _APPENDED),
    ENDED,
]
"""The last stream without causes."""
SECOND: Final[list[Event]] = [
    msgspec.structs.replace(event, wrapper_ns=[]) if isinstance(event, Actions) else event for event in THIRD
]
"""The last stream without wrapper time."""
STREAM: Final[list[Event]] = [*_TOLD, *_APPENDED, ENDED]

GOLDEN: Final = Path(__file__).parent / "golden.msgpack"
GOLDEN_FIRST: Final = GOLDEN.with_name("golden_first.msgpack")
GOLDEN_SECOND: Final = GOLDEN.with_name("golden_second.msgpack")
GOLDEN_THIRD: Final = GOLDEN.with_name("golden_third.msgpack")
VERSIONS: Final = pytest.mark.parametrize(
    ("golden", "stream"),
    [(GOLDEN, STREAM), (GOLDEN_THIRD, THIRD), (GOLDEN_SECOND, SECOND), (GOLDEN_FIRST, FIRST)],
    ids=["today", "third", "second", "first"],
)


Numbers = tuple[bool, int, int, int, int, int, list[int], list[int], list[int], list[int]]
"""Of a counted trial, as a projection needs them: success, times held, queued, of the cold start and the clean-up, its
block; and by action the duration, gap, think time and in-sandbox time."""


def numbers_of(path: Path) -> dict[str, list[Numbers]]:
    """Counted trials in order, by the mode of their cell."""
    recording = costmodel.load(path)
    assert isinstance(recording, Recording)
    trials: dict[str, list[Numbers]] = {}
    for cell in recording.cells:
        for trial in cell.trials:
            held, zeros = trial.measures, [0] * len(trial.durations_ns)
            times = held.held_ns, held.queued_ns, held.cold_start_ns, held.cleanup_ns or 0
            columns = list(trial.gaps_ns) or zeros, list(trial.thinks_ns) or zeros, list(trial.runs_ns)
            numbers = (trial.ok, *times, trial.block, list(trial.durations_ns), *columns)
            trials.setdefault(cell.identity.mode, []).append(numbers)
    return trials


def test_the_golden_file_is_what_the_recorder_writes_today(tmp_path: Path) -> None:
    assert story.record(tmp_path / "today.msgpack", STREAM, RUN).read_bytes() == GOLDEN.read_bytes()


@VERSIONS
def test_the_golden_file_reads_as_its_events(golden: Path, stream: list[Event]) -> None:
    assert events(golden) == stream
    summary = read_events(golden, lambda event: None)
    assert (summary.complete, summary.skipped, summary.torn_bytes) == (True, 0, 0)


@VERSIONS
def test_trials_have_the_numbers_of_their_events(golden: Path, stream: list[Event]) -> None:
    assert numbers_of(golden) == {
        "exec": [
            (True, 450, 50, 140, 90, 0, [60, 70, 80], [3, 4, 0], [0, 0, 11], [50, UNKNOWN, 0]),
            (False, 5_000, 0, 60, 0, 0, [40], [1], [0], [35]),
        ],
        "session": [
            (True, 1_270, 0, 40, 0, 1, [10, 10, 10], [0, 0, 0], [0, 500, 700], [UNKNOWN] * 3),
            (False, 100, 0, 25, 0, 0, [], [], [], []),
        ],
    }


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
    second, cold_ns = 10**9, 3 * 10**9
    assert numbers_of(path)["exec"] == [
        (True, 2 * cold_ns + 18, 7, cold_ns, 13, 0, [second] * 3, [1, 2, 3], [0, 5, 0], [second] * 3),
        (True, 2 * cold_ns + 20, 0, cold_ns, 0, 3, [second] * 3, [0] * 3, [0] * 3, [UNKNOWN, 4, 5]),
        (False, cold_ns + 17, 0, cold_ns, 0, 0, [17], [0], [0], [17]),
    ]
