"""What it means that the API server says no, and whether it may soon say yes again.

An API server that restarts takes no connections for a moment, and then refuses everybody until it has read the roles
and the tokens: a right that we have used before is in doubt then, not lost. Every answer passes through ``Access``,
which alone knows what we have been let do, and since when that is refused.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Final

import aiohttp
import msgspec

from taxtui.errors import CreateFailed, QuotaExceeded, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.substrates.kubernetes.pod import Camel

DOUBT_S: Final = 45.0
"""For how long a right that we had may be refused until we take it for revoked."""
_USER: Final = re.compile(r'[Uu]ser "[^"]*"')  # of no use to who reads a recording, and none of their business
_POLICY: Final = re.compile("is forbidden: (?!this user cannot|not yet ready)|denied the request")
_AFTER_A_POD: Final = frozenset({"get", "delete", "exec"})
"""What is only ever done to a pod that was made or found, which is a success in itself."""


class Problem(Camel, frozen=True):
    """A ``Status`` object: how the API server says no."""

    reason: str | None = None
    message: str | None = None
    code: int | None = None


class ApiRefused(Exception):
    """The API server said no, in its own terms; ``status`` 0 when it said nothing. Never leaves the substrate."""

    def __init__(self, status: int, reason: str, message: str, retry_after_s: float | None = None) -> None:
        """Keep the parts that decide what becomes of it."""
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.unsent = False  # there was nobody to connect to, so nothing can have come of it
        self.in_doubt = False  # as ``Access`` judges

    @property
    def final(self) -> bool:
        """Asking again cannot help: wrong credentials, or no permission, and no reason to doubt it."""
        return self.status in (401, 403) and not self.in_doubt

    def __str__(self) -> str:
        """One line, with the HTTP status where there was one."""
        return f"{super().__str__()} ({self.reason})" if not self.status else f"{super().__str__()} ({self.status})"

    def as_error(self, otherwise: type[SubstrateError], doing: str) -> SubstrateError:
        """The error of ours that it amounts to; before there is a pod, a missing permission is the set-up's fault."""
        text = f"{doing}: {self}"
        if self.status == 429 or (self.status >= 500 and self.retry_after_s is not None) or self.in_doubt:
            return Throttled(text, self.retry_after_s)
        if otherwise is CreateFailed:
            if self.status == 401:
                return SubstrateUnavailable(text, fix="renew the credentials of this kubeconfig context")
            if self.status == 403 and "exceeded quota" in text:
                return QuotaExceeded(text)
            if self.status == 403:
                return SubstrateUnavailable(
                    text, fix="grant docs/substrates/kubernetes.md's role, or fix what it names"
                )
        return otherwise(text)


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
        closed = error.unsent or (error.status in (401, 403) and not _POLICY.search(str(error)))
        if had and closed:
            now_s = time.monotonic()
            error.in_doubt = now_s - self._refused_since_s.setdefault(right, now_s) < DOUBT_S
        return error


def refused(status: int, headers: Mapping[str, str], body: bytes) -> ApiRefused:
    """What an answer other than 2xx says; the body is a Status object, unless something before the API server spoke."""
    try:
        problem = msgspec.json.decode(body, type=Problem)
    except msgspec.DecodeError:
        problem = Problem()
    message = _USER.sub("this user", " ".join((problem.message or f"HTTP {status}").split()))
    after = headers.get("Retry-After", "")
    return ApiRefused(status, problem.reason or "", message, float(after) if after.isdigit() else None)


def unanswered(error: Exception) -> ApiRefused:
    """A request that no HTTP answer came back to; its text could name hosts, so only its kind is kept."""
    silence = ApiRefused(0, type(error).__name__, "the API server did not answer")
    silence.unsent = isinstance(error, aiohttp.ClientConnectorError)
    return silence
