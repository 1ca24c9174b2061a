"""Two calls timed in turns, so that drift hits both alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable

WARM_UP = 20


async def p50_ms(
    one: Callable[[], Awaitable[object]], other: Callable[[], Awaitable[object]], rounds: int = 300
) -> tuple[float, float]:
    """The median of each, in milliseconds."""
    took: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + WARM_UP):
        for call, durations in zip((one, other), took, strict=True):
            began = time.perf_counter()
            await call()
            if number >= WARM_UP:
                durations.append((time.perf_counter() - began) * 1e3)
    return statistics.median(took[0]), statistics.median(took[1])
