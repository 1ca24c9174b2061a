"""Errors for the exceptions of harnesses and of docker's compose plugin. Plain data in, nothing is called."""

from __future__ import annotations

import re
from typing import Final

from taxtui.errors import CreateFailed, ExecFailed, Throttled
from taxtui.sandboxes.kit.refusal import last_line

_CAUSES: Final = 5
_TOO_MANY_REQUESTS: Final = 429
_RATE: Final = re.compile("RateLimit|TooManyRequests|Throttl")
_INSTALL_SWEREX: Final = "install swe-rex in the image: docs/substrates/harnesses.md"
_FIXES: Final = {
    "No such image": "taxtui setup, or docs/substrates/harnesses.md for SWE-ReX",
    "address pool": "fewer at once, or more address pools for docker",
    "swerex-remote: not found": _INSTALL_SWEREX,
    "swerex-remote: command not found": _INSTALL_SWEREX,
}
"""Words in a harness's message → the fix for the user."""


def not_started(package: str, error: BaseException) -> CreateFailed | Throttled:
    """The error for a failed start."""
    if _throttled(error):
        return Throttled(f"{package}: {one_line(error)}")
    fix = next((fix for words, fix in _FIXES.items() if words in str(error)), "")
    return CreateFailed(f"{package} did not start it: {one_line(error)}", fix=fix)


def not_run(package: str, error: BaseException) -> ExecFailed | Throttled:
    """The error for a command without a result."""
    if _throttled(error):
        return Throttled(f"{package}: {one_line(error)}")
    return ExecFailed(f"{package}: {one_line(error)}")


def _throttled(error: BaseException | None) -> bool:
    """Whether an SDK refused a request for the rate: by the HTTP status, or by the exception's name."""
    for _ in range(_CAUSES):
        if error is None:
            return False
        status = getattr(error, "status_code", getattr(error, "status", None))
        if status == _TOO_MANY_REQUESTS or _RATE.search(type(error).__name__):
            return True
        error = error.__cause__ or error.__context__
    return False


def one_line(error: BaseException) -> str:
    """The last line of the message, or the exception's name where the message is empty.

    Harbor puts the whole compose command before the output, and ``Stderr: None`` behind. httpx adds a line with a
    link. A group of exceptions is represented by the first.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = str(error).partition("\nFor more information check: ")[0]
    _, separator, output = text.partition(" Stdout: ")
    if separator:
        text = output.removesuffix(" ").removesuffix(" Stderr: None.").removesuffix(".").strip()
    return last_line(text) or type(error).__name__
