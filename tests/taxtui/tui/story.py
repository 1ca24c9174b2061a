"""A made-up run as a list of events, the same on every machine: what the tests of the fold and of the TUI look at."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from costmodel.recording import events
from costmodel.recording.events import Event, Header
from taxtui.live.state import RunState
from taxtui.recording.writer import Recorder

MS = 1_000_000
S = 1_000 * MS
UNIX_NS = 1_700_000_000 * S


def header(cells: list[dict[str, Any]], **more: Any) -> events.Header:
    plan = {"name": "story", "cells": cells, **more}
    return events.Header(events.MAGIC, 1, "7f3a0c11", plan, {"python": "3.11", "kernel": "6.1"})


def planned(substrate: str, tier: str = "T0", actions: int = 10, trials: int = 20, **options: str) -> dict[str, Any]:
    place = {"substrate": {"name": substrate, "options": options}, "tier": {"name": tier}}
    return {**place, "actions": actions, "mode": "exec", "concurrency": 1, "trials": trials, "warmup": 1}


def cell(key: int, substrate: str, variant: str = "", tier: str = "T0", actions: int = 10) -> events.Cell:
    return events.Cell(
        key, substrate, variant, tier, "0123456789abcdef", actions, "exec", 1, "sequential", "0s", "create", "node",
        1000, 1024, "none", "", "env", "1.0", 10, "bash", 40_000, "none", "cgroup", "measured",
    )  # fmt: skip


def clock(worker: int = 0, unix_ns: int = UNIX_NS) -> events.Clock:
    return events.Clock(worker, 123 * S, unix_ns, "host")


def trial(
    key: int,
    cell: int,
    start_ns: int,
    *,
    create_ns: int = 40 * MS,
    ready_ns: int = 20 * MS,
    setup_ns: int = 0,
    durations_ns: list[int] | None = None,
    runs_ns: list[int] | None = None,
    think_ns: list[int] | None = None,
    queued_ns: int = 0,
    outcome: str = events.OK,
    phase: str = "",
    error: str = "",
    message: str = "",
    warm_up: bool = False,
) -> list[Event]:
    """All events of one trial; READY_AGAIN and CLEANUP take 2 ms and 10 ms, everything else is as asked."""
    durations_ns = durations_ns if durations_ns is not None else [5 * MS] * 10
    told: list[Event] = [events.TrialStarted(key, cell, f"taxtui-7f3a-{key}", start_ns, start_ns, 0, warm_up, key)]
    at_ns = start_ns
    for name, duration_ns in (
        (events.CREATE, create_ns),
        (events.READY, ready_ns),
        (events.READY_AGAIN, 2 * MS),
        (events.SETUP, setup_ns),
    ):
        if duration_ns:
            told.append(events.PhaseEnded(key, name, at_ns, duration_ns))
            at_ns += duration_ns
    told.append(events.Mark(key, "running", start_ns + create_ns, 0))
    rows = len(durations_ns)
    run_ns = runs_ns if runs_ns is not None else [duration // 2 for duration in durations_ns]
    thinks = think_ns or []
    told.append(events.Actions(key, events.ACTION, 0, [], thinks, durations_ns, run_ns, [], [9] * rows, []))
    end_ns = at_ns + sum(durations_ns) + sum(thinks) + queued_ns
    told.append(events.PhaseEnded(key, events.CLEANUP, end_ns, 10 * MS))
    told.append(events.TrialEnded(key, outcome, phase, error, message, end_ns, queued_ns, "warm"))
    return told


def health(at_ns: int, *, lag_p99_ns: int = 900_000, cpu_permille: int = 120) -> events.Health:
    return events.Health(at_ns, 100_000, lag_p99_ns, 2 * lag_p99_ns, cpu_permille, 1, 0, 810_000)


def ended_trials(told: list[Event]) -> dict[str, int]:
    """What the end of a run counts: trials by outcome, without warm-ups."""
    started = [event for event in told if isinstance(event, events.TrialStarted)]
    counted = {event.trial for event in started if not event.warm_up}
    return dict(Counter(e.outcome for e in told if isinstance(e, events.TrialEnded) and e.trial in counted))


def run(trials: int = 20, *, until: int | None = None, finish: bool = True) -> list[Event]:
    """Two substrates in turn, every seventh trial of docker throttled, stopped after ``until`` trials of each."""
    rng = random.Random(7)
    told: list[Event] = [
        header([planned("local", trials=trials), planned("docker", trials=trials, runtime="runc")]),
        clock(),
        cell(0, "local", "bwrap"),
        cell(1, "docker", "runc"),
        events.Notice(1 * MS, "info", "docker: image taxtui:1 is present"),
    ]
    at_ns, key = 10 * MS, 0
    for index in range(-1, trials if until is None else until):
        for which, scale in ((0, 1.0), (1, 8.0)):
            create_ns = round(40 * MS * scale * rng.lognormvariate(0, 0.25))
            durations_ns = [round(2 * MS * scale * rng.lognormvariate(0, 0.4)) for _ in range(10)]
            runs_ns = [min(round(1.2 * MS * rng.lognormvariate(0, 0.1)), duration) for duration in durations_ns]
            how: dict[str, Any] = {"durations_ns": durations_ns, "runs_ns": runs_ns}
            if which == 1 and index % 7 == 6 and index > 0:
                how = {"durations_ns": [], "runs_ns": [], "outcome": events.FAILED, "phase": "create"}
                how |= {"error": "Throttled", "message": "429, waited 4 s"}
            starting: dict[str, Any] = {"create_ns": create_ns, "ready_ns": round(20 * MS * scale)}
            happened = trial(key, which, at_ns, warm_up=index < 0, **starting, **how)
            ended = happened[-1]
            assert isinstance(ended, events.TrialEnded)
            told += happened
            at_ns = ended.end_ns + 11 * MS
            key += 1
        if index % 4 == 0:
            told.append(health(at_ns))
    if finish:
        told.append(events.RunFinished("finished", ended_trials(told)))
    return told


def fold(told: Iterable[Event]) -> RunState:
    state = RunState()
    for event in told:
        state.apply(event)
    return state


def record(path: Path, told: list[Event] | None = None, run_id: str = "7f3a0c11") -> Path:
    """Write a story; the usual one has two substrates with 40 trials each."""
    with Recorder(path) as recorder:
        for event in run(40) if told is None else told:
            recorder.add(msgspec.structs.replace(event, run_id=run_id) if isinstance(event, Header) else event)
    return path
