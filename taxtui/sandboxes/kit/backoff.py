"""Asking again: how long to wait before a refused request is repeated, and for how long to go on."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from taxtui.errors import SubstrateError, SubstrateUnavailable, Throttled

T = TypeVar("T")

FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 10.0
"""Between two requests that are refused without advice: at first, and at most."""
FIND_S: Final = 60.0
"""For all that it takes to find sandboxes; refusals that are only in doubt are settled by then."""

_JITTER: Final = random.Random()


def pause_s(
    tries: int,
    advice_s: float | None,
    *,
    first_s: float | None = None,
    longest_s: float | None = None,
    source: random.Random = _JITTER,
) -> float:
    """The provider's advice with a little jitter, else back-off with a lot: many must not march in step.

    ``tries``: how many requests were refused before this one. ``first_s`` and ``longest_s``: by default as above.
    """
    first_s = FIRST_PAUSE_S if first_s is None else first_s
    longest_s = LONGEST_PAUSE_S if longest_s is None else longest_s
    if advice_s is not None:
        return advice_s * source.uniform(1.0, 1.1)
    return min(longest_s, first_s * 2.0 ** min(tries, 64)) * source.uniform(0.5, 1.0)


async def until_heard(
    request: Callable[[], Awaitable[T]], *, first_s: float | None = None, within_s: float = math.inf
) -> T:
    """The first answer that is not ``Throttled``: which stands for every refusal that may not last.

    Raises the last ``Throttled`` where another request could not be sent within ``within_s``, and whatever else
    ``request`` raises at once.
    """
    give_up = time.monotonic() + within_s
    tries = 0
    while True:
        try:
            return await request()
        except Throttled as error:
            wait_s = pause_s(tries, error.retry_after_s, first_s=first_s)
            if time.monotonic() + wait_s > give_up:
                raise
        await asyncio.sleep(wait_s)
        tries += 1


async def find(request: Callable[[], Awaitable[T]]) -> T:
    """``until_heard`` for ``Substrate.find``: finding is for cleaning up, which a throttle or a hiccup must not stop.

    Raises:
        SubstrateUnavailable: refused, or not answered within ``FIND_S``.
    """
    try:
        return await until_heard(request, within_s=FIND_S)
    except SubstrateUnavailable:
        raise
    except SubstrateError as error:
        raise SubstrateUnavailable(str(error)) from error
