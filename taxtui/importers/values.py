"""Values of untrusted files: each function returns a value of the expected type, or None, and never raises.

Numbers have limits, so that a recording has room for sums of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)
LAST_NS: Final = 4_102_444_800 * 10**9
"""Instants from the year 2100 on are invalid."""
LONGEST_NS: Final = 366 * 86_400 * 10**9
"""Durations above a year are invalid."""
SECOND_NS: Final = 10**9
MILLISECOND_NS: Final = 10**6
MICROSECOND_NS: Final = 10**3


def at(value: object, *keys: str | int) -> Any:
    """Return the value at a path of keys and indices; None if the path does not exist."""
    for key in keys:
        if isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value):
            value = value[key]
        else:
            return None
    return value


def items(value: object, *keys: str | int) -> list[Any]:
    """Return the list at a path; empty if the path has no list."""
    result = at(value, *keys)
    return result if isinstance(result, list) else []


def maps(value: object, *keys: str | int) -> Iterator[dict[str, Any]]:
    """Yield the maps in the list at a path, without items of other types."""
    return (item for item in items(value, *keys) if isinstance(item, dict))


def text(value: object) -> str:
    """Return a string; "" for anything else."""
    return value if isinstance(value, str) else ""


def is_name(value: object) -> bool:
    """Return whether a value is a text or a whole number."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def number(value: object) -> float | None:
    """Return a finite number; None for a truth value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None


def integer(value: object, most: int = 1 << 62) -> int | None:
    """Return a whole number from 0 to ``most``, also from a string or with a point."""
    if isinstance(value, str):
        value = int(value) if value.isascii() and value.isdigit() and len(value) < 20 else None
    finite = number(value)
    if finite is None or not finite.is_integer() or not isinstance(value, int | float):
        return None
    return whole if 0 <= (whole := int(value)) <= most else None


def duration_ns(value: object, unit_ns: int = SECOND_NS) -> int | None:
    """Return a duration in units of ``unit_ns``, from 0 to a year."""
    finite = number(value)
    return round(finite * unit_ns) if finite is not None and 0 <= finite * unit_ns <= LONGEST_NS else None


def instant_ns(value: object) -> int | None:
    """Return Unix time from ISO 8601 text (without a zone: UTC) or from Unix seconds; 0 and less mean "absent".

    A double has the seconds of today to a quarter of a microsecond, so the result is rounded to the microsecond.
    """
    if isinstance(value, str):
        try:
            parsed = datetime.fromisoformat(value)
            parsed = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
            instant = (parsed - EPOCH) // MICROSECOND * MICROSECOND_NS
        except (ValueError, OverflowError):
            return None
    else:
        seconds = number(value)
        if seconds is None or not 0 < seconds < LAST_NS / SECOND_NS:
            return None
        instant = round(seconds * 1e6) * MICROSECOND_NS
    return instant if 0 < instant < LAST_NS else None


def span_ns(
    value: object,
    start: str = "started_at",
    end: str = "finished_at",
    duration: str = "",
    unit_ns: int = SECOND_NS,
) -> tuple[int | None, int | None]:
    """Return the two instants of a map. A missing end is the start and the ``duration`` in units of ``unit_ns``."""
    start_ns, end_ns = instant_ns(at(value, start)), instant_ns(at(value, end))
    took_ns = duration_ns(at(value, duration), unit_ns) if duration else None
    if start_ns is not None and end_ns is None and took_ns is not None:
        end_ns = start_ns + took_ns
    return start_ns, end_ns


def zoneless(value: object) -> bool:
    """Return whether a text is an instant without a time zone, which ``instant_ns`` takes as UTC."""
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is None
    except ValueError:
        return False
