"""The short notations that a scenario file and the command line share: durations, substrates, arrivals, think time."""

from __future__ import annotations

import re
from typing import Final

from taxtui.errors import UsageError
from taxtui.plan.spec import Arrival, SubstrateRef, ThinkTime
from taxtui.recording.events import MAX_INT

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
MAX_SIGMA: Final = 5.0
"""A lognormal of this sigma has a mean 270,000 times its median; whatever is above is a slip of the pen."""

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*([a-zµ]*)")


def parse_duration_ns(text: str) -> int:
    """``250ms``, ``8s``, ``3m``, ``1h``; a bare number is seconds.

    Raises:
        UsageError: anything else, also a negative one, or one that no recording can hold.
    """
    match = _DURATION.fullmatch(text.strip())
    unit = _UNITS_NS.get(match[2] or "s") if match else None
    if match is None or unit is None:
        raise UsageError(f"{text!r} is not a duration", fix="write 250ms, 8s, 3m or 1h")
    nanoseconds = float(match[1]) * unit
    if nanoseconds > MAX_INT:
        raise UsageError(f"{text!r} is beyond 292 years", fix="write 250ms, 8s, 3m or 1h")
    return round(nanoseconds)


def parse_substrate(text: str) -> SubstrateRef:
    """``docker`` or ``docker:runtime=runsc,image=mine:1``. Whether it exists is the registry's business.

    Raises:
        UsageError: an option without ``=``.
    """
    name, _, rest = text.partition(":")
    options = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise UsageError(f"{part!r} in {text!r} is not an option", fix="write NAME:key=value,key=value")
        options[key.strip()] = value.strip()
    if not name:
        raise UsageError(f"{text!r} has no substrate name", fix="write NAME or NAME:key=value")
    return SubstrateRef(name=name.strip(), options=options)


def parse_arrival(text: str) -> Arrival:
    """``sequential``, ``closed``, ``burst`` or ``staggered:500ms``.

    Raises:
        UsageError: anything else.
    """
    kind, _, interval = text.partition(":")
    if kind == "staggered" and interval:
        return Arrival(kind="staggered", interval_ns=parse_duration_ns(interval))
    if kind in ("sequential", "closed", "burst") and not interval:
        return Arrival(kind=kind)  # type: ignore[arg-type]  # mypy does not narrow by `in`
    raise UsageError(f"{text!r} is not an arrival", fix="write sequential, closed, staggered:500ms or burst")


def parse_think(text: str) -> ThinkTime:
    """``0s``, ``8s`` or ``lognormal:8s,0.6`` (median, sigma of the logarithm).

    Raises:
        UsageError: anything else.
    """
    if not text.startswith("lognormal:"):
        return ThinkTime(median_ns=parse_duration_ns(text))
    median, comma, sigma = text.removeprefix("lognormal:").partition(",")
    try:
        value = float(sigma)
    except ValueError:
        value = -1.0
    if not comma or not 0 <= value <= MAX_SIGMA:
        raise UsageError(
            f"{text!r} is not a think time",
            fix=f"write lognormal:MEDIAN,SIGMA as in lognormal:8s,0.6, with SIGMA up to {MAX_SIGMA:g}",
        )
    return ThinkTime(median_ns=parse_duration_ns(median), sigma=value)
