"""One stream that has everything a recording can hold, small enough to flip each of its bits."""

from __future__ import annotations

from typing import Final

import msgspec

from costmodel.recording.events import (
    ACTION,
    CANCELLED,
    CLEANUP,
    CREATE,
    FAILED,
    OK,
    READY,
    READY_AGAIN,
    RECORDED_LENGTH,
    SETUP,
    TIMEOUT,
    UNKNOWN,
    VERIFY,
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
    Header("taxtui", 1, "20260101t000000z-00000000", {"name": "golden"}, {"python": "3"}),
    Clock(0, 5_000, 1_767_225_600_000_000_000, "h"),
    CELL,
    OTHER,
    Health(1, 2, 3, 4, 50, 0, 0, 900_000),
    # A warm-up, after which the cell is announced again with the cost of its bracket.
    TrialStarted(0, 0, "taxtui-g-0", 10, 12, warm_up=True),
    *_phases(0, (CREATE, 12, 100), (READY, 112, 50), (READY_AGAIN, 162, 9)),
    msgspec.structs.replace(CELL, bracket_cost_ns=77),
    Actions(0, ACTION, 0, [1, 1, 1], [], [9, 9, 9], [8, 8, 8], [], [], []),
    TrialEnded(0, OK, "", "", "", 201, 0, "cold"),
    # Columns full and empty, actions in two parts, an unknown run, a throttled create, a set-up, two blocks.
    TrialStarted(1, 0, "taxtui-g-1", 300, 300),
    Mark(1, "started", 460, 1_000),
    *_phases(1, (CREATE, 350, 100), (READY, 450, 40), (READY_AGAIN, 490, 10)),
    Actions(1, SETUP, 0, [2], [], [30], [25], [], [3], []),
    *_phases(1, (SETUP, 500, 32)),
    Actions(1, ACTION, 0, [3, 4], [], [60, 70], [50, UNKNOWN], [], [5, 6], []),
    Notice(600, "warning", "docker: throttled, waits 0.1 s"),
    Actions(1, ACTION, 2, [], [11], [80], [], [0], [], [7]),
    *_phases(1, (CLEANUP, 760, 90)),
    TrialEnded(1, OK, "", "", "", 760, 50, "warm"),
    TrialStarted(2, 1, "taxtui-g-2", 900, 905, attempt=1, block=1),
    *_phases(2, (CREATE, 905, 20), (READY, 925, 20)),
    Actions(2, ACTION, 0, [], [0, 500, 700], [10, 10, 10], [UNKNOWN] * 3, [], [], []),
    TrialEnded(2, OK, "", "", "", 2_175, 0, "warm"),
    # What fails, what runs out of time, and what a person stopped.
    TrialStarted(3, 1, "taxtui-g-3", 3_000, 3_000),
    *_phases(3, (CREATE, 3_000, 25)),
    TrialEnded(3, FAILED, READY, "SandboxLost", "it is gone", 3_100, 0, "warm"),
    TrialStarted(4, 0, "taxtui-g-4", 4_000, 4_000),
    *_phases(4, (CREATE, 4_000, 30), (READY, 4_030, 30)),
    Actions(4, ACTION, 0, [1], [], [40], [35], [1], [], []),
    TrialEnded(4, TIMEOUT, ACTION, "ExecTimeout", "", 9_000, 0, "warm"),
    TrialStarted(5, 0, "taxtui-g-5", 9_500, 9_500),
    TrialEnded(5, CANCELLED, CREATE, "", "", 9_600, 0, "warm"),
]
_APPENDED: Final[list[Event]] = [
    msgspec.structs.replace(
        CELL, id=2, actions=0, provenance="imported", length=RECORDED_LENGTH, resolution_ns=1_000_000
    ),
    TrialStarted(6, 2, "", 9_700, 9_700, 1, False, 0, 1, "t", "sha256:2", 2_000_000_000, "g", 42),
    Mark(6, "pulled", 9_720, 0, 700),
    Actions(6, ACTION, 0, [], [], [10, 20], [9, UNKNOWN], [], [], [], [8, UNKNOWN], [1, UNKNOWN]),
    *_phases(6, (VERIFY, 9_740, 30)),
    TrialEnded(6, CANCELLED, VERIFY, "", "", 9_800, 0, "warm", "n"),
]

FIRST: Final[list[Event]] = [*_TOLD, RunFinished("cancelled", {"cancelled": 1, "failed": 1, "ok": 2, "timeout": 1})]
"""What the first writer of version 1 knew."""
SECOND: Final[list[Event]] = [
    *_TOLD,
    *(msgspec.structs.replace(event, wrapper_ns=[]) if isinstance(event, Actions) else event for event in _APPENDED),
    RunFinished("cancelled", {"cancelled": 2, "failed": 1, "ok": 2, "timeout": 1}),
]
"""The last stream without wrapper time."""
STREAM: Final[list[Event]] = [
    *_TOLD,
    *_APPENDED,
    RunFinished("cancelled", {"cancelled": 2, "failed": 1, "ok": 2, "timeout": 1}),
]
