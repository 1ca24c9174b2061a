"""What SWE-ReX's exceptions amount to. Plain data in, nothing is called."""

from __future__ import annotations

from typing import Final

from taxtui.errors import CreateFailed, ExecFailed

_FIXES: Final = {
    "No such image": "docs/substrates/swerex.md says how to make one",
    "Failed to pull": "docs/substrates/swerex.md says how to make one",
    "not found": "install swe-rex in the image: docs/substrates/swerex.md",
    "No module named": "install swe-rex in the image: docs/substrates/swerex.md",
    "port is already allocated": "another program took the port first; try again",
    "did not start within": "look at docker logs, or at the load of the machine",
}
"""Words in what it says → what helps."""


def _said(error: BaseException) -> str:
    """The last line that has something in it, with the exception's name where it has no words."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def not_started(error: BaseException) -> CreateFailed:
    """Why a deployment did not start."""
    fix = next((fix for words, fix in _FIXES.items() if words in str(error)), "")
    return CreateFailed(f"swe-rex did not start it: {_said(error)}", fix=fix)


def not_run(error: BaseException) -> ExecFailed:
    """Why a command was not carried out."""
    return ExecFailed(f"swe-rex: {_said(error)}")
