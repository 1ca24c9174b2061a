"""Errors for Daytona's answers and for a sandbox's states, from plain data.

Source of the words: the ``message`` of the API's JSON errors, and the states and ``errorReason`` of a sandbox.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar, Final

from taxtui.errors import ExecFailed, QuotaExceeded, SubstrateUnavailable, Throttled
from taxtui.sandboxes.kit.refusal import Meaning, Refused

GONE: Final = "destroyed"
BROKEN: Final = frozenset({"error", "build_failed"})
ENDED: Final = frozenset({GONE, "destroying", "stopped", "stopping", "archived", "archiving", "paused", "pausing"})

_QUOTA: Final = ("quota", "limit exceeded")

# ---------------------------------------------------------------------------------------------- the API refuses


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


def unreadable() -> DaytonaRefused:
    """An answer that does not follow the API's schema."""
    return DaytonaRefused(0, "", "Daytona's answer does not match its schema")


# ------------------------------------------------------------------------------------------- a sandbox goes wrong


def lost(state: str, reason: str, *, leaving: bool = False) -> str | None:
    """The reason why a sandbox in this state takes no commands, or None. ``leaving``: taxtui removes it."""
    if leaving or state in ENDED:
        return f"the sandbox is {state or 'being removed'}" + (f": {reason}" if reason else "")
    return broken(state, reason)


def broken(state: str, reason: str) -> str | None:
    """The reason why the sandbox failed, by a fault of Daytona or the image; or None."""
    return f"the sandbox went to {state}: {reason or 'no reason given'}" if state in BROKEN else None


# ------------------------------------------------------------------------------------------------- a program ends


def not_run(shell: str, exit_code: int) -> ExecFailed:
    """The error for an answer without the wrapper's output: the shell did not run the command."""
    return ExecFailed(f"{shell} did not run the command (exit {exit_code})", fix="check that the image has this shell")
