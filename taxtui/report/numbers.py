"""How numbers are printed for people: as many digits as the column's reader can use, never more than are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from costmodel.uncertainty import Between, Interval

NOTHING: Final = "–"
UNSPLIT: Final = (
    "unsplit: tool time, commands of which nobody told how long they ran inside the sandbox: dispatch and work in one. "
    "The tax is at least what it is if they were all work (but for the dispatch of --reference RECORDING, where given) "
    "and at most what it is if none were."
)
"""The note under a table that has such commands."""


def hours(value: float | None, *, signed: bool = False) -> str:
    """Hours of workers, walls or GPUs: whole from 10 on, as the published tables print them; 4.45e+12 beyond 1e9."""
    return _rounded(value, whole_from=9.995, sign="+" if signed else "")


def clock(value: float | None) -> str:
    """Hours on the wall: hundredths below 100."""
    return _rounded(value, whole_from=99.995, sign="")


def _rounded(value: float | None, *, whole_from: float, sign: str) -> str:
    if value is None:
        return NOTHING
    size = abs(value)
    if size >= 1e9:
        return f"{value:{sign}.3e}"
    if size >= whole_from:
        return f"{value:{sign},.0f}"
    return f"{value:{sign}.2f}" if size >= 0.01 or size == 0 else f"{value:{sign}.2g}"


def left_out(cleanups: Sequence[float]) -> str:
    """How much clean-up is not in held, from its shares of it; there is at least one."""
    ends = dict.fromkeys(f"{100 * share:.2g}" for share in (min(cleanups), max(cleanups)))
    return f"Clean-up is left out: {' to '.join(ends)} % of held on top"


def seconds(value: float | None) -> str:
    """Seconds to the nanosecond, without idle zeros: what the table can be recomputed from."""
    return NOTHING if value is None else f"{value:.9f}".rstrip("0").rstrip(".")


def rounded_seconds(value: float | None) -> str:
    """Seconds to four digits."""
    return NOTHING if value is None else f"{value:.4g}" if value < 1000 else f"{value:,.0f}"


def usd(value: float | None) -> str:
    """Dollars: cents below 1,000."""
    return NOTHING if value is None else f"{value:,.2f}" if abs(value) < 1000 else f"{value:,.0f}"


def between(limits: Between, show: Callable[[float], str]) -> str:
    """What an amount is at least and, on a second line, at most."""
    return f"≥ {show(limits.low)}\n≤ {show(limits.high)}"


def span(interval: Interval | None, show: Callable[[float], str] = hours) -> str:
    """The limits of an interval, "≥" before a lower one that is alone, or nothing."""
    if interval is None or interval.low is None:
        return ""
    if interval.high is None:
        return f"≥ {show(interval.low)}"
    return f"{show(interval.low)} … {show(interval.high)}"
