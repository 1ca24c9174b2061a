"""Values of untrusted files: each function returns a value of the expected type, or None. Nothing here raises.

Numbers are bounded so that sums of them stay within what a recording can hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)
LAST_NS: Final = 4_102_444_800 * 10**9
"""Instants from here on (the year 2100) are no instants."""
LONGEST_NS: Final = 366 * 86_400 * 10**9
"""Nothing that one trial does takes longer than a year."""
SECOND_NS: Final = 10**9
MILLISECOND_NS: Final = 10**6
MICROSECOND_NS: Final = 10**3


def at(value: object, *keys: str | int) -> Any:
    """The value at a path of keys and indices; None if the path does not exist."""
    for key in keys:
        if isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value):
            value = value[key]
        else:
            return None
    return value


def items(value: object, *keys: str | int) -> list[Any]:
    """The list at a path; empty where there is none."""
    found = at(value, *keys)
    return found if isinstance(found, list) else []


def maps(value: object, *keys: str | int) -> Iterator[dict[str, Any]]:
    """The maps in the list at a path; other items are left out."""
    return (item for item in items(value, *keys) if isinstance(item, dict))


def text(value: object) -> str:
    """A string; "" for anything else."""
    return value if isinstance(value, str) else ""


def number(value: object) -> float | None:
    """A finite number that is no truth value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        told = float(value)
    except OverflowError:
        return None
    return told if math.isfinite(told) else None


def integer(value: object, most: int = 1 << 62) -> int | None:
    """A whole number from 0 to ``most``, also where it is written as a string or with a point."""
    if isinstance(value, str):
        value = int(value) if value.isascii() and value.isdigit() and len(value) < 20 else None
    told = number(value)
    if told is None or not told.is_integer() or not isinstance(value, int | float):
        return None
    return whole if 0 <= (whole := int(value)) <= most else None


def duration_ns(value: object, unit_ns: int = SECOND_NS) -> int | None:
    """A duration in units of ``unit_ns``: not negative, not longer than a year."""
    told = number(value)
    return round(told * unit_ns) if told is not None and 0 <= told * unit_ns <= LONGEST_NS else None


def instant_ns(value: object) -> int | None:
    """Unix time in ns, of ISO 8601 text (without a zone: UTC) or of Unix seconds. 0 and less stand for "absent".

    A double holds the seconds of today to a quarter of a microsecond: they are taken to the microsecond.
    """
    if isinstance(value, str):
        try:
            told = datetime.fromisoformat(value)
            told = told if told.tzinfo else told.replace(tzinfo=UTC)
            found = (told - EPOCH) // MICROSECOND * MICROSECOND_NS
        except (ValueError, OverflowError):
            return None
    else:
        seconds = number(value)
        if seconds is None or not 0 < seconds < LAST_NS / SECOND_NS:
            return None
        found = round(seconds * 1e6) * MICROSECOND_NS
    return found if 0 < found < LAST_NS else None


def zoneless(value: object) -> bool:
    """Whether a text is an instant without a time zone, which ``instant_ns`` takes as UTC."""
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is None
    except ValueError:
        return False


def unix_ns(value: object) -> int | None:
    """Unix time that is given in ns, as a number or a string of digits."""
    found = integer(value)
    return found if found is not None and 0 < found < LAST_NS else None
