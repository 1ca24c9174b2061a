"""Errors for Daytona's answers and for a sandbox's states, from plain data.

Source of the words: the ``message`` of the API's JSON errors, and the states and ``errorReason`` of a sandbox.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

from taxtui.errors import QuotaExceeded, SubstrateUnavailable, Throttled
from taxtui.sandboxes.kit.refusal import Meaning, Refused

GONE: Final = "destroyed"
BROKEN: Final = frozenset({"error", "build_failed"})
ENDED: Final = frozenset({GONE, "destroying", "stopped", "stopping", "archived", "archiving", "paused", "pausing"})

_QUOTA: Final = ("quota", "limit exceeded")


class DaytonaRefused(Refused):
    """Daytona refused, or did not answer."""

    table: ClassVar[tuple[Meaning, ...]] = (
        # The account's rate of requests, with an advice in a separate header.
        Meaning(Throttled, lambda refusal: refusal.status == 429),
        # A request above a quota is a bad request, unpaid or forbidden; only the words are specific.
        Meaning(
            QuotaExceeded,
            lambda refusal: (
                refusal.status in (400, 402, 403) and any(word in refusal.message.lower() for word in _QUOTA)
            ),
            before_a_sandbox=True,
        ),
        # Before there is a sandbox, a bad key is a fault of the set-up; later, of this request.
        Meaning(
            SubstrateUnavailable,
            lambda refusal: refusal.final,
            fix="check DAYTONA_API_KEY and its permissions",
            before_a_sandbox=True,
        ),
    )


def refused(status: int, headers: Mapping[str, str], body: str) -> DaytonaRefused:
    """The refusal in an answer without 2xx."""
    try:
        refusal = json.loads(body)
        message = refusal.get("message") or refusal.get("error") or ""
    except (ValueError, AttributeError):
        message = ""
    # The name of the header contains the limit: Retry-After-sandbox-create.
    after = [value for name, value in headers.items() if name.lower().startswith("retry-after")]
    waits = [float(value) for value in after if value.isdigit()]
    return DaytonaRefused(status, "", " ".join(str(message or f"HTTP {status}").split()), max(waits, default=None))


def unanswered(error: Exception) -> DaytonaRefused:
    """A request without an HTTP answer; only the kind of the error is used, because the text could name hosts."""
    return DaytonaRefused(0, type(error).__name__, "Daytona did not answer")


class SandboxState(NamedTuple):
    """A state of a sandbox, and the reason of a failure."""

    name: str  # as the API names it; "destroyed" also for an unknown sandbox
    reason: str

    @classmethod
    def of(cls, item: Any) -> SandboxState:
        """From the API's description of a sandbox."""
        return cls(item.state.value if item.state is not None else "", item.error_reason or "")


def lost(state: SandboxState) -> str:
    """The reason why a sandbox in this state takes no commands; "" without one."""
    if state.name in BROKEN:  # by a fault of Daytona or the image
        return f"the sandbox went to {state.name}: {state.reason or 'no reason given'}"
    if state.name in ENDED:
        return f"the sandbox is {state.name}" + (f": {state.reason}" if state.reason else "")
    return ""
