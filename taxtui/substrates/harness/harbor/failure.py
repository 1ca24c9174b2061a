"""What Harbor's exceptions amount to. Plain data in, nothing is called."""

from __future__ import annotations

from taxtui.errors import CreateFailed, ExecFailed
from taxtui.substrates.harness.words import compose_fix, last_words


def not_started(error: BaseException) -> CreateFailed:
    """Why an environment did not start."""
    said = last_words(_spoken(str(error)), error)
    return CreateFailed(f"harbor did not start it: {said}", fix=compose_fix(str(error)))


def not_run(error: BaseException) -> ExecFailed:
    """Why a command was not carried out."""
    return ExecFailed(f"harbor: {last_words(_spoken(str(error)), error)}")


def _spoken(text: str) -> str:
    """What compose said: Harbor puts its whole command before it, and the other stream's None behind it."""
    _, found, said = text.partition(" Stdout: ")
    return said.removesuffix(" ").removesuffix(" Stderr: None.").removesuffix(".").strip() if found else text
