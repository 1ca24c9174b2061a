"""Errors for Daytona's answers and for a sandbox's states. Plain data in, nothing is called.

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

# --------------------------------------------------------------------------------------------- the API says no


class DaytonaRefused(Refused):
    """Daytona said no."""

    table: ClassVar[tuple[Meaning, ...]] = (
        # The account's rate of requests, with an advice in a header of its own.
        Meaning(Throttled, lambda refusal: refusal.status == 429),
        # A request above a quota is refused as a bad request, as unpaid or as forbidden; only the words are specific.
        Meaning(
            QuotaExceeded,
            lambda refusal: (
                refusal.status in (400, 402, 403) and any(word in refusal.message.lower() for word in _QUOTA)
            ),
            before_a_sandbox=True,
        ),
        # Before there is a sandbox a bad key is the set-up's fault; after that, of this one request.
        Meaning(
            SubstrateUnavailable,
            lambda refusal: refusal.final,
            fix="check DAYTONA_API_KEY and its permissions",
            before_a_sandbox=True,
        ),
    )


def refused(status: int, headers: Mapping[str, str], body: str) -> DaytonaRefused:
    """The message of an answer other than 2xx."""
    try:
        refusal = json.loads(body)
        message = refusal.get("message") or refusal.get("error") or ""
    except (ValueError, AttributeError):
        message = ""
    # The header is named after what is limited: Retry-After-sandbox-create.
    after = [value for name, value in headers.items() if name.lower().startswith("retry-after")]
    waits = [float(value) for value in after if value.isdigit()]
    return DaytonaRefused(status, "", " ".join(str(message or f"HTTP {status}").split()), max(waits, default=None))


def unanswered(error: Exception) -> DaytonaRefused:
    """A request without an HTTP answer; only the kind of the error is used, because its text could name hosts."""
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
    """The reason why it never started or has stopped, by Daytona's or its image's fault; or None."""
    return f"the sandbox went to {state}: {reason or 'no reason given'}" if state in BROKEN else None


# ------------------------------------------------------------------------------------------------- a program ends


def not_run(shell: str, exit_code: int) -> ExecFailed:
    """The error for a toolbox answer without the wrapper's output: the shell did not run the command."""
    return ExecFailed(f"{shell} did not run the command (exit {exit_code})", fix="is it there?")
