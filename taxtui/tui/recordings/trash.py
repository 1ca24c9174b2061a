"""Deletes by moving to the desktop's trash, from where a person can take a file back."""

from __future__ import annotations

from pathlib import Path

from taxtui.errors import TaxtuiError


def discard(path: Path) -> None:
    """Move a file to the trash.

    Raises:
        TaxtuiError: it is still where it was; the message says why.
    """
    from send2trash import send2trash

    try:
        send2trash(path)
    except OSError as error:
        raise TaxtuiError(f"{path.name} was not deleted: the trash refused it: {error.strerror or error}") from error
