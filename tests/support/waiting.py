"""Waits that end with what they wait for. None has a clock of its own.

The one limit is the test's, a guard against hanging. Whoever still waits shortly before it says for what.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

import pytest

T = TypeVar("T")

POLL_S: Final = 0.01
LONGEST_S: Final = 0.1
"""Between two looks of who has waited for long: a look may go through all processes, or read a whole recording."""
SHARE: Final = 0.9
"""Of its limit a test may wait this much; the rest is for saying so and for cleaning up."""

_ends_s = math.inf


def limit(seconds: float) -> None:
    """A test begins, and may take this long."""
    global _ends_s
    _ends_s = time.monotonic() + SHARE * seconds


def left_s() -> float | None:
    """How long the running test may still wait, for what takes a timeout; None without a limit."""
    return None if math.isinf(_ends_s) else max(0.0, _ends_s - time.monotonic())


def still(what: str) -> None:
    """Between two looks: fail if the test has no time left."""
    assert time.monotonic() < _ends_s, f"waited in vain: {what}"


async def until(holds: Callable[[], T], what: str) -> T:
    """Let the event loop work until ``holds()`` is true; its value."""
    while not (value := holds()):
        still(what)
        await asyncio.sleep(POLL_S)
    return value


def block_until(holds: Callable[[], T], what: str) -> T:
    """Sleep until ``holds()`` is true; its value."""
    began = time.monotonic()
    while not (value := holds()):
        still(what)
        time.sleep(min(LONGEST_S, max(POLL_S, (time.monotonic() - began) / 10)))
    return value


async def cancelled(task: asyncio.Future[Any]) -> None:
    """Cancel a task, which must end as cancelled."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
