from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

import costmodel.recording.runner_health
from costmodel.recording.events import UNKNOWN, Health
from taxtui.runner import health
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from tests.support import waiting


async def reports(
    monkeypatch: pytest.MonkeyPatch, count: int, block_s: float = 0.0, in_flight: Callable[[], int] = lambda: 7
) -> list[Health]:
    """The first ``count`` reports after the opening one; the loop is blocked for ``block_s`` before the first."""
    monkeypatch.setattr(health, "REPORT_S", 0.05)
    got: list[Health] = []
    began = time.monotonic_ns()

    watching = asyncio.ensure_future(health.watch(got.append, lambda: time.monotonic_ns() - began, in_flight))
    while not got:
        await asyncio.sleep(0)
    time.sleep(block_s)  # noqa: ASYNC251  # the lag that is to be seen
    while len(got) <= count:
        await asyncio.sleep(0.01)
    await waiting.cancelled(watching)
    return got


async def test_reports_come_with_the_floor_and_rising_instants(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *rest = await reports(monkeypatch, 3)
    assert first.floor_ns > 0
    assert {report.floor_ns for report in rest} == {first.floor_ns}
    assert {report.in_flight for report in rest} == {7}
    instants = [report.at_ns for report in rest]
    assert instants == sorted(instants)
    for report in rest:
        assert 0 <= report.lag_p50_ns <= report.lag_p99_ns <= report.lag_max_ns
        assert report.cpu_permille >= 0
    monkeypatch.setenv("PATH", "/nonexistent")
    assert health.spawn_baseline_ns() == UNKNOWN, "there is no program to spawn"


async def test_calls_that_waited_for_a_thread_are_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BlockingPool, "waits", 5)

    def two_have_waited() -> int:
        BlockingPool.waits = 7
        return 0

    got = await reports(monkeypatch, 3, in_flight=two_have_waited)
    assert [report.pool_waits for report in got[:4]] == [0, 2, 0, 0]


async def test_a_blocked_loop_shows_as_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    _, first, *_ = await reports(monkeypatch, 1, block_s=0.2)
    assert first.lag_max_ns > 150_000_000


def test_each_second_of_a_standstill_is_a_late_one(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = health.LoopLag(lambda: 20 * 10**9, lambda: 1)
    reports._since_ns -= 12 * 10**9
    told = reports.after(12 * 10**9)
    assert [report.at_ns // 10**9 for report in told] == list(range(9, 21))
    assert {report.lag_p99_ns for report in told} == {12 * 10**9}
    judged = costmodel.recording.runner_health.WorkerFitness()
    for second in range(8):  # before it all was well
        judged.add(Health(second * 10**9, 0, 0, 0, 0, 0, 0, 0))
    for report in told:
        judged.add(report)
    assert judged.share(10 * 10**9, 15 * 10**9) == 1.0, "a trial within is marked as exposed from end to end"
