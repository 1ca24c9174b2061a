"""Waiting for room under a quota that our own sandboxes use up: what ends makes room for the next one."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

HOLD_S: Final = 60.0
"""How long one request waits for room, before whoever made it is told that it still has none."""


class Room:
    """The sandboxes of one substrate that stand now."""

    def __init__(self) -> None:
        """None stands yet."""
        self._standing: set[str] = set()
        self._freed = asyncio.Event()

    def taken(self, name: str) -> None:
        """A sandbox exists, until it has ``left``."""
        self._standing.add(name)

    def left(self, name: str) -> None:
        """It is gone."""
        if name in self._standing:
            self._standing.discard(name)
            self._freed.set()
            self._freed = asyncio.Event()

    @property
    def standing(self) -> int:
        """How many there are now."""
        return len(self._standing)

    def next(self) -> asyncio.Event:
        """Set by the next sandbox that is gone. Ask for it before the request that may be refused."""
        return self._freed

    async def wait(self, freed: asyncio.Event) -> bool:
        """Whether that has happened within ``HOLD_S``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HOLD_S):
                return await freed.wait()
        return False
