"""Whether the harness distorts what it measures: loop lag, its own CPU, and the floor under every figure."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import time
from collections.abc import Callable
from typing import Final

from costmodel.uncertainty import quantile
from taxtui.recording.events import UNKNOWN, Health
from taxtui.sandboxes.kit.blocking_pool import BlockingPool

TICK_S: Final = 0.004  # 240 of them in a second: their 99th percentile is not their maximum
REPORT_S: Final = 1.0
FLOOR_SPAWNS: Final = 60


def floor_ns() -> int:
    """p50 of spawning and reaping ``true`` from this process: what no substrate on this client can beat."""
    program = shutil.which("true")
    if program is None:
        return UNKNOWN
    took = []
    for _ in range(FLOOR_SPAWNS):
        began = time.monotonic_ns()
        os.waitpid(os.posix_spawn(program, [program], {}), 0)
        took.append(time.monotonic_ns() - began)
    return sorted(took)[len(took) // 2]


async def watch(emit: Callable[[Health], None], now: Callable[[], int], in_flight: Callable[[], int]) -> None:
    """Emit a Health event a second until cancelled. Lag is by how much a sleep of TICK_S of this loop overslept."""
    floor = floor_ns()
    lags: list[int] = []
    cpu_s, since_ns, waits = _cpu_s(), time.monotonic_ns(), BlockingPool.waits
    emit(Health(now(), 0, 0, 0, 0, in_flight(), 0, floor))
    while True:
        began = time.monotonic_ns()
        await asyncio.sleep(TICK_S)
        ended = time.monotonic_ns()
        lags.append(max(0, ended - began - round(TICK_S * 1e9)))
        if ended - since_ns < REPORT_S * 1e9:
            continue
        lags.sort()
        cpu_now_s = _cpu_s()
        emit(
            Health(
                at_ns=now(),
                lag_p50_ns=quantile(lags, 0.5),
                lag_p99_ns=quantile(lags, 0.99),
                lag_max_ns=lags[-1],
                cpu_permille=round((cpu_now_s - cpu_s) / (ended - since_ns) * 1e12),
                in_flight=in_flight(),
                pool_waits=BlockingPool.waits - waits,
                floor_ns=floor,
            )
        )
        lags.clear()
        cpu_s, since_ns, waits = cpu_now_s, ended, BlockingPool.waits


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
