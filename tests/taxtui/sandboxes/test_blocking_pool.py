"""The private thread pool: waits for a thread, cancellation without leaks, closing despite hanging calls."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from taxtui.errors import ExecFailed
from taxtui.sandboxes.kit import blocking_pool
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from tests.support.waiting import cancelled, until


class Held:
    """A blocking call that waits for ``go``, and then returns or raises."""

    def __init__(self, result: object = None) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.result = result

    def __call__(self) -> object:
        self.begun.set()
        self.go.wait(60)
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result

    async def running(self, pool: BlockingPool, dispose: Callable[[Any], object] | None = None) -> asyncio.Task[object]:
        task = asyncio.create_task(pool.run(self, dispose=dispose))
        await until(self.begun.is_set, "the call has begun")
        return task


def refuse(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


async def test_as_many_calls_at_once_as_threads_and_a_later_call_counts_as_a_wait() -> None:
    meeting, before = threading.Barrier(8), BlockingPool.waits
    async with BlockingPool(8) as pool:
        await asyncio.gather(*(pool.run(lambda: meeting.wait()) for _ in range(8)))
        assert BlockingPool.waits == before
    async with BlockingPool(1) as pool:
        held = Held("first")
        first = await held.running(pool)
        second = asyncio.create_task(pool.run(threading.get_ident))
        await until(lambda: BlockingPool.waits == before + 1, "the wait")
        held.go.set()
        assert await first == "first"
        assert await second != threading.get_ident()


@pytest.mark.parametrize("start", [threading.Thread.start, refuse], ids=["room", "no room for a thread"])
@pytest.mark.parametrize(("result", "expected"), [("made", ["made"]), (ValueError("failed"), []), (SystemExit(1), [])])
async def test_the_result_of_an_abandoned_call_is_disposed_of(
    result: object, expected: list[object], start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, disposed = Held(result), list[object]()
    async with BlockingPool(2) as pool:
        task = await held.running(pool, disposed.append)
        monkeypatch.setattr(threading.Thread, "start", start)
        await cancelled(task)
        assert disposed == []
        held.go.set()
    assert disposed == expected


async def test_a_call_that_ended_before_its_cancellation_is_disposed_of(monkeypatch: pytest.MonkeyPatch) -> None:
    disposed = list[object]()
    async with BlockingPool(2) as pool:
        for start in (threading.Thread.start, refuse):
            held = Held("made")
            task = await held.running(pool, disposed.append)
            monkeypatch.setattr(threading.Thread, "start", start)
            held.go.set()
            while pool._threads:  # the loop does not learn of the end
                time.sleep(0.001)  # noqa: ASYNC251
            await cancelled(task)
            await until(lambda: pool._threads == set(), "the disposal")
    assert disposed == ["made", "made"]


async def test_a_cancelled_call_without_a_thread_never_runs() -> None:
    held, ran = Held(), list[object]()
    async with BlockingPool(1) as pool:
        busy = await held.running(pool)
        waiting = asyncio.create_task(pool.run(lambda: ran.append("ran"), dispose=ran.append))
        await asyncio.sleep(0)
        await cancelled(waiting)
        held.go.set()
        await busy
    assert ran == []


async def test_closing_gives_up_a_hanging_call_and_refuses_later_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking_pool, "CLOSING_S", 0.05)
    held = Held()
    async with BlockingPool(1) as pool:
        hanging = await held.running(pool)
        waiting = asyncio.create_task(pool.run(lambda: None))
        await asyncio.sleep(0)
    assert not hanging.done()
    held.go.set()
    await hanging
    with pytest.raises(RuntimeError, match="closed"):
        await waiting


def test_a_hanging_call_does_not_delay_the_exit_of_the_process() -> None:
    script = """
import asyncio, threading
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


async def test_a_thread_that_cannot_be_started_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async with BlockingPool(1, "p") as pool:
        with monkeypatch.context() as full:
            full.setattr(threading.Thread, "start", refuse)
            with pytest.raises(ExecFailed, match="the pool p: can't start new thread"):
                await pool.run(threading.get_ident)
        await pool.run(threading.get_ident)
