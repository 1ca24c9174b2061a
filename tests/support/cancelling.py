"""Cancelling a coroutine at each of its suspensions in turn, whatever it waits for there.

The shipped suite's walker is for sandboxes of strangers: it gives up where one is suspended for long. This one has no
clock, so what it walks must come to an end by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from taxtui.sandboxes.conformance.walker import CancelledAwait, stepped


async def cancelled_at(number: int, work: Coroutine[Any, Any, object]) -> bool:
    """Whether the coroutine was suspended that often, and so was cancelled there."""
    step = CancelledAwait(number, 0.0)
    task = asyncio.create_task(stepped(work, step))
    await asyncio.wait({task})
    if not step.cancelled:
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
