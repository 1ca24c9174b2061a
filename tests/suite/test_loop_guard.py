from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.support.loop_guard import THREADS, TICK_S, LoopGuard


async def computing(guard: LoopGuard) -> None:
    while not guard.blocked_at:
        sum(range(1000))


async def waiting(guard: LoopGuard) -> None:
    for _ in range(14):
        await asyncio.sleep(TICK_S)


def watched(body: Callable[[LoopGuard], Awaitable[None]]) -> str:
    async def watch() -> str:
        guard = LoopGuard(THREADS)
        await body(guard)
        guard.close()
        return guard.blocked_at

    return asyncio.run(watch())


def test_only_what_blocks_the_loop_is_reported_and_where() -> None:
    assert "in computing" in watched(computing)
    assert watched(waiting) == ""


async def test_every_coroutine_here_is_watched(request: pytest.FixtureRequest) -> None:
    assert "unblocked_loop" in request.fixturenames
