"""Decide whether the API server's refusal of a right may be temporary.

A restarting API server accepts no connections for a moment. Then the server refuses every request until roles and
tokens are read: a right that worked before is in doubt, not lost.
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from taxtui.substrates.kubernetes.failure import ApiRefused

DOUBT_S: Final = 45.0
"""Time limit of a refusal of a granted right before the right counts as revoked."""
OUTAGE_S: Final = 2.0
"""A shorter silence is a broken connection."""
_AFTER_A_POD: Final = frozenset({"get", "delete", "exec", "get sandboxclaims", "delete sandboxclaims"})
"""Requests about an existing pod or claim: a create or a list has succeeded before."""


class _Refusals(NamedTuple):
    """Consecutive refusals of one right."""

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
        now_s = time.monotonic()
        if error.status == 0:
            self._silent_s = now_s
            if self._outage_began_s < 0:
                self._outage_began_s = now_s
        elif error.closed and (right in self._granted or (right in _AFTER_A_POD and self._granted)):
            row = self._refusals.get(right)
            first_s = now_s if row is None or self._over(row, now_s) else row.first_s
            self._refusals[right] = _Refusals(first_s, now_s)
            error.in_doubt = now_s - first_s < DOUBT_S
        return error

    def take_outage_s(self) -> float:
        """The least duration of an outage of ``OUTAGE_S`` or more, reported once; else 0."""
        outage_s, self._outage_s = self._outage_s, 0.0
        return outage_s if outage_s >= OUTAGE_S else 0.0

    def _over(self, row: _Refusals, now_s: float) -> bool:
        """Whether the server was restarted after these refusals, so that a new row begins."""
        return self._silent_s > row.last_s or (self._granted_s > row.last_s and now_s - row.last_s > DOUBT_S)
