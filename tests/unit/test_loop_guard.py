from __future__ import annotations

import asyncio
import time

import pytest

from tests.support.loop_guard import TICK_S, LoopGuard


async def blocking(guard: LoopGuard) -> None:
    while not guard.blocked_at:
        time.sleep(TICK_S)  # noqa: ASYNC251  # what the guard is there to find


async def waiting(guard: LoopGuard) -> None:
    for _ in range(14):
        await asyncio.sleep(TICK_S)


@pytest.mark.parametrize(("body", "where"), [(blocking, "time.sleep(TICK_S)"), (waiting, "")])
def test_only_what_blocks_the_loop_is_reported_and_where(body: object, where: str) -> None:
    async def watched() -> str:
        guard = LoopGuard()
        try:
            await body(guard)  # type: ignore[operator]
        finally:
            guard.close()
        return guard.blocked_at

    report = asyncio.run(watched())
    assert where in report
    assert bool(report) == bool(where)


async def test_every_coroutine_here_is_watched(request: pytest.FixtureRequest) -> None:
    assert "unblocked_loop" in request.fixturenames
