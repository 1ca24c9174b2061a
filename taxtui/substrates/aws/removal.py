"""Ending what costs money at AWS: asked for until it is heard, watched until it is over, given up at a deadline."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable
from typing import Final

from taxtui.errors import CleanupFailed, SubstrateError
from taxtui.substrates.aws.connection import SDK_ERRORS, unthrottled

INSIST_S: Final = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Pauses before each request to end what nobody holds any more; leaving the substrate waits for them."""
REMOVE_S: Final = 100.0
"""For all of a removal, throttling included: a little less than the runner waits for it, so that the reason is told."""
SETTLING_S: Final = 60.0
"""AWS may not know for so long what it has just launched: until then "not found" does not mean "gone"."""


def settled(launched_s: float) -> bool:
    """Whether AWS must know by now what it launched then (monotonic)."""
    return time.monotonic() - launched_s > SETTLING_S


async def remove(
    what: str,
    ask: Callable[[], Awaitable[bool]],
    ended: Callable[[], Awaitable[bool | None]] | None = None,
    *,
    poll_s: float,
    launched_s: float = -math.inf,
) -> None:
    """Ask for the end of ``what`` until AWS accepts it, then look until it has come; throttling is waited out.

    ``ask`` answers False, and ``ended`` None, where AWS does not know it: it is gone, unless it was launched only just.
    What is gone once its end is accepted needs no ``ended``.

    Raises:
        CleanupFailed: refused, or not over after ``REMOVE_S``; the message says what is left.
    """
    trouble = "AWS has not accepted its end"
    try:
        async with asyncio.timeout(REMOVE_S):
            while not await unthrottled(ask, poll_s):
                if settled(launched_s):
                    return
                trouble = "AWS does not know it yet"
                await asyncio.sleep(poll_s)
            trouble = "AWS has accepted its end, but not confirmed it"
            while ended is not None and not (over := await ended()):
                if over is None and settled(launched_s):
                    return
    except TimeoutError:
        raise CleanupFailed(f"{what} may still exist: {trouble} within {REMOVE_S:g} s") from None
    except SubstrateError as error:
        raise CleanupFailed(f"{what} may still exist: {error}") from error


def insist(ask: Callable[[], object]) -> None:
    """Blocks: ask for the end of what a cancelled create made, which AWS may throttle or not know yet.

    Raises nothing: what is left after all has its own deadline, and labels by which a sweep finds it.
    """
    for pause_s in INSIST_S:
        time.sleep(pause_s)
        with contextlib.suppress(*SDK_ERRORS):
            ask()
            return
