"""Files with a number on each line."""

from __future__ import annotations

from pathlib import Path

from costmodel import read_regular
from taxtui.errors import UsageError


def read_number_lines(path: Path, max_bytes: int, noun: str, fix: str) -> list[tuple[int, str]]:
    """Return each line's number and text, without comments (``#``) and blank lines.

    Raises:
        UsageError: the file, whose contents are ``noun``, is unreadable or no text.
    """
    try:
        lines = read_regular(path, max_bytes).decode("utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"cannot read {noun} from {path}: {error.strerror}", fix=fix) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {noun} from {path}: it is no text", fix=fix) from error
    return [(number, text) for number, line in enumerate(lines, 1) if (text := line.partition("#")[0].strip())]
