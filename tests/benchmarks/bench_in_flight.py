"""One process with many trials in flight: actions a second, the loop's lag, memory for each trial, and how they grow.

    python -m tests.benchmarks.bench_in_flight [HIGHEST] [ACTIONS]      exit 1 where a promise is broken
Against the shipped fake: a command takes .27 s at the median, and none of this machine's time. Lower levels are an
eighth, a quarter and a half of HIGHEST. Lag: median and worst 99th percentile of seconds with nearly all in flight.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from costmodel import read_events
from costmodel.recording.events import Event, Health
from tests.benchmarks.bench_workers import environment, rate
from tests.support import paced_fake

COMMAND_S = 0.27
FEW = 16
"""Trials in flight of a run that shows what the program itself takes."""
FULL = 0.9
"""Of the trials in flight: a second counts where so many were."""
LAG_MS, ACTIONS_PER_S, KB_A_TRIAL = 20.0, 5_000.0, 100.0


class Level(NamedTuple):
    """What a run with so many trials in flight was like."""

    in_flight: int
    actions_per_s: float
    lag_ms: float
    worst_lag_ms: float
    cores: float  # that the process took
    memory_mb: float


class Taken(NamedTuple):
    """The most memory in MB that a program or one of its processes had, its exit code, and its CPU seconds.

    Memory is never less than the starting process had: the kernel counts that in.
    """

    memory_mb: float
    exit_code: int
    cpu_s: float  # user and system, with its children: independent of what runs beside


def taken(words: Sequence[str | Path], give_up_s: float = 3600.0) -> Taken:
    """Run a program without its output; kill it after ``give_up_s``."""
    process = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    killer = threading.Timer(give_up_s, process.kill)
    killer.start()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    killer.cancel()
    return Taken(used.ru_maxrss / 1e3, process.returncode, used.ru_utime + used.ru_stime)


def measured(folder: Path, in_flight: int, actions: int) -> Level:
    """Two trials for each lane, in a process of its own."""
    path, tier = folder / f"{in_flight}.msgpack", paced_fake.tier(folder)
    words = ["-s", f"{paced_fake.NAME}:median_s={COMMAND_S},sigma=0.5", "-t", str(tier), "-n", str(actions)]
    words += ["--trials", str(2 * in_flight), "--warmup", "0", "--concurrency", str(in_flight), "--mode", "exec"]
    words += ["--set", "bracket=false", "-o", str(path), "--progress", "none"]
    with patch.dict(os.environ, environment(folder)):
        used = taken([sys.executable, "-m", "taxtui", "run", *words])
    assert used.exit_code == 0, used
    seconds: list[Health] = []

    def keep(event: Event) -> None:
        if isinstance(event, Health):
            seconds.append(event)

    read_events(path, keep)
    full = [second for second in seconds if second.in_flight >= FULL * in_flight]
    lags_ms = [second.lag_p99_ns / 1e6 for second in full]
    cores = statistics.median(second.cpu_permille for second in full) / 1e3
    return Level(in_flight, rate(path), statistics.median(lags_ms), max(lags_ms), cores, used.memory_mb)


def main(highest: int, actions: int) -> bool:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few = measured(folder, FEW, actions)
        levels = [measured(folder, highest // share, actions) for share in (8, 4, 2, 1)]
    head = ("in flight", "actions/s", "lag p99, ms", "worst second", "cores", "MB", "kB a trial")
    print("".join(f"{word:>14}" for word in head))
    memory: list[tuple[int, float]] = []
    for level in (few, *levels):
        mb = level.memory_mb - few.memory_mb
        each_kb = 1e3 * mb / (level.in_flight - few.in_flight) if level is not few else 0.0
        figures = f"{level.actions_per_s:14,.0f}{level.lag_ms:14.2f}{level.worst_lag_ms:14.2f}{level.cores:14.2f}"
        print(f"{level.in_flight:14,}{figures}{level.memory_mb:14.1f}{each_kb:14.1f}")
        memory.append((level.in_flight, mb))
    top = levels[-1]
    each_kb = 1e3 * memory[-1][1] / (top.in_flight - few.in_flight)
    kept = top.lag_ms < LAG_MS and top.actions_per_s >= ACTIONS_PER_S and each_kb <= KB_A_TRIAL
    print(f"promised < {LAG_MS:g} ms, ≥ {ACTIONS_PER_S:,.0f}/s, ≤ {KB_A_TRIAL:g} kB: {'kept' if kept else 'NOT KEPT'}")
    return kept


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    sys.exit(0 if main(*(given + [2000, 60][len(given) :])) else 1)
