from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from tests.support.loop_guard import THREADS, TICK_S, LoopGuard


async def sleeping(guard: LoopGuard) -> None:
    while not guard.blocked_at:
        time.sleep(TICK_S)  # noqa: ASYNC251  # what the guard is there to find


async def computing(guard: LoopGuard) -> None:
    while not guard.blocked_at:
        sum(range(1000))


async def waiting(guard: LoopGuard) -> None:
    for _ in range(14):
        await asyncio.sleep(TICK_S)


def watched(body: Callable[[LoopGuard], Awaitable[None]]) -> str:
    async def watch() -> str:
        guard = LoopGuard(THREADS)
        try:
            await body(guard)
        finally:
            guard.close()
        return guard.blocked_at

    return asyncio.run(watch())


@pytest.mark.parametrize(
    ("body", "where"), [(sleeping, "time.sleep(TICK_S)"), (computing, "in computing"), (waiting, "")]
)
def test_only_what_blocks_the_loop_is_reported_and_where(
    body: Callable[[LoopGuard], Awaitable[None]], where: str
) -> None:
    report = watched(body)
    assert where in report
    assert bool(report) == bool(where)


async def test_every_coroutine_here_is_watched(request: pytest.FixtureRequest) -> None:
    assert "unblocked_loop" in request.fixturenames
