"""Actions a second of several measuring processes beside one, interleaved in one run.

python -m tests.benchmarks.bench_workers [TRIALS] [ROUNDS]     exit 1 where a ratio is below what was promised
Against the shipped fake, whose commands take no time, so that the runner alone is the limit: from the first trial's
start to the last one's end, on the recording's wall clock. A cluster that was just started is idle after half a minute.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from costmodel import read_events
from costmodel.recording.events import Actions, Clock, Event, PhaseEnded, TrialStarted
from tests.support import paced_fake
from tests.support.standins.ray_cluster import TwoNodes

ACTIONS = 200
CONCURRENCY = 128
PROMISED = {"2 workers ÷ 1": 1.7, "2 on Ray ÷ 2 workers": 0.9}
IDLE = 0.03  # of a core
IDLE_WITHIN_S = 90
COMPARED = {"2 workers ÷ 1": "1 worker", "2 on Ray ÷ 2 workers": "2 workers"}


def rate(path: Path) -> float:
    """Actions a second over the measured part of a recording."""
    anchor, first, last, rows = 0, 2**63, 0, 0
    warm: set[int] = set()

    def take(event: Event) -> None:
        nonlocal anchor, first, last, rows
        if isinstance(event, Clock):
            anchor = event.unix_ns
        elif isinstance(event, TrialStarted):
            if event.warm_up:
                warm.add(event.trial)
            else:
                first = min(first, anchor + event.start_ns)
        elif isinstance(event, Actions) and event.step == "action" and event.trial not in warm:
            rows += len(event.duration_ns)
        elif isinstance(event, PhaseEnded) and event.trial not in warm:
            last = max(last, anchor + event.start_ns + event.duration_ns)

    read_events(path, take)
    return rows / (last - first) * 1e9


def environment(folder: Path) -> dict[str, str]:
    state = {"XDG_STATE_HOME": str(folder / "state"), "XDG_DATA_HOME": str(folder / "data")}
    return os.environ | state | paced_fake.environment(folder)


def measure(folder: Path, trials: int, *more: str, **variables: str) -> float:
    path = folder / "r.msgpack"
    tier = paced_fake.tier(folder)
    more = ("--set", "bracket=false", "-o", str(path), "--progress", "none", *more)
    words = ["-s", paced_fake.NAME, "-t", str(tier), "-n", str(ACTIONS), "--trials", str(trials), "--warmup", "1"]
    subprocess.run(
        [sys.executable, "-m", "taxtui", "run", *words, "--concurrency", str(CONCURRENCY), "--mode", "exec", *more],
        env=environment(folder) | variables,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    found = rate(path)
    path.unlink()
    return found


def settle(cluster: TwoNodes) -> None:
    """Return once its processes take next to nothing of the cores, two seconds in a row."""
    gives_up, before, quiet = time.monotonic() + IDLE_WITHIN_S, cpu_s(cluster), 0
    while quiet < 2 and time.monotonic() < gives_up:
        time.sleep(1)
        now = cpu_s(cluster)
        quiet, before = quiet + 1 if now - before < IDLE else 0, now


def cpu_s(cluster: TwoNodes) -> float:
    """What its processes have taken so far; those that have ended are not counted any more."""
    total = 0
    for pid in cluster.processes():
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(words[11]) + int(words[12])
    return total / os.sysconf("SC_CLK_TCK")


def main(trials: int, rounds: int) -> int:
    """Measure each in turn, so often; the medians of their rates and of the ratios within a round."""
    two = ("--processes", "2")
    kinds: dict[str, tuple[str, ...]] = {"1 worker": (), "2 workers": two, "2 on Ray": (*two, "--ray", "auto")}
    rates: dict[str, list[float]] = {name: [] for name in kinds}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            for name in reversed(kinds) if number % 2 else kinds:
                with contextlib.ExitStack() as stack:
                    variables: dict[str, str] = {}
                    if "Ray" in name:  # its processes are there only while it is measured
                        cluster = stack.enter_context(contextlib.closing(TwoNodes(environment(Path(folder)))))
                        variables = cluster.environment
                        settle(cluster)
                    rates[name].append(measure(Path(folder), trials, *kinds[name], **variables))
    for name, each in rates.items():
        print(f"{name:12} {statistics.median(each):8,.0f} actions/s")
    broken = False
    for name, promised in PROMISED.items():
        own, other = (rates[kind] for kind in (name.partition(" ÷ ")[0], COMPARED[name]))
        ratio = statistics.median(mine / its for mine, its in zip(own, other, strict=True))
        broken |= ratio < promised
        print(f"{name:24} {ratio:.2f}  (promised ≥ {promised}; load {os.getloadavg()[0]:.0f})")
    return int(broken)


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*words, *(1920, 5)[len(words) :]))
