"""Whether the API server, having said no, may soon say yes again.

An API server that restarts takes no connections for a moment, and then refuses everybody until it has read the roles
and the tokens: a right that we have used before is in doubt then, not lost. Every answer passes through ``Access``,
which alone knows what we have been let do, and since when that is refused.
"""

from __future__ import annotations

import time
from typing import Final

from taxtui.substrates.kubernetes.failure import ApiRefused

DOUBT_S: Final = 45.0
"""For how long a right that we had may be refused until we take it for revoked."""
_AFTER_A_POD: Final = frozenset({"get", "delete", "exec", "get sandboxclaims", "delete sandboxclaims"})
"""What is only ever done to a pod or a claim that was made or found, which is a success in itself."""


class Access:
    """What we have been let do on one cluster, and since when it is refused."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._let_in: set[str] = set()
        self._refused_since_s: dict[str, float] = {}

    def granted(self, right: str) -> None:
        """A request that needs this right was answered."""
        self._let_in.add(right)
        self._refused_since_s.pop(right, None)

    def judge(self, right: str, error: ApiRefused) -> ApiRefused:
        """The same refusal, now knowing whether it is in doubt: after a success, for ``DOUBT_S``, and no policy's."""
        had = right in self._let_in or (right in _AFTER_A_POD and bool(self._let_in))
        if had and error.closed:
            now_s = time.monotonic()
            error.in_doubt = now_s - self._refused_since_s.setdefault(right, now_s) < DOUBT_S
        return error
