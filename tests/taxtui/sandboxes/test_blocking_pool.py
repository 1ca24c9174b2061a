"""The private thread pool: timestamps in the thread, cancellation that leaks nothing."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from taxtui.errors import ExecFailed
from taxtui.sandboxes.kit import blocking_pool
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from tests.support.waiting import until


async def test_a_call_behind_a_busy_thread_waits_and_is_counted() -> None:
    order: list[str] = []

    def call(name: str) -> None:
        order.append(f"{name} begins")
        time.sleep(0.1)
        order.append(f"{name} ends")

    before = BlockingPool.waits
    async with BlockingPool(1) as pool:
        await asyncio.gather(*(pool.run(lambda name=name: call(name)) for name in ("one", "two")))  # type: ignore[misc]
        assert order == ["one begins", "one ends", "two begins", "two ends"]
        assert BlockingPool.waits == before + 1
        assert await pool.run(threading.get_ident) != threading.get_ident()


async def test_as_many_calls_at_once_as_threads() -> None:
    meeting, before = threading.Barrier(8), BlockingPool.waits
    async with BlockingPool(8) as pool:
        await asyncio.gather(*(pool.run(lambda: meeting.wait()) for _ in range(8)))
        assert BlockingPool.waits == before


async def test_the_result_of_an_abandoned_call_is_disposed_of() -> None:
    begun, go, disposed = threading.Event(), threading.Event(), []

    def make() -> str:
        begun.set()
        go.wait()
        return "made"

    async with BlockingPool(2) as pool:
        task = asyncio.create_task(pool.run(make, dispose=disposed.append))
        await until(begun.is_set, "the call has begun")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert disposed == []
        go.set()
    assert disposed == ["made"]


async def test_an_abandoned_call_that_fails_has_nothing_to_dispose_of() -> None:
    begun, go, disposed = threading.Event(), threading.Event(), []

    def fail() -> str:
        begun.set()
        go.wait()
        raise ValueError

    async with BlockingPool(1) as pool:
        task = asyncio.create_task(pool.run(fail, dispose=disposed.append))
        await until(begun.is_set, "the call has begun")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go.set()
    assert disposed == []


async def test_a_call_that_no_thread_has_begun_is_dropped() -> None:
    begun, go, ran = threading.Event(), threading.Event(), []

    def occupy() -> None:
        begun.set()
        go.wait()

    async with BlockingPool(1) as pool:
        busy = asyncio.create_task(pool.run(occupy))
        await until(begun.is_set, "the thread is busy")
        waiting = asyncio.create_task(pool.run(lambda: ran.append(True), dispose=ran.append))
        await asyncio.sleep(0.02)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        go.set()
        await busy
    assert ran == []


async def test_closing_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking_pool, "CLOSING_S", 0.05)
    begun, go = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        go.wait(60)

    async with BlockingPool(1) as pool:
        hanging = asyncio.create_task(pool.run(hang))
        waiting = asyncio.create_task(pool.run(lambda: None))
        await until(begun.is_set, "it hangs")
    assert not hanging.done()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go.set()
    await hanging
    with pytest.raises(RuntimeError, match="closed"):
        await pool.run(lambda: None)


def test_a_call_that_hangs_does_not_hold_the_process() -> None:
    script = """
import asyncio, threading
from taxtui.errors import ExecFailed
from taxtui.sandboxes.kit import blocking_pool

async def main():
    blocking_pool.CLOSING_S = 0.05
    async with blocking_pool.BlockingPool(1) as pool:
        asyncio.ensure_future(pool.run(threading.Event().wait))
        await asyncio.sleep(0)

asyncio.run(main())
print("ended")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("ended\n", "")


async def test_where_no_more_threads_can_be_had_those_that_are_there_do_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, begun = threading.Thread.start, 0

    def first_alone(thread: threading.Thread) -> None:
        nonlocal begun
        begun += 1
        if begun > 1:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", first_alone)
    async with BlockingPool(4, "p") as pool:
        found = await asyncio.gather(*(pool.run(threading.get_ident) for _ in range(3)))
        assert len(set(found)) == 1
    async with BlockingPool(4, "p") as pool:
        with pytest.raises(ExecFailed, match="the pool p: can't start new thread"):
            await pool.run(threading.get_ident)
