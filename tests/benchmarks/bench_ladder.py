"""What a ladder finds Docker to sustain, beside a raw driver of the daemon at the same levels, before and after it.

python tests/benchmarks/bench_ladder.py [ACTIONS] [HIGHEST]      exit 1 where the two are more than 15 % apart

ladder   `taxtui run --ladder 1:HIGHEST` of ACTIONS times `true`, then what costmodel.analysis.concurrency_sweep makes
of the recording
raw      as many threads, each with a container of its own and blocking requests; no create and no clean-up is timed

A lane of the ladder creates and removes a sandbox too: the more actions, the smaller that share, which is printed.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from costmodel import Recording, load
from costmodel.analysis.concurrency_sweep import Ladder, ladders
from costmodel.workload.pool import pools
from taxtui.plan.notation import parse_ladder
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.docker.substrate import DockerSubstrate
from tests.benchmarks.figures import tell
from tests.support.raw_docker import RawDocker

APART = 0.15
TIER = """name = "true"
title = "a command that does nothing"
[[cycle]]
name = "true"
run = "true"
"""


def climbed(folder: Path, actions: int, highest: int) -> Ladder:
    """A ladder as a user runs it."""
    tier, path = folder / "true.toml", folder / "ladder.msgpack"
    tier.write_text(TIER)
    words = ["run", "-s", "docker", "-t", str(tier), "-n", str(actions), "--mode", "exec", "--set", "bracket=false"]
    words += ["--trials", "4", "--warmup", "1", "--ladder", f"1:{highest}", "-o", str(path), "--progress", "none"]
    state = {"XDG_STATE_HOME": str(folder / "state"), "XDG_DATA_HOME": str(folder / "data")}
    subprocess.run(
        [sys.executable, "-m", "taxtui", *words], check=True, env=os.environ | state, stdout=subprocess.DEVNULL
    )
    found = load(path)
    assert isinstance(found, Recording)
    (ladder,) = ladders(pools([found]))
    return ladder


async def raw_per_s(levels: Sequence[int], execs: int) -> list[float]:
    """Execs per second of so many threads, at each level."""
    async with DockerSubstrate() as substrate:
        spec = [
            SandboxSpec(
                name=f"taxtui-bench-{os.getpid()}-{n}", labels={LABEL_RUN: "bench"}, limits=Limits(), ttl_s=3600
            )
            for n in range(max(levels))
        ]
        sandboxes = []
        try:
            for one in spec:
                sandboxes.append(await substrate.create(one, Marks()))
                await sandboxes[-1].wait_ready(Marks())
            socket = substrate.containers.endpoint.path  # type: ignore[attr-defined]
            lanes = [RawDocker(socket, sandbox.container) for sandbox in sandboxes]
            return [await asyncio.to_thread(_drive, lanes[:level], execs) for level in levels]
        finally:
            for sandbox in sandboxes:
                await sandbox.destroy()


def _drive(lanes: Sequence[RawDocker], execs: int) -> float:
    """From the first start to the first lane's end, so that all lanes are taken."""

    def lane(raw: RawDocker) -> list[float]:
        async def all_of_it() -> list[float]:
            ended = []
            for _ in range(execs):
                await raw.exec()
                ended.append(time.perf_counter())
            return ended

        return asyncio.run(all_of_it())

    began = time.perf_counter()
    with ThreadPoolExecutor(len(lanes)) as pool:
        ended = list(pool.map(lane, lanes))
    over = min(one[-1] for one in ended)
    return sum(at <= over for one in ended for at in one) / (over - began)


def main(actions: int, highest: int) -> bool:
    """Print the table; whether the two agree."""
    levels = parse_ladder(f"1:{highest}")
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, {actions} actions a trial")
    before = asyncio.run(raw_per_s(levels, actions))
    with tempfile.TemporaryDirectory() as folder:
        ladder = climbed(Path(folder), actions, highest)
    after = asyncio.run(raw_per_s(levels, actions))
    head = ("at a time", "ladder/s", "raw/s", "before", "after", "ladder/raw", "create+clean-up")
    print("".join(f"{word:>16}" for word in head))
    raw = [(one + other) / 2 for one, other in zip(before, after, strict=True)]
    for level, pool, floor, one, other in zip(ladder.levels, ladder.pools, raw, before, after, strict=True):
        lanes_ns = sum(trial.freed_ns - trial.start_ns for trial in pool.successes)
        share = 1 - sum(trial.actions.taken_ns for trial in pool.successes) / lanes_ns
        ours = level.actions_per_s.value
        told = [f"{n:.1f}" for n in (ours, floor, one, other)]
        row = [str(level.concurrency), *told, f"{ours / floor:.2f}", f"{share:.1%}"]
        print("".join(f"{word:>16}" for word in row))
    most, floor = max(level.actions_per_s.value for level in ladder.levels), max(raw)
    kept = abs(most / floor - 1) <= APART
    verdict = f"promised within {APART:.0%}: {'kept' if kept else 'NOT KEPT'}"
    tell(
        "the ladder's most",
        most,
        "actions/s",
        floor,
        "raw HTTP on as many lanes",
        wanted=f"{1 - APART:.2f} to {1 + APART:.2f}",
    )
    print(f"most: {most:.1f} actions/s, raw {floor:.1f}: ratio {most / floor:.2f}, {verdict}")
    at = "not reached" if ladder.knee.at is None else str(ladder.knee.at)
    print(f"knee: {at}; whose: {ladder.knee.whose}, {ladder.knee.why}")
    print(f"load {os.getloadavg()[0]:.1f}")
    return kept


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    sys.exit(0 if main(*(given + [120, 8][len(given) :])) else 1)
