"""Clean-ups that a cancellation must not interrupt, and both failures in one error.

The private thread pool: waits for a thread, cancellation without leaks, closing despite hanging calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from taxtui.errors import CreateFailed, ExecFailed, ExecTimeout, SandboxLost, SubstrateError
from taxtui.sandboxes.kit import blocking_pool
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel, kill_then_timeout, undo_if_cancelled, with_cleanup
from tests.support import waiting


@pytest.mark.parametrize("value", [3, -1])
async def test_work_is_finished_before_any_number_of_cancellations_is_passed_on(value: int) -> None:
    finished = []

    async def work() -> int:
        await asyncio.sleep(0.05)
        finished.append(value)
        if value < 0:  # a cancellation outranks the work's own error
            raise ValueError(value)
        return value

    task = asyncio.create_task(finish_despite_cancel(work()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    await waiting.cancelled(task)
    with contextlib.nullcontext() if value > 0 else pytest.raises(ValueError, match="-1"):
        assert await finish_despite_cancel(work()) == value
    assert finished == [value] * 2


@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize("then", ["obeys", "fails", "goes on"])
async def test_work_that_never_ends_is_given_up_without_a_complaint_to_the_loop(then: str, cancelled: bool) -> None:
    begun, release, told = asyncio.Event(), asyncio.Event(), asyncio.Event()
    complaints: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    async def work() -> None:
        begun.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                told.set()
                if then == "fails":
                    raise ValueError from None
                if then == "obeys":
                    raise

    task = asyncio.create_task(finish_despite_cancel(work(), 0.05))
    await begun.wait()
    if cancelled:
        task.cancel()
    given_up = pytest.raises(ExecFailed, match=r"given up: it took longer than 0\.05 s")
    with pytest.raises(asyncio.CancelledError) if cancelled else given_up:
        await task
    await told.wait()
    release.set()
    del task
    await asyncio.sleep(0.01)
    gc.collect()
    assert complaints == []


class CleanUp:
    """A clean-up that takes a moment, and may fail."""

    def __init__(self, failure: SubstrateError | None = None) -> None:
        self.failure = failure
        self.finished = False

    async def __call__(self) -> None:
        await asyncio.sleep(0.01)
        self.finished = True
        if self.failure:
            raise self.failure


@pytest.mark.parametrize(
    ("failure", "kind", "words"),
    [
        (None, ExecTimeout, "the command was killed after 2 s; its session is closed"),
        (ExecFailed("they survive"), ExecFailed, "the command had no end after 2 s; they survive"),
        (SandboxLost("it ended"), SandboxLost, "the command had no end after 2 s; it ended"),
    ],
)
async def test_a_command_is_killed_before_its_timeout_is_reported(
    failure: SubstrateError | None, kind: type[SubstrateError], words: str
) -> None:
    kill = CleanUp(failure)
    error = await kill_then_timeout(kill(), 2.0, "; its session is closed")
    assert kill.finished
    assert (type(error), str(error)) == (kind, words)


@pytest.mark.parametrize("fails", [False, True])
async def test_undoes_the_result_that_a_cancelled_caller_does_not_receive(fails: bool) -> None:
    undone = []

    async def work() -> str:
        await asyncio.sleep(0.05)
        if fails:
            raise CreateFailed("refused")
        return "sandbox"

    async def undo(sandbox: str) -> None:
        await asyncio.sleep(0)
        undone.append(sandbox)

    assert await undo_if_cancelled(asyncio.sleep(0, "result"), undo) == "result"
    task = asyncio.create_task(undo_if_cancelled(work(), undo))
    await asyncio.sleep(0)
    await waiting.cancelled(task)
    assert undone == ([] if fails else ["sandbox"])


@pytest.mark.parametrize(
    ("error", "failure", "text"),
    [
        (CreateFailed("no room"), None, "no room"),
        (CreateFailed("no room"), ExecFailed("no answer"), "no room; no answer"),
        (SandboxLost("gone: no answer"), ExecFailed("no answer"), "gone: no answer"),
        (asyncio.CancelledError(), ExecFailed("no answer"), "no answer"),  # as a note
    ],
)
async def test_an_error_is_returned_after_its_clean_up_with_the_failure_of_the_clean_up(
    error: BaseException, failure: SubstrateError | None, text: str
) -> None:
    clean_up = CleanUp(failure)
    assert await with_cleanup(clean_up(), error) is error
    assert (clean_up.finished, str(error) or error.__notes__[0]) == (True, text)


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
        await waiting.until(self.begun.is_set, "the call has begun")
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
        await waiting.until(lambda: BlockingPool.waits == before + 1, "the wait")
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
        await waiting.cancelled(task)
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
            await waiting.cancelled(task)
            await waiting.until(lambda: pool._threads == set(), "the disposal")
    assert disposed == ["made", "made"]


async def test_a_cancelled_call_without_a_thread_never_runs() -> None:
    held, ran = Held(), list[object]()
    async with BlockingPool(1) as pool:
        busy = await held.running(pool)
        queued = asyncio.create_task(pool.run(lambda: ran.append("ran"), dispose=ran.append))
        await asyncio.sleep(0)
        await waiting.cancelled(queued)
        held.go.set()
        await busy
    assert ran == []


async def test_closing_gives_up_a_hanging_call_and_refuses_later_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking_pool, "CLOSING_S", 0.05)
    held = Held()
    async with BlockingPool(1) as pool:
        hanging = await held.running(pool)
        queued = asyncio.create_task(pool.run(lambda: None))
        await asyncio.sleep(0)
    assert not hanging.done()
    held.go.set()
    await hanging
    with pytest.raises(RuntimeError, match="closed"):
        await queued


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
