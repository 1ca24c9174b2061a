"""Cancel a coroutine at each await in turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Sequence
from typing import Any, Final, Generic, TypeVar

from taxtui.sandboxes.conformance.bench import Violation

T = TypeVar("T")

DELAYS_S: Final = (0.0, 0.2)
"""Durations of a suspension before the cancellation."""
MAX_AWAITS: Final = 40
STUCK_S: Final = 2.0
"""A suspension this long counts as endless, unless ``running`` decides."""
QUIET_S: Final = 0.3
"""Additional time once the endless part is seen to run."""


async def cancellations(
    make: Callable[[], Coroutine[Any, Any, T]],
    *,
    delays_s: Sequence[float] = DELAYS_S,
    dispose: Callable[[T], Coroutine[Any, Any, object]] | None = None,
    running: Callable[[], Awaitable[object]] | None = None,
    limit: int = MAX_AWAITS,
) -> AsyncIterator[int]:
    """Make and cancel a coroutine at the 1st, 2nd, … suspension, for each delay; the caller checks after each.

    ``delays_s``: durations of a suspension before the cancellation; after a shorter one the next suspension counts. A
    walk ends when a run completes, or has an endless suspension; ``dispose`` gets the result of a completed run.
    ``running`` returns once the endless part has begun; without it a suspension of ``STUCK_S`` is endless.

    Raises:
        Violation: the coroutine swallowed the cancellation, or raised another error.
    """
    for delay_s in delays_s:
        for number in range(1, limit + 1):
            step = CancelledAwait(make(), number, delay_s)
            task = asyncio.ensure_future(step)
            stuck = True
            try:
                stuck = await _stuck(task, step, running)
            finally:
                if stuck:
                    task.cancel()
                    step.cancelled = True
                    await asyncio.wait({task})
            if not task.cancelled():
                if error := task.exception():
                    kind = type(error).__name__
                    raise Violation(f"cancelled at await {number}, it raised {kind}: {error}") from error
                if dispose is not None:
                    await dispose(task.result())
                if step.cancelled:
                    raise Violation(f"cancelled at await {number}, it went on and returned {task.result()!r}")
                break
            yield number
            if stuck:
                break


async def _stuck(
    task: asyncio.Future[Any], step: CancelledAwait[Any], running: Callable[[], Awaitable[object]] | None
) -> bool:
    """Wait until the task has ended, or its suspension is endless."""
    if running is None:
        await asyncio.wait({task}, timeout=STUCK_S + step.delay_s)
        return not task.done()
    await asyncio.wait({task}, timeout=QUIET_S + step.delay_s)
    if not task.done():
        begun = asyncio.ensure_future(running())
        try:
            await asyncio.wait({task, begun}, return_when=asyncio.FIRST_COMPLETED)
            if begun.done():
                begun.result()
        finally:
            begun.cancel()
            await asyncio.wait({begun})
    seen = 0
    while not task.done() and seen < step.seen:
        seen = step.seen
        await asyncio.wait({task}, timeout=QUIET_S + step.delay_s)
    return not task.done()


class CancelledAwait(Generic[T]):
    """An awaitable that awaits ``work``, and cancels the awaiting task at one suspension."""

    def __init__(self, work: Coroutine[Any, Any, T], number: int, delay_s: float) -> None:
        """``number``: of the suspension to cancel; ``delay_s``: its duration before the cancellation."""
        self.delay_s = delay_s
        self.seen = 0
        self.cancelled = False
        self._work = work
        self._number = number

    def __await__(self) -> Generator[Any, Any, T]:
        task = asyncio.current_task()
        assert task is not None
        error: BaseException | None = None
        while True:
            try:
                awaited = self._work.send(None) if error is None else self._work.throw(error)
            except StopIteration as finished:
                result: T = finished.value
                return result
            self._suspended(task)
            error = None
            try:
                yield awaited
            except BaseException as thrown:
                error = thrown

    def _suspended(self, task: asyncio.Task[Any]) -> None:
        self.seen += 1
        if self.cancelled or self.seen < self._number:
            return
        if not self.delay_s:
            self._cancel(task, self.seen)
        else:
            task.get_loop().call_later(self.delay_s, self._cancel, task, self.seen)

    def _cancel(self, task: asyncio.Task[Any], suspension: int) -> None:
        if suspension == self.seen and not self.cancelled and not task.done():
            self.cancelled = True
            task.cancel()
