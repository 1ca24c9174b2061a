"""Durations in text."""

from __future__ import annotations

import re
from typing import Final

from costmodel import MAX_INT
from taxtui.errors import UsageError

_UNITS_NS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*([a-zµ]*)")


def parse_duration_ns(text: str) -> int:
    """``250ms``, ``8s``, ``3m``, ``1h``; a bare number is seconds.

    Raises:
        UsageError: another text, or a negative or too long duration.
    """
    match = _DURATION.fullmatch(text.strip())
    unit = _UNITS_NS.get(match[2] or "s") if match else None
    if match is None or unit is None:
        raise UsageError(f"{text!r} is not a duration", fix="write 250ms, 8s, 3m or 1h")
    nanoseconds = float(match[1]) * unit
    if nanoseconds > MAX_INT:
        raise UsageError(f"{text!r} is beyond 292 years", fix="write 250ms, 8s, 3m or 1h")
    return round(nanoseconds)
