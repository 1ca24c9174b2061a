"""What the trainer's GPUs wait for: the sandbox, the commands themselves, the model's own generation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from msgspec.structs import replace as changed

from costmodel.projection.row import GpuWaiting
from costmodel.projection.timed import timed_run
from costmodel.training.policies import POLICIES
from costmodel.training.run import Demand
from costmodel.workload.attempts import Attempt, Sample
from costmodel.workload.pool import Pool


def with_split(
    gpu: dict[str, GpuWaiting], sample: Sequence[Attempt], pool: Pool, demand: Demand, *, known: bool
) -> dict[str, GpuWaiting]:
    """With what the waiting is for, by running the same without the sandbox, and then without the model too.

    Where it is not ``known`` what commands take themselves, only think time is removed.
    """
    thinks = any(attempt.think_ns for attempt in sample)
    waits = [{policy: one.waiting_gpu_hours for policy, one in gpu.items()}]
    if known:
        demand = demand.unlimited()
        works_ns = Sample.of(sample).work_ns
        sample = [changed(a, held_ns=a.think_ns + work) for a, work in zip(sample, works_ns, strict=True) if a.ok]
        waits.append(_waits(sample, pool, demand))
    if thinks:
        silent = [changed(attempt, held_ns=attempt.held_ns - attempt.think_ns, think_ns=0) for attempt in sample]
        waits.append(_waits(silent, pool, demand))
    parted = {}
    for policy, one in gpu.items():
        # Each is simulated for itself: none of them waits more than the one before, whatever its noise says.
        left = list(accumulate((wait[policy] for wait in waits), min))
        stalled = left[0] - left[1] if known else None
        generation = left[-2] - left[-1] if thinks else None
        parted[policy] = one._replace(
            generation_gpu_hours=generation,
            commands_gpu_hours=left[-1] if known else None,
            stalled_gpu_hours=stalled,
        ).priced(demand.gpu_usd_hour)
    return parted


def _waits(sample: Sequence[Attempt], pool: Pool, demand: Demand) -> dict[str, float]:
    """GPU-hours by policy of the same run with these attempts instead."""
    timed = timed_run(sample, pool, demand, aside=True)
    if timed is None:  # a time limit that think time alone exceeds
        return dict.fromkeys(POLICIES, math.inf)
    assert timed.run.gpu is not None
    return {policy: one.waiting_gpu_hours for policy, one in timed.run.gpu.items()}
