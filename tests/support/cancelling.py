"""Cancel a coroutine at its k-th suspension, for tests that walk every await."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


@types.coroutine
def _cancelling(work: Coroutine[Any, Any, T], at: int) -> Generator[Any, None, T]:
    """Drive ``work``, cancelling the current task in the moment of its suspension number ``at``."""
    steps = work.__await__()
    task = asyncio.current_task()
    assert task is not None
    seen = 0
    try:
        waits_for = steps.send(None)
        while True:
            if seen == at:
                task.cancel()
            seen += 1
            try:
                yield waits_for
            except BaseException as error:
                waits_for = steps.throw(error)
            else:
                waits_for = steps.send(None)
    except StopIteration as end:
        result: T = end.value
        return result


async def cancel_at(work: Coroutine[Any, Any, T], at: int) -> T | None:
    """The coroutine's result, or None where it was cancelled at that suspension."""

    async def driven() -> T:
        return await _cancelling(work, at)

    task = asyncio.ensure_future(driven())
    await asyncio.wait({task})
    return None if task.cancelled() else task.result()
