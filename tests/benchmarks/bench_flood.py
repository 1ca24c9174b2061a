"""What watching a flood costs the interface: a recording that grows by so many events a second, in tmux at 120x40.

    python tests/benchmarks/bench_flood.py [SECONDS]

Prints how late the event loop was, the share of a core that the process used and whether every event was folded, for
10,000 and 200,000 events a second, beside an app that shows one word, in the same run.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from textual.app import App, ComposeResult
from textual.widgets import Static

from costmodel.recording import events
from taxtui.recording.writer import Recorder
from taxtui.tui.app import TaxtuiApp
from taxtui.tui.live.feed import RunFeed, RunStarter
from tests.benchmarks.figures import tell
from tests.taxtui.tui import story

RATES = (10_000, 200_000)
PROBE_S = 0.01
BATCH_S = 0.05
IDLE_S = 10
SETTLE_S = 2  # the start is measured by bench_first_paint.py
SIZE = (120, 40)


def write(path: Path, rate: int, seconds: float) -> None:
    """Append events at a constant rate: trials of ten actions on two substrates."""
    one = story.trial(0, 0, 0)
    with Recorder(path) as recorder:
        trials = round(rate * seconds / len(one))
        plans = [story.planned(name, trials=trials // 2) for name in ("local", "docker")]
        for event in (story.header(plans), story.clock(), story.cell(0, "local", "bwrap"), story.cell(1, "docker")):
            recorder.add(event)
        began, told, key = time.monotonic(), 0, 0
        while told < rate * seconds:
            while told < rate * (time.monotonic() - began):
                for event in story.trial(key, key % 2, key * 10**6, create_ns=(40 + key % 17) * 10**6):
                    recorder.add(event)
                    told += 1
                key += 1
            recorder.flush()
            time.sleep(BATCH_S)
        recorder.add(events.RunFinished("finished", {events.OK: key}))


class Flood(RunStarter):
    """Starts the writer where the app would start ``taxtui run``."""

    def __init__(self, rate: int, seconds: float) -> None:
        super().__init__()
        self._told = (str(rate), str(seconds))

    def start(self, command: list[str], stderr: Any) -> Future[subprocess.Popen[bytes]]:
        path = command[command.index("-o") + 1]
        return super().start([sys.executable, __file__, "write", path, *self._told], stderr)


class OneWord(App[None]):
    """The least that a Textual app can show."""

    def compose(self) -> ComposeResult:
        yield Static("idle")


async def late(found: list[float]) -> None:
    """How much later than asked a sleep ends, in s, again and again."""
    while True:
        before = time.monotonic()
        await asyncio.sleep(PROBE_S)
        found.append(time.monotonic() - before - PROBE_S)


async def watch(folder: Path, rate: int, seconds: float) -> None:
    """Be the app in the terminal; leave what was measured as JSON."""
    feed = None
    app: App[None] = OneWord()
    if rate:
        launcher = Flood(rate, seconds)
        launcher.yield_cpu()
        feed = RunFeed({"cells": []}, folder / "flood.msgpack", launcher)
        app = TaxtuiApp(feed)
    lateness: list[float] = []
    probe = asyncio.create_task(late(lateness))
    began_s, cpu_s = time.monotonic(), time.process_time()

    async def leave() -> None:
        nonlocal began_s, cpu_s
        await asyncio.sleep(SETTLE_S)
        began_s, cpu_s = time.monotonic(), time.process_time()
        lateness.clear()
        await asyncio.sleep(seconds if feed is None else 1)
        while feed and not feed.over:
            await asyncio.sleep(0.1)
        app.exit()

    leaving = asyncio.create_task(leave())
    await app.run_async()
    probe.cancel()
    await leaving
    wall_s = time.monotonic() - began_s
    facts = {
        "lag_ms": sorted(1000 * value for value in lateness),
        "cpu": (time.process_time() - cpu_s) / wall_s,
        "wall_s": wall_s,
        "trials": sum(cell.finished for cell in feed.state.cells.values()) if feed else 0,
        "finished": feed is None or feed.state.outcome == "finished",
    }
    if feed:
        feed.close()
    (folder / "facts.json").write_text(json.dumps(facts))


def measured(rate: int, seconds: float) -> dict[str, Any]:
    """Have it watched in a terminal of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = shlex.join([sys.executable, __file__, "watch", name, str(rate), str(seconds)])
        tmux = ["tmux", "-L", f"taxtui-flood-{os.getpid()}-{rate}", "-f", "/dev/null"]
        width, height = map(str, SIZE)
        subprocess.run([*tmux, "new-session", "-d", "-s", "s", "-x", width, "-y", height, command], check=True)
        try:
            deadline = time.monotonic() + 4 * seconds + 60
            while not (folder / "facts.json").exists():
                if time.monotonic() > deadline:
                    sys.exit(f"{rate} events/s: no answer; it may have frozen")
                time.sleep(0.5)
            time.sleep(0.5)
            facts: dict[str, Any] = json.loads((folder / "facts.json").read_text())
            return facts
        finally:
            subprocess.run([*tmux, "kill-server"], check=False, capture_output=True)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    print(f"in tmux at {SIZE[0]}x{SIZE[1]}; the loop's lateness in ms; CPU in % of a core, of the whole process")
    print(f"{'events/s':>10} {'p50':>7} {'p99':>7} {'most':>7} {'CPU':>6} {'took':>7}  folded")
    idle_ms = 0.0
    for rate, length in ((0, IDLE_S), *((rate, seconds) for rate in RATES)):
        facts = measured(rate, length)
        lag = facts["lag_ms"]
        p50, p99 = (lag[min(len(lag) - 1, int(len(lag) * share))] for share in (0.5, 0.99))
        idle_ms = idle_ms or p99
        if rate:
            tell(f"lateness p99 at {rate:,} events/s", p99, "ms", idle_ms, "an app of one word")
        events_in_a_trial = len(story.trial(0, 0, 0))
        folded = f"{facts['trials'] * events_in_a_trial:,} events" if rate else "one word is shown"
        folded += "" if facts["finished"] else ", NOT ALL"
        times = f"{p50:>7.1f} {p99:>7.1f} {lag[-1]:>7.1f}"
        print(f"{rate:>10,} {times} {facts['cpu']:>6.1%} {facts['wall_s']:>6.1f}s  {folded}")
    print("wanted at 10,000: p99 below 50 ms, CPU at most 15 %; at 200,000: no freeze")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write", path, rate, seconds]:
            write(Path(path), int(rate), float(seconds))
        case ["watch", folder, rate, seconds]:
            asyncio.run(watch(Path(folder), int(rate), float(seconds)))
        case _:
            main()
