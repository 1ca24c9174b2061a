"""Files of other tools: found in one order, decoded in pieces, refused with a reason."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from taxtui.importers.protocol import Unreadable

MOST_BYTES: Final = 256 << 20
"""Of one JSON document or line: what is larger is no log of one trial."""
BROKEN: Final = "it is no JSON, or was cut off"

_decode = msgspec.json.Decoder().decode


def walk(folder: Path, wanted: Callable[[str], bool]) -> Iterator[Path]:
    """The files below a folder whose names are wanted, sorted folder by folder; links to folders are not followed."""
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(filter(wanted, names)):
            yield Path(root, name)


def document(path: Path) -> Any:
    """One JSON document, NaN and Infinity included, as Python writes them.

    Raises:
        Unreadable: it is none, too large, or cannot be read.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise Unreadable(f"it is larger than {MOST_BYTES >> 20} MiB")
        data = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"it cannot be read: {error.strerror}") from error
    return decoded(data)


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, from 1; empty ones are left out.

    Raises:
        Unreadable: it cannot be read, or a line is too large.
    """
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(MOST_BYTES + 1):
                number += 1
                if len(line) > MOST_BYTES:
                    raise Unreadable(f"line {number} is larger than {MOST_BYTES >> 20} MiB")
                if line := line.strip():
                    yield number, line
    except OSError as error:
        raise Unreadable(f"it cannot be read: {error.strerror}") from error


def decoded(data: bytes | str) -> Any:
    """One JSON value. Raises ``Unreadable`` where it is none; the message holds nothing of it."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):  # UnicodeError: either way, a lone surrogate too
        pass
    try:
        return json.loads(data)  # slower, but knows NaN
    except (ValueError, RecursionError):
        raise Unreadable(BROKEN) from None
