"""Health of the measuring process: loop lag, CPU time, and the time to spawn a process."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import time
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from costmodel import events, quantile
from taxtui.sandboxes.kit.blocking_pool import BlockingPool

STOOD_STILL_S: Final = 1.0
"""A loop this late was stopped, or the machine was: each second meanwhile is reported as late."""
MOST_TOLD_S: Final = 600
TICK_S: Final = 0.004  # 240 ticks in a second: the 99th percentile is not the maximum
REPORT_S: Final = 1.0
FLOOR_SPAWNS: Final = 21
"""Each process that measures begins with these; the median of three times as many is no steadier from run to run."""


def spawn_baseline_ns() -> int:
    """Return the median time to spawn and reap ``true``: the lower bound for any substrate on this machine."""
    program = shutil.which("true")
    if program is None:
        return events.UNKNOWN
    took = []
    for _ in range(FLOOR_SPAWNS):
        began = time.monotonic_ns()
        os.waitpid(os.posix_spawn(program, [program], {}), 0)
        took.append(time.monotonic_ns() - began)
    return sorted(took)[len(took) // 2]


class LoopLag:
    """Statistics of one second of the event loop's lag."""

    def __init__(self, now: Callable[[], int], in_flight: Callable[[], int]) -> None:
        """``now``: the clock of the recording."""
        self._now, self._in_flight = now, in_flight
        self._floor_ns = spawn_baseline_ns()
        self._lags: list[int] = []
        self._begin()

    def _begin(self) -> None:
        self._cpu_s, self._since_ns, self._waits = _cpu_s(), time.monotonic_ns(), BlockingPool.waits

    def opening(self) -> events.Health:
        return events.Health(self._now(), 0, 0, 0, 0, self._in_flight(), 0, self._floor_ns)

    def after(self, lag_ns: int) -> list[events.Health]:
        """Add a lag of the loop; return a report once a second, else none.

        After a standstill each late second has a report.
        """
        self._lags.append(lag_ns)
        took_ns = time.monotonic_ns() - self._since_ns
        if took_ns < REPORT_S * 1e9:
            return []
        self._lags.sort()
        stood_still = lag_ns >= STOOD_STILL_S * 1e9
        last = events.Health(
            at_ns=self._now(),
            lag_p50_ns=lag_ns if stood_still else quantile(self._lags, 0.5),
            lag_p99_ns=lag_ns if stood_still else quantile(self._lags, 0.99),
            lag_max_ns=self._lags[-1],
            cpu_permille=round((_cpu_s() - self._cpu_s) / took_ns * 1e12),
            in_flight=self._in_flight(),
            pool_waits=BlockingPool.waits - self._waits,
            floor_ns=self._floor_ns,
        )
        self._lags.clear()
        self._begin()
        late_s = range(min(MOST_TOLD_S, lag_ns // 10**9 - 1), 0, -1)
        return [*(replace(last, at_ns=max(0, last.at_ns - ago_s * 10**9), pool_waits=0) for ago_s in late_s), last]


async def watch(emit: Callable[[events.Health], None], now: Callable[[], int], in_flight: Callable[[], int]) -> None:
    """Emit a Health event a second until cancelled. Lag: how late a sleep of TICK_S ends."""
    reports = LoopLag(now, in_flight)
    emit(reports.opening())
    while True:
        began = time.monotonic_ns()
        await asyncio.sleep(TICK_S)
        for report in reports.after(max(0, time.monotonic_ns() - began - round(TICK_S * 1e9))):
            emit(report)


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
