"""Files of other tools: list in a fixed order, decode with limits, refuse with a reason.

Readers open regular files only. A document, line or member of an archive has a limit of bytes and of values.
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
from taxtui.errors import RecordingError

MOST_BYTES: Final = 32 << 20
"""Limit of a JSON document or line, which takes up to ten times as much memory."""
MOST_VALUES: Final = 2_000_000
"""Limit of JSON values in a document: an empty list is 3 bytes in a file and 70 in memory, a small map 240."""
MOST_SKIPPED: Final = 1 << 20
"""Bytes in memory of the rest of a line that is too large."""
BROKEN: Final = "no JSON, or cut off"

_STRING: Final = re.compile(rb'"[^"]*"?')
_decode = msgspec.json.Decoder().decode


class Unreadable(RecordingError):
    """A file that a reader leaves out. The message quotes nothing of the file."""


def walk(folder: Path, wanted: Callable[[str], bool]) -> Iterator[Path]:
    """Yield the files below a folder whose names are wanted, sorted folder by folder, without links to folders."""
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(filter(wanted, names)):
            yield Path(root, name)


def document(path: Path) -> Any:
    """Return a JSON document; NaN and Infinity are valid, as Python writes them.

    Raises:
        Unreadable: no JSON, or too large.
        OSError: no regular file, or unreadable.
    """
    data = read_regular(path, MOST_BYTES)
    try:
        return decoded(data)
    except Unreadable:
        if _is_json_lines(data):
            raise Unreadable("JSON lines, and a file of this format is a single JSON document") from None
        raise


def _is_json_lines(data: bytes) -> bool:
    """Return whether the first of several lines is a JSON map."""
    first, _, rest = data.partition(b"\n")
    try:
        return bool(rest.strip()) and isinstance(decoded(first), dict)
    except Unreadable:
        return False


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers from 1, without empty lines.

    A line above ``MOST_BYTES`` is cut after one byte more, so that ``decoded`` refuses the line.

    Raises:
        OSError: the file cannot be read, or is no regular file.
    """
    with open_regular(path) as file:
        number = 0
        while line := file.readline(MOST_BYTES + 1):
            number += 1
            too_long = len(line) > MOST_BYTES
            rest = line if too_long else b""
            while rest and not rest.endswith(b"\n"):
                rest = file.readline(MOST_SKIPPED)
            if line := line if too_long else line.strip():
                yield number, line


def decoded(data: bytes | str) -> Any:
    """Return a JSON value.

    Raises:
        Unreadable: no JSON, too large, or too many values. The message quotes no data.
    """
    _require_small(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):  # UnicodeError: a lone surrogate
        pass
    try:
        return json.loads(data)  # slower, and accepts NaN
    except (ValueError, RecursionError):
        raise Unreadable(BROKEN) from None


def _require_small(data: bytes) -> None:
    if len(data) > MOST_BYTES:
        raise Unreadable(too_large(MOST_BYTES))
    if _most_values(data) <= MOST_VALUES:
        return
    without_escapes = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    if _most_values(_STRING.sub(b"", without_escapes)) > MOST_VALUES:  # commas inside of strings separate no values
        raise Unreadable(f"more than {MOST_VALUES:,} JSON values")


def _most_values(data: bytes) -> int:
    """Return an upper bound of the lists, maps and values after a comma."""
    return sum(map(data.count, (b"[", b"{", b",")))
