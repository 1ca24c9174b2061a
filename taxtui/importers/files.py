"""Files of other tools: list in a fixed order, decode with limits, refuse with a reason.

Every reader here opens regular files only, and no document, line or member may cost more than its limits.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from costmodel import open_regular, read_regular, too_large
from taxtui.importers.protocol import Unreadable

MOST_BYTES: Final = 32 << 20
"""One JSON document or line: decoded, it takes up to about ten times as much memory."""
MOST_VALUES: Final = 2_000_000
"""JSON values in it: an empty list is three bytes in a file and about seventy in memory, a small map 240."""
MOST_SKIPPED: Final = 1 << 20
"""Bytes in memory of the rest of a line that is too large."""
BROKEN: Final = "it is no JSON, or was cut off"

_STRING: Final = re.compile(rb'"[^"]*"?')
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
        Unreadable: it is no JSON, too large, no regular file, or unreadable.
    """
    try:
        data = read_regular(path, MOST_BYTES)
    except OSError as error:
        raise unreadable(error) from error
    try:
        return decoded(data)
    except Unreadable:
        if _is_json_lines(data):
            raise Unreadable("it is JSON lines, and a file of this format is one JSON document") from None
        raise


def _is_json_lines(data: bytes) -> bool:
    """Whether the first of several lines is a JSON map."""
    first, _, rest = data.partition(b"\n")
    try:
        return bool(rest.strip()) and isinstance(decoded(first), dict)
    except Unreadable:
        return False


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, from 1; empty ones are left out.

    A line that is larger than ``MOST_BYTES`` is cut behind one byte more, so that ``decoded`` refuses it.

    Raises:
        Unreadable: it cannot be read, or is no regular file.
    """
    try:
        with open_regular(path) as file:
            number = 0
            while line := file.readline(MOST_BYTES + 1):
                number += 1
                if len(line) > MOST_BYTES:
                    rest = line
                    while rest and not rest.endswith(b"\n"):
                        rest = file.readline(MOST_SKIPPED)
                    yield number, line
                elif line := line.strip():
                    yield number, line
    except OSError as error:
        raise unreadable(error) from error


def unreadable(error: OSError) -> Unreadable:
    """Explain a file that the system or ``open_regular`` refuses."""
    return Unreadable(f"it cannot be read: {error.strerror}")


def decoded(data: bytes | str) -> Any:
    """One JSON value.

    Raises:
        Unreadable: it is no JSON, too large, or has too many values. The message quotes no data.
    """
    _require_small(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):  # UnicodeError: either way, a lone surrogate too
        pass
    try:
        return json.loads(data)  # slower, but knows NaN
    except (ValueError, RecursionError):
        raise Unreadable(BROKEN) from None


def _require_small(data: bytes) -> None:
    if len(data) > MOST_BYTES:
        raise Unreadable(f"it is {too_large(MOST_BYTES)}")
    if _marks(data) <= MOST_VALUES:
        return
    without_escapes = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    if _marks(_STRING.sub(b"", without_escapes)) > MOST_VALUES:  # the commas of a transcript's text are no values
        raise Unreadable(f"it has more than {MOST_VALUES:,} JSON values")


def _marks(data: bytes) -> int:
    """At least as many as JSON has lists, maps and values behind a comma."""
    return sum(map(data.count, (b"[", b"{", b",")))
