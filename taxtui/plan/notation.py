"""The short notations that a scenario file and the command line share: substrates and think time."""

from __future__ import annotations

from typing import Final

from taxtui.errors import UsageError
from taxtui.plan.durations import parse_duration_ns
from taxtui.plan.spec import SubstrateRef, ThinkTime

MAX_SIGMA: Final = 5.0
"""A lognormal of this sigma has a mean 270,000 times its median; whatever is above is a slip of the pen."""


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
