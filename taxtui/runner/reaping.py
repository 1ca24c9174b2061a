"""Removing everything that was found: one that cannot be removed keeps no other from being tried."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from taxtui.sandboxes.protocol import Found, Substrate

AT_ONCE: Final = 8


class Left(NamedTuple):
    """What could not be removed, and why: a ``SubstrateError``, or whatever a bug of the adapter raised."""

    found: Found
    error: Exception


async def reap_all(
    substrate: Substrate, found: Iterable[Found], *, reaped: Callable[[Found], object] = lambda _: None
) -> list[Left]:
    """Reap everything, ``AT_ONCE`` at the same time, telling ``reaped`` of each that is gone; returns the others."""
    gate = asyncio.Semaphore(AT_ONCE)
    left: list[Left] = []

    async def reap(each: Found) -> None:
        async with gate:
            try:
                await substrate.reap(each)
            except Exception as error:  # also an adapter's bug: it is not known to be gone
                left.append(Left(each, error))
            else:
                reaped(each)

    await asyncio.gather(*map(reap, found))
    return left
