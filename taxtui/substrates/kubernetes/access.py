"""Whether the API server, having said no, may soon say yes again.

An API server that restarts takes no connections for a moment, and then refuses everybody until it has read the roles
and the tokens: a right that we have used before is in doubt then, not lost. Every answer passes through ``Access``,
which alone knows the rights that were granted, and since when the server refuses one of them.
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from taxtui.substrates.kubernetes.failure import ApiRefused

DOUBT_S: Final = 45.0
"""For how long a right that we had may be refused until we take it for revoked."""
OUTAGE_S: Final = 2.0
"""A shorter silence is a broken connection."""
_AFTER_A_POD: Final = frozenset({"get", "delete", "exec", "get sandboxclaims", "delete sandboxclaims"})
"""Requests about a pod or claim that exists: creating or listing it has succeeded before."""


class _Refusals(NamedTuple):
    """Refusals of one right in a row: all of them answers, or all of them silence."""

    silent: bool
    first_s: float
    last_s: float


class Access:
    """The rights that were granted on one cluster, and the time since each is refused."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._let_in: set[str] = set()
        self._refusals: dict[str, _Refusals] = {}
        self._granted_s = self._silent_s = -1.0  # when that last happened, to any right
        self._outage_began_s = -1.0  # the first request of an outage that is not over
        self._outage_s = 0.0  # the longest outage that is over and not reported

    def granted(self, right: str) -> None:
        """A request that needs this right was answered."""
        self._let_in.add(right)
        self._refusals.pop(right, None)
        self._granted_s = time.monotonic()
        if self._outage_began_s >= 0:
            self._outage_s = max(self._outage_s, self._silent_s - self._outage_began_s)
            self._outage_began_s = -1.0

    def judge(self, right: str, error: ApiRefused) -> ApiRefused:
        """The same refusal, now knowing whether it is in doubt: after a success, for ``DOUBT_S``, and no policy's.

        An outage does not count: the time begins with the first answer after it.
        """
        now_s, silent = time.monotonic(), error.status == 0
        had = right in self._let_in or (right in _AFTER_A_POD and bool(self._let_in))
        if had and error.closed:
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
        """How long the server answered no request, at least: once for each outage of ``OUTAGE_S`` or more, else 0."""
        outage_s, self._outage_s = self._outage_s, 0.0
        return outage_s if outage_s >= OUTAGE_S else 0.0

    def _over(self, row: _Refusals, now_s: float, *, silent: bool) -> bool:
        """Whether the server has been another since these refusals, so that a new one is the first of its own row."""
        if silent != row.silent or (not silent and self._silent_s > row.last_s):
            return True
        return self._granted_s > row.last_s and now_s - row.last_s > DOUBT_S
