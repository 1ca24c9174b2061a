"""A trace of start times for ``--arrival open:FILE``: one instant in seconds on each line."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Final

from costmodel import MAX_INT, read_regular
from taxtui.errors import UsageError

MOST_STARTS: Final = 1_000_000
MOST_BYTES: Final = 64 << 20
FIX: Final = "write a time in s on each line, in ascending order; blank lines and # are skipped"


def read_starts(path: Path) -> tuple[int, ...]:
    """Return the times in ns after the first, ascending. The origin is free: seconds of a run, or Unix time.

    Raises:
        UsageError: the file is unreadable, has no time or too many, or a time is invalid or goes back.
    """
    try:
        lines = read_regular(path, MOST_BYTES).decode("utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"cannot read the start times from {path}: {error.strerror}", fix=FIX) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read the start times from {path}: it is no text", fix=FIX) from error
    numbered = [(n, text) for n, line in enumerate(lines, 1) if (text := line.partition("#")[0].strip())]
    if not 0 < len(numbered) <= MOST_STARTS:
        raise UsageError(f"{path} holds {len(numbered):,} start times", fix=f"give from 1 to {MOST_STARTS:,}")
    times_s = [(n, _seconds(path, n, text)) for n, text in numbered]
    for (_, before_s), (n, time_s) in pairwise(times_s):
        if time_s < before_s:
            raise UsageError(f"{path}:{n}: the time is before the one above it", fix=FIX)
    first_s = times_s[0][1]
    return tuple(round((time_s - first_s) * 1e9) for _, time_s in times_s)


def _seconds(path: Path, number: int, text: str) -> float:
    try:
        time_s = float(text)
    except ValueError:
        time_s = math.nan
    if not abs(time_s) <= MAX_INT / 2e9:
        # The line stays unquoted: a foreign scenario may name any file.
        raise UsageError(f"{path}:{number}: the line is no time in s", fix=FIX)
    return time_s
