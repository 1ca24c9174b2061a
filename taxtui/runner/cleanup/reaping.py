"""Removing everything that was found: one that cannot be removed keeps no other from being tried."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from taxtui.runner.redaction import redact
from taxtui.sandboxes.protocol import Found, Substrate

AT_ONCE: Final = 8
SWEEP_TIMEOUT_S: Final = 300.0
"""Of one substrate."""


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


def _any(sandbox: str) -> bool:
    return True


async def last_look(substrates: Iterable[Substrate], run_id: str, is_ours: Callable[[str], bool] = _any) -> list[str]:
    """Look by label at every substrate and remove what is there; one line for whatever is left, without names.

    ``is_ours`` says by its name whether one is to be removed: another worker may still use the others.
    """
    left = []
    for substrate in substrates:
        try:
            async with asyncio.timeout(SWEEP_TIMEOUT_S):
                failed = await reap_all(substrate, [it for it in await substrate.find(run_id) if is_ours(it.name)])
                why = {found.name: f": {' '.join(redact(error))}" for found, error in failed}
                names = dict.fromkeys([*why, *(it.name for it in await substrate.find(run_id) if is_ours(it.name))])
                left += [f"{substrate.name}: {name} is left{why.get(name, '')}" for name in names]
        except Exception as error:  # an adapter's bug must not keep the other substrates from being swept
            left.append(f"{substrate.name}: the last sweep failed: {' '.join(redact(error))}")
    return left
