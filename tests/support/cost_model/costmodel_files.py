"""Writes recordings for tests of the cost model, from the format's description alone: no code of the product."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

S: Final = 1_000_000_000
CELL: Final = {
    "substrate": "docker",
    "variant": "",
    "tier": "T2",
    "tier_digest": "d2",
    "actions": 3,
    "mode": "exec",
    "concurrency": 1,
    "arrival": "sequential",
    "think": "0s",
    "acquire": "create",
    "cache": "node",
    "cpu_milli": 1000,
    "memory_mib": 1024,
    "network": "none",
    "image": "sha256:1",
    "environment": "env1",
    "substrate_version": "1.0",
    "cycle": 2,
    "bracket": "bash",
    "bracket_cost_ns": 0,
    "preload": "none",
    "limits": "cgroup",
    "provenance": "measured",
    "capabilities": [],
    "length": "fixed",
    "resolution_ns": 0,
}


def frame(events: Sequence[Any]) -> bytes:
    """One frame around a batch of positional events."""
    payload = msgspec.msgpack.encode(list(events))
    return struct.pack(">BIBI", 0xC9, len(payload) + 4, 0x54, zlib.crc32(payload)) + payload


def header(run_id: str = "run-1", version: int = 1) -> list[Any]:
    """The first event."""
    return [0, "taxtui", version, run_id, {}, {}]


def cell(number: int = 0, **identity: Any) -> list[Any]:
    """A cell, with the defaults above."""
    return [2, number, *{**CELL, **identity}.values()]


def trial(
    number: int,
    *,
    cell: int = 0,
    create: int = 2 * S,
    ready: int = 1 * S,
    actions: Sequence[int] = (S, S, S),
    runs: Sequence[int] | None = None,
    cpus: Sequence[int] = (),
    wrappers: Sequence[int] = (),
    thinks: Sequence[int] = (),
    gaps: Sequence[int] = (),
    setup: Sequence[tuple[int, int]] = (),
    ready_again: int = 0,
    queued: int = 0,
    cleanup: int = 0,
    outcome: str = "ok",
    error: str = "",
    block: int = 0,
    warm_up: bool = False,
    repetition: int = 0,
    extra: int = 0,
) -> list[list[Any]]:
    """All events of one trial; ``setup`` holds (duration, run) and ``extra`` is held after the last action."""
    start = number * 1000 * S
    held = queued + create + ready + sum(duration for duration, _ in setup) + sum(actions) + sum(thinks) + sum(gaps)
    end = start + held + ready_again + extra
    events: list[list[Any]] = [
        [3, number, cell, f"sandbox-{number}", start, start, 0, warm_up, block, repetition],
        [5, number, "create", start + queued, create],
        [5, number, "ready", start + queued + create, ready],
    ]
    if ready_again:
        events.append([5, number, "ready_again", start + queued + create + ready, ready_again])
    if setup:
        durations, own = [duration for duration, _ in setup], [run for _, run in setup]
        events.append([6, number, "setup", 0, [], [], durations, own, [], [], []])
    if actions:
        own = list(actions if runs is None else runs)
        columns = [list(gaps), list(thinks), list(actions), own, [], [], [], list(cpus), list(wrappers)]
        events.append([6, number, "action", 0, *columns])
    events.append([5, number, "cleanup", end, cleanup])
    events.append([7, number, outcome, "" if outcome == "ok" else "action", error, "", end, queued, "warm"])
    return events


def health(lag_p99: int = 1_000_000, cpu_permille: int = 100) -> list[Any]:
    """One second of the measuring process."""
    return [8, 0, 0, lag_p99, lag_p99, cpu_permille, 1, 0, 800_000]


def write(
    path: Path, trials: Sequence[list[list[Any]]], *cells: list[Any], run_id: str = "run-1", complete: bool = True
) -> Path:
    """A whole file: header, cells (one default cell if none is given), one frame per trial, the end."""
    frames = [frame([header(run_id)]), frame(cells or [cell()]), *(frame(events) for events in trials)]
    ended = [event for events in trials for event in events if event[0] == 7]
    warm_ups = {event[1] for events in trials for event in events if event[0] == 3 and event[7]}
    counts = Counter(event[2] for event in ended if event[1] not in warm_ups)
    path.write_bytes(b"".join(frames + [frame([[10, "finished", counts]])] * complete))
    return path


def price_sheet(
    folder: Path,
    keys: str,
    *,
    substrate: str = "docker",
    minimum_s: float = 0,
    increment_s: float = 0.000001,
    worker: float = 0.0,
) -> Path:
    """A price sheet of one substrate with these ``keys``; ``worker``: dollars of a worker's hour."""
    names = f'[[sandbox]]\nsubstrate = "{substrate}"\nsource = "x"\n'
    path = folder / "sheet.toml"
    path.write_text(
        f"date = 2026-01-01\n{names}minimum_s = {minimum_s}\nincrement_s = {increment_s}\n{keys}\n"
        f"[worker]\nusd_per_hour = {worker}\n"
    )
    return path
