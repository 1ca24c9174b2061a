"""A private thread pool for SDKs that block, timed where the call really runs.

Through asyncio's default executor 200 concurrent calls of 0.2 s each looked like 3.4 s at p50: they had queued for
its few threads. A pool belongs to one substrate and has as many threads as there may be calls at the same time.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, NamedTuple, Self, TypeVar

T = TypeVar("T")


class Timed(NamedTuple, Generic[T]):
    """A call's result and when it ran, ``time.monotonic_ns()`` taken inside the thread."""

    value: T
    started_ns: int
    ended_ns: int


class BlockingPool:
    """Runs blocking calls in threads of its own. An async context manager: leaving it waits for running calls.

    **Cancellation.** A call that no thread has begun is dropped. One that runs cannot be interrupted: the awaiting
    task is released at once, the call goes on to its end, and its result is handed to ``dispose`` so that what it
    made does not leak. Give calls timeouts of their own: closing the pool waits for them.
    """

    def __init__(self, threads: int, name: str = "blocking") -> None:
        """``threads``: at least the concurrency; they are started as they are needed."""
        self.threads = threads
        self.waits = 0  # calls that found every thread busy: their latency is still right, their start is late
        self._running = 0
        self._counting = threading.Lock()
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def __aenter__(self) -> Self:
        """Nothing to open."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Drop what has not begun, wait for what has."""
        await asyncio.to_thread(self._executor.shutdown, wait=True, cancel_futures=True)

    async def run(self, call: Callable[[], T], *, dispose: Callable[[T], object] | None = None) -> Timed[T]:
        """Run ``call`` in a thread; its exceptions are raised here, from ``dispose`` nowhere.

        ``dispose`` receives the result of a call that finished after its caller had been cancelled; it runs in a
        thread of the pool and may block.
        """
        with self._counting:
            self.waits += self._running >= self.threads
            self._running += 1
        future = self._executor.submit(_timed, call)
        future.add_done_callback(self._finished)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if dispose is not None and not future.cancel():
                future.add_done_callback(lambda done: self._dispose(done, dispose))
            raise

    def _finished(self, future: Future[Timed[T]]) -> None:
        with self._counting:
            self._running -= 1

    def _dispose(self, done: Future[Timed[T]], dispose: Callable[[T], object]) -> None:
        if done.cancelled() or done.exception() is not None:
            return
        value = done.result().value
        try:
            self._executor.submit(dispose, value)
        except RuntimeError:  # the pool is closing: this is one of its own threads, which closing waits for
            dispose(value)


def _timed(call: Callable[[], T]) -> Timed[T]:
    started_ns = time.monotonic_ns()
    value = call()
    return Timed(value, started_ns, time.monotonic_ns())
