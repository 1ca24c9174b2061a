"""What inspect_ai's exceptions amount to. Plain data in, nothing is called."""

from __future__ import annotations

from taxtui.errors import CreateFailed, ExecFailed
from taxtui.substrates.harness.words import compose_fix, last_words


def not_started(error: BaseException) -> CreateFailed:
    """Why an environment did not start."""
    return CreateFailed(f"inspect_ai did not start it: {last_words(str(error), error)}", fix=compose_fix(str(error)))


def not_run(error: BaseException) -> ExecFailed:
    """Why a command was not carried out."""
    return ExecFailed(f"inspect_ai: {last_words(str(error), error)}")
