"""Writes a recording of a ladder whose every number is known: lanes in step, each as long as its level says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.cost_model.costmodel_files import S, cell, frame, header

MS = S // 1000
LEVELS = (1, 2, 4, 8, 16, 32)


def climbed(
    folder: Path,
    lane_s: Callable[[int], float],
    levels: Sequence[int] = LEVELS,
    *,
    rounds: int = 8,
    lag_ms: float = 0.2,
    cpu: int = 100,
    waits: int = 0,
    clean_up: float = 0.25,
) -> Path:
    """Each level's lanes in step: two actions a trial, a quarter of a lane's time its clean-up; health each second."""
    frames, counts, number, now = [frame([header()]), frame([[1, 0, 0, 0, "h"]])], 0, 0, 0
    frames.append(frame([cell(n, concurrency=at, arrival="closed", actions=2) for n, at in enumerate(levels)]))
    for place, at in enumerate(levels):
        lane = round(lane_s(at) * S)
        for block in range(rounds // 4):
            began = now
            events: list[tuple[int, list[Any]]] = []
            for turn in range(4):
                start = began + turn * lane
                held = round(lane * (1 - clean_up))
                for _ in range(at):
                    told = [
                        [3, number, place, "s", start, start, 0, False, block],
                        [6, number, "action", 0, [], [], [held // 2, held - held // 2], [0, 0], [], [], []],
                        [5, number, "cleanup", start + held, lane - held],
                        [7, number, "ok", "", "", "", start + held, 0, "warm"],
                    ]
                    events += [(start, told[0]), *((start + lane, one) for one in told[1:])]
                    number += 1
            now = began + 4 * lane
            for second in range(began // S + 1, now // S + 1):
                lag = round(lag_ms * MS)
                events.append((second * S, [8, second * S, lag, 3 * lag, 5 * lag, cpu, at, waits, 800_000]))
            frames.append(frame([event for _, event in sorted(events, key=lambda one: (one[0], one[1][0] == 3))]))
            counts += 4 * at
    frames.append(frame([[10, "finished", {"ok": counts}]]))
    path = folder / "ladder.msgpack"
    path.write_bytes(b"".join(frames))
    return path


def law(a: float, b: float, c: float) -> Callable[[float], float]:
    return lambda n: a + b * (n - 1) + c * n * (n - 1)
