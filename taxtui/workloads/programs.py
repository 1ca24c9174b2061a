"""Runs git, pip and docker; an error line of the program becomes the error."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from taxtui.errors import TaxtuiError


def run_program(
    command: Sequence[str],
    failure: str,
    kind: type[TaxtuiError] = TaxtuiError,
    *,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> bytes:
    """Return the standard output of a program. Raises ``kind``: ``failure``, and a line of the program's errors."""
    try:
        return subprocess.run(command, input=stdin, capture_output=True, env=env, check=True).stdout
    except FileNotFoundError as error:
        raise kind(f"{failure}: there is no {command[0]}", fix="install it") from error
    except subprocess.CalledProcessError as error:
        lines = [line.strip() for line in error.stderr.decode(errors="replace").splitlines()]
        lines = [line for line in lines if line and "--help'" not in line] or [f"exit {error.returncode}"]
        why = next((line for line in lines if line.startswith(("fatal: ", "error: "))), lines[-1])  # advice follows
        for prefix in ("fatal: ", "error: ", "ERROR: "):
            why = why.removeprefix(prefix)
        raise kind(f"{failure}: {why}") from error
