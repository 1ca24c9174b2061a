"""How fast the step model goes from event to event, and how long the lab's question takes.

    python -m tests.benchmarks.bench_step

An attempt that is simulated is told as its events: it is launched, let through, placed, its image is there, it is
created, ready, over, and its pod is free. The baseline of the same run pushes and pops one heap entry for each.
"""

from __future__ import annotations

import platform
import tempfile
import time
from heapq import heappop, heappush
from pathlib import Path
from random import Random
from typing import Any, Final

from costmodel import Images, Length, Recording, Think, TrainingRun, load, project
from tests.benchmarks.figures import tell
from tests.support.cost_model.costmodel_files import S, cell, trial, write
from tests.support.cost_model.stepping import parts, stepped, training_run

EVENTS: Final = 8
ROUNDS: Final = 3
LAB: Final[dict[str, Any]] = {
    "trajectories": 1_000_000,
    "workers": 2_000,
    "prompts": 64,
    "group_size": 16,
    "actions": Length.between(80, 120),
    "think": Think(8 * S, 1.2),
    "think_correlation": 0.3,
    "failure_rate": 0.05,
    "nodes": 125,
    "pods_per_node": 16,
    "images": Images.between(2, 8, 500),
    "pull_gb_s": 0.5,
    "node_disk_gib": 200.0,
    "gpus": 512,
    "gpu_usd_hour": 2.5,
    "train_s": 300.0,
}
WAYS: Final[dict[str, dict[str, Any]]] = {
    "workers only": {},
    "nodes": {"nodes": 125, "pods_per_node": 16},
    "images": {"nodes": 125, "pods_per_node": 16, "images": LAB["images"], "pull_gb_s": 0.5, "node_disk_gib": 200.0},
    "create rate": {"create_rate": 50.0},
    "half the workers": {"workers": 512, "timeout_s": 1e9},
}


def heap_events_per_s(count: int) -> float:
    """The baseline: entries of a heap of 1,024, pushed and popped."""
    rng = Random(0)
    heap = sorted(rng.getrandbits(50) for _ in range(1024))
    began = time.process_time()
    for _ in range(count):
        heappush(heap, heappop(heap) + 12_345_678)
    return count / (time.process_time() - began)


def attempts_per_s(more: dict[str, Any]) -> float:
    """Of steps of 1,024 rollouts whose attempts fail once in twenty."""
    asked = training_run(**{"prompts": 64, "group_size": 16, "workers": 2_000, "failure_rate": 0.05} | more)
    rng = Random(1)
    trials = [parts(create=2, ready=1, dispatch=5, work=rng.lognormvariate(5, 0.5), cleanup=1) for _ in range(500)]
    began = time.process_time()
    steps = stepped(asked, trials, steps=10)
    return sum(step.attempts for step in steps) / (time.process_time() - began)


def lab_s(folder: Path) -> float:
    """Of processor, for the whole row with its attribution."""
    rng = Random(1)
    trials = [
        trial(
            n,
            create=round(rng.uniform(1, 3) * S),
            actions=(took := [round(rng.lognormvariate(0, 0.5) * S) for _ in range(100)]),
            runs=[ns * 4 // 5 for ns in took],
            cleanup=S,
        )
        for n in range(60)
    ]
    recording = load(write(folder / "lab.msgpack", trials, cell(actions=100)))
    assert isinstance(recording, Recording)
    began = time.process_time()
    (row,) = project([recording], TrainingRun(**LAB))
    assert row.attribution is not None
    return time.process_time() - began


def main() -> None:
    print(f"{platform.python_version()}, {platform.machine()}; best of {ROUNDS}, seconds of processor")
    baseline = max(heap_events_per_s(200_000) for _ in range(ROUNDS))
    print(f"{'one heap entry':18} {baseline:12,.0f} events/s")
    for name, more in WAYS.items():
        found = EVENTS * max(attempts_per_s(more) for _ in range(ROUNDS))
        print(f"{name:18} {found:12,.0f} events/s, {found / baseline:.2f} of it")
        tell(f"step model, {name}", found, "events/s", baseline, "one heap entry")
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'the lab question':18} {lab_s(Path(folder)):12.1f} s")


if __name__ == "__main__":
    main()
