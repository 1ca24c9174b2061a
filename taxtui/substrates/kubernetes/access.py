"""Decide whether a refusal by the API server may be temporary: of a right, or of room under a quota.

A restarting API server accepts no connections for a moment. Then the server refuses every request until roles and
tokens are read: a right that worked before is in doubt, not lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Final, NamedTuple

from taxtui.substrates.kubernetes.failure import ApiRefused

DOUBT_S: Final = 45.0
"""Time limit of a refusal of a granted right before the right counts as revoked."""
OUTAGE_S: Final = 2.0
"""A shorter silence is a broken connection."""
_AFTER_A_POD: Final = frozenset({"get", "delete", "exec", "get sandboxclaims", "delete sandboxclaims"})
"""Requests about an existing pod or claim: a create or a list has succeeded before."""


HOLD_S: Final = 60.0
"""Wait of one request for room under a quota, before ``Throttled``."""


class _Refusals(NamedTuple):
    """Consecutive refusals of one right: all are answers, or all are silence."""

    silent: bool
    first_s: float
    last_s: float


class Access:
    """The granted rights on one cluster, and their present refusals."""

    def __init__(self) -> None:
        self._granted: set[str] = set()
        self._refusals: dict[str, _Refusals] = {}
        self._granted_s = self._silent_s = -1.0  # times of the last grant and the last silence
        self._outage_began_s = -1.0  # the first request of the present outage
        self._outage_s = 0.0  # the longest past outage without a report

    def granted(self, right: str) -> None:
        """Record that the server answered a request with this right."""
        self._granted.add(right)
        self._refusals.pop(right, None)
        self._granted_s = time.monotonic()
        if self._outage_began_s >= 0:
            self._outage_s = max(self._outage_s, self._silent_s - self._outage_began_s)
            self._outage_began_s = -1.0

    def judge(self, right: str, error: ApiRefused) -> ApiRefused:
        """Set and return the refusal's doubt: in doubt for ``DOUBT_S`` after a success, unless a policy refused.

        An outage does not count: the time begins with the first answer after the outage.
        """
        now_s, silent = time.monotonic(), error.status == 0
        worked_before = right in self._granted or (right in _AFTER_A_POD and bool(self._granted))
        if worked_before and error.closed:
            row = self._refusals.get(right)
            first_s = now_s if row is None or self._over(row, now_s, silent=silent) else row.first_s
            self._refusals[right] = _Refusals(silent, first_s, now_s)
            error.in_doubt = now_s - first_s < DOUBT_S
        if silent:
            self._silent_s = now_s
            if self._outage_began_s < 0:
                self._outage_began_s = now_s
        return error

    def take_outage_s(self) -> float:
        """The least duration of an outage of ``OUTAGE_S`` or more, reported once; else 0."""
        outage_s, self._outage_s = self._outage_s, 0.0
        return outage_s if outage_s >= OUTAGE_S else 0.0

    def _over(self, row: _Refusals, now_s: float, *, silent: bool) -> bool:
        """Whether the server was restarted after these refusals, so that a new row begins."""
        if silent != row.silent or (not silent and self._silent_s > row.last_s):
            return True
        return self._granted_s > row.last_s and now_s - row.last_s > DOUBT_S


class Room:
    """The existing sandboxes of one substrate. Each removal makes room under a quota."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._freed = asyncio.Event()

    def add(self, name: str) -> None:
        self._names.add(name)

    def remove(self, name: str) -> None:
        """Record that a sandbox is gone, or was never made."""
        if name in self._names:
            self._names.discard(name)
            self._freed.set()
            self._freed = asyncio.Event()

    @property
    def size(self) -> int:
        return len(self._names)

    def next(self) -> asyncio.Event:
        """An event for the next removal. Take the event before the request."""
        return self._freed

    async def wait(self, freed: asyncio.Event) -> bool:
        """Whether ``freed`` is set within ``HOLD_S``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HOLD_S):
                return await freed.wait()
        return False
