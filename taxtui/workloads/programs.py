"""Runs git, pip and docker; an error line of the program becomes the error."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from taxtui.errors import TaxtuiError

_USERINFO: Final = re.compile(r"(?<=://)[^\s/'\"]+(?=@)")


def without_userinfo(text: str) -> str:
    """Return a text with ``***`` for user and password in each URL."""
    return _USERINFO.sub("***", text)


def run_program(
    command: Sequence[str],
    failure: str,
    kind: type[TaxtuiError] = TaxtuiError,
    *,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    fix: str = "",
) -> bytes:
    """Return the standard output of a program.

    Raises:
        TaxtuiError: ``kind`` with ``failure`` and a line of the program's errors, without credentials in URLs.
    """
    failure = without_userinfo(failure)
    try:
        return subprocess.run(command, input=stdin, capture_output=True, env=env, check=True).stdout
    except FileNotFoundError as error:
        raise kind(f"{failure}: there is no {command[0]}", fix="install it") from error
    except subprocess.CalledProcessError as error:
        lines = [line.strip() for line in error.stderr.decode(errors="replace").splitlines()]
        lines = [line for line in lines if line and "--help'" not in line] or [f"exit {error.returncode}"]
        why = lines[-1]
        if command[0] == "git":  # advice follows the error
            why = next((line for line in lines if line.startswith(("fatal: ", "error: "))), why)
        for prefix in ("fatal: ", "error: ", "ERROR: "):
            why = why.removeprefix(prefix)
        raise kind(f"{failure}: {without_userinfo(why)}", fix=fix) from None  # the cause has the command line
