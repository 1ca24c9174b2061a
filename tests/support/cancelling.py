"""Cancelling a coroutine at each of its suspensions in turn, whatever it waits for there.

The shipped suite's walker is for sandboxes of strangers: it gives up where one is suspended for long. This one has no
clock, so what it walks must come to an end by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from typing import Any


class CancelAt:
    """Awaits a coroutine and cancels the task that does so at the coroutine's ``number``-th suspension."""

    def __init__(self, work: Coroutine[Any, Any, object], number: int) -> None:
        self.work, self.number, self.suspensions = work, number, 0

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self.work.__await__()
        value: Any = None
        error: BaseException | None = None
        while True:
            try:
                waits_for = steps.send(value) if error is None else steps.throw(error)
            except StopIteration:
                return
            self.suspensions += 1
            if self.suspensions == self.number:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            value, error = None, None
            try:
                value = yield waits_for
            except BaseException as thrown:  # passed on to the coroutine, where it belongs
                error = thrown


async def cancelled_at(number: int, work: Coroutine[Any, Any, object]) -> bool:
    """Whether the coroutine was suspended that often, and so was cancelled there."""
    step = CancelAt(work, number)

    async def run() -> None:
        await step

    task = asyncio.create_task(run())
    await asyncio.wait({task})
    if step.suspensions < number:
        task.result()
        return False
    assert task.cancelled()
    return True


async def cancellations(make: Callable[[int], Coroutine[Any, Any, object]]) -> AsyncIterator[int]:
    """Make and cancel a coroutine at its 1st, 2nd, … suspension; the caller looks around after each. At least one."""
    number = 1
    while await cancelled_at(number, make(number)):
        yield number
        number += 1
    assert number > 1, "it was never suspended"
