from __future__ import annotations

import asyncio
import random

import pytest

from taxtui.errors import Throttled
from taxtui.runner.trial.throttle_retry import MAX_TRIES, ThrottleRetry
from taxtui.sandboxes.kit import retry


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits that were slept through, none of them for real."""
    slept: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await real(0)

    monkeypatch.setattr(retry.asyncio, "sleep", sleep)  # type: ignore[attr-defined]
    return slept


def refusing(times: int, advice_s: float | None) -> tuple[list[int], object]:
    tries: list[int] = []

    async def attempt() -> str:
        tries.append(len(tries))
        if len(tries) <= times:
            raise Throttled("slow down", advice_s)
        return "answer"

    return tries, attempt


async def test_back_off_doubles_to_a_bound_with_jitter(waits: list[float]) -> None:
    announced: list[float] = []
    _, attempt = refusing(10, None)
    patience = ThrottleRetry(random.Random(1), announced.append)
    assert await patience(attempt) == "answer"  # type: ignore[arg-type]
    assert announced == waits
    for number, wait_s in enumerate(waits):
        full_s = min(30.0, 0.25 * 2**number)
        assert full_s / 2 <= wait_s <= full_s
    assert patience.queued_ns > 0


async def test_the_providers_advice_is_taken_and_never_undercut(waits: list[float]) -> None:
    _, attempt = refusing(3, 8.0)
    await ThrottleRetry(random.Random(2), lambda wait_s: None)(attempt)  # type: ignore[arg-type]
    assert len(waits) == 3
    assert all(8.0 <= wait_s <= 8.8 for wait_s in waits)


async def test_patience_ends(waits: list[float]) -> None:
    tries, attempt = refusing(10**9, None)
    with pytest.raises(Throttled):
        await ThrottleRetry(random.Random(3), lambda wait_s: None)(attempt)  # type: ignore[arg-type]
    assert len(tries) == MAX_TRIES
    assert len(waits) == MAX_TRIES - 1
