"""Opening a recording of 100 MB on Live, and reading the recording to its end.

    python tests/benchmarks/bench_replay.py [MEGABYTES]

Prints the reading beside a plain fold of the same file in the same run, event by event.
The recording (36 cells, trials of 150 actions) is kept in the folder for temporary files.
"""

from __future__ import annotations

import asyncio
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from costmodel.recording import events
from costmodel.recording.follower import Follower
from taxtui.live.state import RunState
from taxtui.recording.writer import Recorder
from taxtui.tui.live.panels import CellTable
from taxtui.tui.live.replay import ReplayFeed
from tests.benchmarks.figures import tell
from tests.taxtui.tui import story
from tests.taxtui.tui.feeds import app
from tests.taxtui.tui.story import MS, S

SUBSTRATES = ("local", "docker", "kubernetes", "daytona", "ec2", "ecs")
TIERS = ("T0", "T1", "T2")
LENGTH = 150
BATCH = 50
SIZE = (120, 40)


def recording(megabytes: int) -> Path:
    """Write it, unless an earlier run has."""
    path = Path(tempfile.gettempdir()) / f"taxtui-bench-replay-{megabytes}.msgpack"
    if not path.exists():
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        write(part, megabytes * 10**6)
        part.rename(path)
    return path


def write(path: Path, size_bytes: int) -> None:
    source = random.Random(0)
    cells = [(name, tier, mode) for name in SUBSTRATES for tier in TIERS for mode in ("exec", "session")]
    pools = [
        [[round(2 * MS * (1 + cell / 6) * source.lognormvariate(0, 0.4)) for _ in range(LENGTH)] for _ in range(12)]
        for cell in range(len(cells))
    ]
    gaps = [source.randrange(20_000, 60_000) for _ in range(LENGTH)]
    sizes = [source.randrange(0, 2000) for _ in range(LENGTH)]
    with Recorder(path) as recorder:
        recorder.add(story.header([story.planned(name, tier, LENGTH, 1100) for name, tier, _ in cells]))
        recorder.add(story.clock())
        for cell, (name, tier, _) in enumerate(cells):
            recorder.add(story.cell(cell, name, "", tier, LENGTH))
        at_ns, trial, second = 10 * MS, 0, 0
        while recorder.size_bytes < size_bytes:
            cell = trial % len(cells)
            durations = source.choice(pools[cell])
            recorder.add(events.TrialStarted(trial, cell, f"taxtui-7f3a-{trial}", at_ns, at_ns))
            phases = {events.CREATE: round(40 * MS * source.lognormvariate(0, 0.25)), events.READY: 20 * MS}
            for name, duration_ns in phases.items():
                recorder.add(events.PhaseEnded(trial, name, at_ns, duration_ns))
                at_ns += duration_ns
            for first in range(0, LENGTH, BATCH):
                rows = slice(first, first + BATCH)
                took = durations[rows]
                runs = [duration * 2 // 5 for duration in took]
                recorder.add(
                    events.Actions(trial, events.ACTION, first, gaps[rows], [], took, runs, [], sizes[rows], [])
                )
                recorder.flush()
            at_ns += sum(durations) + sum(gaps)
            recorder.add(events.PhaseEnded(trial, events.CLEANUP, at_ns, 10 * MS))
            recorder.add(events.TrialEnded(trial, events.OK, "", "", "", at_ns, 0, "warm"))
            at_ns += 11 * MS
            trial += 1
            while second * S < at_ns:
                second += 1
                recorder.add(story.health(at_ns))
        recorder.add(events.RunFinished("finished", {events.OK: trial}))


def plain_s(path: Path) -> float:
    """Seconds of a plain fold of the file."""
    state, began_s = RunState(), time.perf_counter()
    with Follower(path) as follower:
        while batch := follower.poll(128 << 10):
            for event in batch:
                state.apply(event)
    return time.perf_counter() - began_s


def resident_mib() -> float:
    """The most that this process has ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def first_paint_s(path: Path) -> float:
    """From a path to the first frame of the app."""
    began_s = time.perf_counter()
    feed = ReplayFeed(path)
    async with app(feed).run_test(size=SIZE) as pilot:
        await until(lambda: pilot.app.screen.query_one(CellTable).items)
        took_s = time.perf_counter() - began_s
    feed.close()
    return took_s


async def watch(path: Path, little: Path) -> None:
    """Everything that a person waits for, in the app's own loop."""
    await first_paint_s(little)  # what is imported late
    little_s, painted_s = await first_paint_s(little), await first_paint_s(path)
    before_mib, began_s = resident_mib(), time.perf_counter()
    feed = ReplayFeed(path)
    opened_s = time.perf_counter() - began_s
    async with app(feed).run_test(size=SIZE):
        lags = await until(lambda: feed.over)
        read_s = time.perf_counter() - began_s
        grown_mib = resident_mib() - before_mib
    feed.close()
    actions = sum(cell.facets["action"].n for cell in feed.state.cells.values())
    print(f"{path.stat().st_size / 1e6:.0f} MB, {actions:,} actions")
    row("open", opened_s)
    row("first paint", painted_s, little_s, "of a recording of a few kB")
    row("read to the end", read_s, plain_s(path), "to fold the file at once")
    lags.sort()
    p99_ms, most_ms = lags[int(0.99 * len(lags))] * 1e3, lags[-1] * 1e3
    print(f"the loop was late by {p99_ms:.0f} ms at p99 of its turns, {most_ms:.0f} ms at most")
    print(f"the process grew by {grown_mib:.0f} MiB with the app")


def row(name: str, ours_s: float, plain_s: float | None = None, what: str = "") -> None:
    beside = "" if plain_s is None else f"{plain_s:9.3f} s {what} ({ours_s / plain_s:.3f})"
    print(f"{name:24} {ours_s:9.3f} s {beside}")
    tell(f"{name}, 100 MB", ours_s, "s", plain_s, what, wanted="< 2 s" if name == "first paint" else "")


async def until(done: Callable[[], bool]) -> list[float]:
    """Wait; how late each turn of the loop was, in seconds."""
    lags = []
    while not done():
        asked_s = time.perf_counter()
        await asyncio.sleep(0.001)
        lags.append(time.perf_counter() - asked_s - 0.001)
    return lags


def main(megabytes: int) -> None:
    path = recording(megabytes)
    with tempfile.TemporaryDirectory() as folder:
        little = Path(folder) / "little.msgpack"
        with Recorder(little) as recorder:
            for event in story.run(3):
                recorder.add(event)
        asyncio.run(watch(path, little))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
