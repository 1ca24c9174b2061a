from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support.loop_guard import BLOCKED_S, THREADS, TICK_S, LoopGuard


async def sleeping(guard: LoopGuard) -> None:
    while not guard.blocked_at:
        time.sleep(TICK_S)  # noqa: ASYNC251  # what the guard is there to find


async def computing(guard: LoopGuard) -> None:
    while not guard.blocked_at:
        sum(range(1000))


async def waiting(guard: LoopGuard) -> None:
    for _ in range(14):
        await asyncio.sleep(TICK_S)


async def silent(guard: LoopGuard) -> None:
    time.sleep(2 * BLOCKED_S)  # noqa: ASYNC251


def watched(body: Callable[[LoopGuard], Awaitable[None]], threads: Path = THREADS) -> str:
    async def watch() -> str:
        guard = LoopGuard(threads)
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


@pytest.mark.parametrize(
    ("state", "body", "reported"), [("R", silent, False), ("S", sleeping, True)], ids=["not let to run", "asleep"]
)
def test_a_thread_that_is_not_let_to_run_blocks_nothing(
    state: str, body: Callable[[LoopGuard], Awaitable[None]], reported: bool, tmp_path: Path
) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "stat").write_text(f"1 (a loop) {state} 0 0")
    (tmp_path / "1" / "schedstat").write_text("0 0 0")
    assert bool(watched(body, tmp_path)) == reported


async def test_every_coroutine_here_is_watched(request: pytest.FixtureRequest) -> None:
    assert "unblocked_loop" in request.fixturenames
