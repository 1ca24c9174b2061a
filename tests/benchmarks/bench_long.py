"""Whether a long run stays as it began: memory, descriptors and the loop's lag, its last third beside its first.

    python tests/benchmarks/bench_long.py [--trials N]              six hours of trials at once: the runner's own work
    python tests/benchmarks/bench_long.py --real SECONDS [-s NAME]  a run of that length with real sandboxes

Six hours are 46,080 trials of ten actions: 64 at a time, of 30 s each. They take the runner as much work as they would
in six hours, and an instant in sandboxes that are none. What grows by more than it may is said, and exit code 1.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import click

from costmodel.recording.events import Event, Health
from costmodel.recording.follower import read_events
from taxtui.plan.arrivals import Arrival
from taxtui.plan.spec import CellPlan, Plan, Step, SubstrateRef, Tier
from taxtui.runner import preflight
from taxtui.runner import run as run_module
from taxtui.sandboxes.fake import FakeSubstrate
from tests.benchmarks.figures import tell
from tests.support.recorded import NoWatchdog

IN_FLIGHT = 64
TRIALS = 6 * 3600 * IN_FLIGHT // 30
ACTIONS = 10
SAMPLE_S = 0.5
WARM = 0.1
"""Of a run, that is not looked at: caches fill, threads start."""
MAY_GROW = {"memory, MiB": 1.15, "descriptors": 1.25, "lag p50, ms": 2.0}
"""From the first third to the last. Lag is a neighbour's too: it may grow as a bystander's lateness does."""


class Sample(NamedTuple):
    """Of a process, at one moment."""

    memory_mib: float
    descriptors: float
    late_ms: float = 0.0
    """How much later than asked a bystander, who does nothing else, was woken; where there is one."""


def sampled(pid: int) -> Sample:
    """What it holds now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return Sample(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()))


async def compressed(folder: Path, trials: int) -> tuple[Path, list[Sample]]:
    """A run of so many trials in sandboxes that answer at once, in this process."""
    tier = Tier(name="T", title="", requires=(), cycle=(Step(name="echo", run="true"),))
    cell = CellPlan(
        substrate=SubstrateRef(name="fake"),
        tier=tier,
        actions=ACTIONS,
        trials=trials,
        concurrency=IN_FLIGHT,
        arrival=Arrival(kind="closed"),
    )
    fake, samples = FakeSubstrate(), []

    async def sample() -> None:
        while True:
            samples.append(sampled(os.getpid()))
            fake.calls.clear()  # it remembers all that it is asked, for tests
            fake.commands.clear()
            await asyncio.sleep(SAMPLE_S)

    path = folder / "long.msgpack"
    run = run_module.Run(Plan(cells=(cell,)), path, "20260101t000000z-00000000")
    sampling = asyncio.ensure_future(sample())
    with patch.object(preflight, "build", lambda ref: fake), patch.object(run_module, "Watchdog", NoWatchdog):
        await run.execute()
    sampling.cancel()
    assert run.counts == {"ok": trials}, run.counts
    return path, samples


def real(folder: Path, seconds: float, substrate: str) -> tuple[Path, list[Sample]]:
    """A run of so many seconds as a person starts it, looked at from outside."""
    path = folder / "long.msgpack"
    words = ("-s", substrate, "-t", "T0", "-n", "10", "--trials", "99999", "--concurrency", "4")
    argv = [sys.executable, "-m", "taxtui", "run", *words, "--budget", f"{seconds:g}s", "--progress", "none"]
    process = subprocess.Popen([*argv, "-o", str(path)], stdout=subprocess.DEVNULL)
    samples: list[Sample] = []
    late_ms = 0.0
    while process.poll() is None:
        try:
            samples.append(sampled(process.pid)._replace(late_ms=late_ms))
        except OSError:
            break  # it has just ended
        began = time.monotonic()
        time.sleep(SAMPLE_S)
        late_ms = (time.monotonic() - began - SAMPLE_S) * 1e3
    assert process.wait() == 0
    return path, samples


def lags_ms(path: Path) -> list[float]:
    """Of each second of a recording."""
    found: list[float] = []

    def keep(event: Event) -> None:
        if isinstance(event, Health) and event.in_flight:
            found.append(event.lag_p50_ns / 1e6)

    read_events(path, keep)
    return found


def thirds(values: list[float]) -> tuple[float, float]:
    """Medians of the first and the last third, without the beginning."""
    steady = values[round(WARM * len(values)) :]
    third = max(1, len(steady) // 3)
    return statistics.median(steady[:third]), statistics.median(steady[-third:])


@click.command()
@click.option("--trials", default=TRIALS, show_default=True)
@click.option("--real", "seconds", type=float, help="A real run of so many seconds instead.")
@click.option("-s", "--substrate", default="local:isolation=plain", show_default=True)
def main(trials: int, seconds: float | None, substrate: str) -> None:
    """Print what a run's first and last third held."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if seconds is None:
            path, samples = asyncio.run(compressed(folder, trials))
            print(f"{trials:,} trials of {ACTIONS} actions, {IN_FLIGHT} in flight, instant sandboxes", end="")
        else:
            path, samples = real(folder, seconds, substrate)
            print(f"{seconds:g} s on {substrate}, 4 in flight", end="")
        size_mib = path.stat().st_size / 2**20
        print(f"; took {time.monotonic() - began:.0f} s, {size_mib:.1f} MiB recorded, load {os.getloadavg()[0]:.0f}")
        columns: list[tuple[str, Callable[[], list[float]]]] = [
            ("memory, MiB", lambda: [each.memory_mib for each in samples]),
            ("descriptors", lambda: [each.descriptors for each in samples]),
            ("lag p50, ms", lambda: lags_ms(path)),
        ]
        first, last = thirds([each.late_ms for each in samples])
        others = max(1.0, last / first) if first else 1.0
        if seconds is not None:
            print(f"a bystander was woken {first:.2f} ms late, then {last:.2f} ms: lag may grow as much ({others:.2f})")
        grown = []
        print(f"{'':14}{'first third':>12}{'last third':>12}{'ratio':>8}{'may be':>8}")
        for what, values in columns:
            first, last = thirds(values())
            ratio = last / first if first else 1.0
            may_grow = MAY_GROW[what] * (others if what.startswith("lag") else 1.0)
            print(f"{what:14}{first:12.2f}{last:12.2f}{ratio:8.2f}{may_grow:8.2f}")
            name, unit = what.split(", ") if ", " in what else (what, "")
            tell(f"{name} of a long run, its last third", last, unit, first, "its first", wanted=f"≤ {may_grow:.2f}")
            grown += [what] * (ratio > may_grow)
    if grown:
        sys.exit(f"it does not stay as it began: {'; '.join(grown)}")


if __name__ == "__main__":
    main()
