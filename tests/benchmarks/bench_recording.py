"""Encoding and reading a recording of a million actions, beside plain ``json`` doing the same in the same run.

python -m tests.benchmarks.bench_recording [ACTIONS]
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import costmodel
from costmodel.recording.events import (
    ACTION,
    Actions,
    Cell,
    Clock,
    Event,
    Header,
    PhaseEnded,
    RunFinished,
    TrialEnded,
    TrialStarted,
)
from costmodel.recording.follower import read_events
from taxtui.recording.writer import Recorder

LENGTH = 150
CREATE_NS, READY_NS, CLEANUP_NS = 200_000_000, 45_000_000, 50_000_000


def stream(actions: int) -> list[Event]:
    """Trials of 150 actions with durations, runs and sizes as docker's exec mode has them."""
    source = random.Random(0)
    identity = ("docker", "runc", "T1", "0" * 16, LENGTH, "exec", 1, "sequential", "0s", "create", "node", 1000, 1024)
    cell = Cell(0, *identity, "none", "", "e", "v", 10, "bash", -1, "image", "cgroup", "measured")
    events: list[Event] = [Header("taxtui", 1, "r", {}, {}), Clock(0, 0, 0, "h"), cell]
    now = 0
    for trial in range(actions // LENGTH):
        durations = [round(source.lognormvariate(17.6, 0.2)) for _ in range(LENGTH)]
        runs = [round(d * 0.05) // 1000 * 1000 for d in durations]
        gaps = [source.randrange(20_000, 60_000) for _ in durations]
        sizes = [source.randrange(0, 2000) for _ in durations]
        ready = now + CREATE_NS
        done = ready + READY_NS + sum(durations) + sum(gaps)
        ended = done + CLEANUP_NS
        events += [
            TrialStarted(trial, 0, f"taxtui-r-{trial}", now, now),
            PhaseEnded(trial, "create", now, CREATE_NS),
            PhaseEnded(trial, "ready", ready, READY_NS),
            Actions(trial, ACTION, 0, gaps, [], durations, runs, [], sizes, []),
            PhaseEnded(trial, "cleanup", done, CLEANUP_NS),
            TrialEnded(trial, "ok", "", "", "", ended, 0, "warm"),
        ]
        now = ended
    return [*events, RunFinished("finished", {"ok": actions // LENGTH})]


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main(actions: int) -> None:
    events = stream(actions)
    with tempfile.TemporaryDirectory() as folder:
        path, plain = Path(folder) / "r.msgpack", Path(folder) / "r.json"

        def record() -> None:
            with Recorder(path) as recorder:
                for event in events:
                    recorder.add(event)

        def record_json() -> None:
            with plain.open("w") as file:
                for event in events:
                    fields = {name: getattr(event, name) for name in event.__struct_fields__}
                    file.write(json.dumps(fields) + "\n")

        def read_json() -> None:
            with plain.open() as file:
                for line in file:
                    json.loads(line)

        rows = [
            ("encode and write", seconds(record), seconds(record_json)),
            ("read as events", seconds(lambda: read_events(path, lambda event: None)), seconds(read_json)),
            ("read by the cost model", seconds(lambda: costmodel.load(path)), seconds(read_json)),
        ]
        sizes = [file.stat().st_size / actions for file in (path, plain)]
        print("{} actions: {:.1f} bytes an action, json {:.1f}".format(actions, *sizes))
        print(f"{'':24} {'M actions/s':>12} {'json':>8} {'ratio':>8}")
        for name, ours, json_s in rows:
            print(f"{name:24} {actions / ours / 1e6:12.2f} {actions / json_s / 1e6:8.2f} {json_s / ours:7.1f}x")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
