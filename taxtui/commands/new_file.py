"""Files that a command makes: new ones only, and whole ones only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from taxtui.errors import UsageError, WriteFailed


def write(pieces: Iterable[bytes], out: Path, option: str) -> None:
    """All of it, or no file; ``option`` is what named it.

    Raises:
        UsageError: there is a file of that name already, or none can be made there.
        WriteFailed: the disk is full or gone; nothing is left of it.
    """
    remaining: Iterator[bytes] = iter(pieces)
    first = next(remaining, b"")  # a damaged recording is refused before there is a file
    try:
        file: BinaryIO = out.open("xb")
    except FileExistsError:
        raise UsageError(f"{out} exists", fix=f"choose another name with {option}, nothing is overwritten") from None
    except OSError as error:
        raise UsageError(f"cannot create {out}: {error.strerror}", fix=f"choose another with {option}") from error
    try:
        with file:
            file.write(first)
            file.writelines(remaining)
    except BaseException as error:
        out.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise WriteFailed(f"cannot write {out}: {error.strerror}", fix="nothing of it was kept") from error
        raise


def absent(out: Path, option: str) -> None:
    """Raises ``UsageError`` where ``write`` would: before minutes were spent on what cannot be written."""
    if out.exists():
        raise UsageError(f"{out} exists", fix=f"choose another name with {option}, nothing is overwritten")
    if not out.absolute().parent.is_dir():
        raise UsageError(f"cannot create {out}: there is no folder {out.parent}", fix=f"choose another with {option}")


def empty_folder(out: Path, option: str) -> None:
    """Make a folder, or take one that holds nothing. Raises ``UsageError``: it holds something, or cannot be made."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        holds = next(out.iterdir(), None)
    except OSError as error:
        raise UsageError(f"cannot use {out}: {error.strerror}", fix=f"choose another folder with {option}") from error
    if holds is not None:
        raise UsageError(f"{out} is not empty", fix=f"choose another folder with {option}, nothing is overwritten")
