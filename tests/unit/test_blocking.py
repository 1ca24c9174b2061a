"""The private thread pool: timestamps in the thread, cancellation that leaks nothing."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from taxtui.blocking import BlockingPool


async def test_timestamps_are_taken_inside_the_thread() -> None:
    """Behind a busy thread a call waits, and its own figures do not show it."""
    async with BlockingPool(1) as pool:
        first, second = await asyncio.gather(*(pool.run(lambda: time.sleep(0.1)) for _ in range(2)))
        assert second.started_ns >= first.ended_ns
        assert pool.waits == 1
        assert (await pool.run(threading.get_ident)).value != threading.get_ident()


async def test_as_many_calls_at_once_as_threads() -> None:
    meeting = threading.Barrier(8)
    async with BlockingPool(8) as pool:
        await asyncio.gather(*(pool.run(lambda: meeting.wait(10)) for _ in range(8)))
        assert pool.waits == 0


async def test_errors_arrive() -> None:
    def fail() -> None:
        raise ValueError("of the call")

    async with BlockingPool(1) as pool:
        with pytest.raises(ValueError, match="of the call"):
            await pool.run(fail)


async def test_the_result_of_an_abandoned_call_is_disposed_of() -> None:
    go, disposed = threading.Event(), []

    def make() -> str:
        go.wait(10)
        return "made"

    async with BlockingPool(2) as pool:
        task = asyncio.create_task(pool.run(make, dispose=disposed.append))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert disposed == []
        go.set()
    assert disposed == ["made"]


async def test_an_abandoned_call_that_fails_has_nothing_to_dispose_of() -> None:
    go, disposed = threading.Event(), []

    def fail() -> str:
        go.wait(10)
        raise ValueError

    async with BlockingPool(1) as pool:
        task = asyncio.create_task(pool.run(fail, dispose=disposed.append))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go.set()
    assert disposed == []


async def test_a_call_that_no_thread_has_begun_is_dropped() -> None:
    go, ran = threading.Event(), []
    async with BlockingPool(1) as pool:
        busy = asyncio.create_task(pool.run(lambda: go.wait(10)))
        await asyncio.sleep(0.02)
        waiting = asyncio.create_task(pool.run(lambda: ran.append(True), dispose=ran.append))
        await asyncio.sleep(0.02)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        go.set()
        await busy
    assert ran == []
