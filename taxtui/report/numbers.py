"""How numbers are printed for people, in tables, on screens and on pages: three digits, never more than are known.

An interval is printed to the decimal place of its value. What is exact stands in csv and json, and in ``--explain``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from costmodel.statistics.intervals import Between, Interval

NOTHING: Final = "–"
UNSPLIT: Final = (
    "unsplit: tool time, commands of which nobody told how long they ran inside the sandbox: dispatch and work in one. "
    "The tax is at least what it is if they were all work (but for the dispatch of --reference RECORDING, where given) "
    "and at most what it is if none were."
)
"""The note under a table that has such commands."""
WRAPPER: Final = (
    "wrapper: taxtui's own shell code around each command, inside the sandbox: neither dispatch nor tax. It is part of "
    "dispatch in recordings that do not have it."
)
"""The note under a table that has wrapper time."""

CLOSED_LOOP: Final = (
    "closed loop: a trial starts when another has ended, so a stall holds back starts that no number shows; "
    "--arrival open:20/s counts from when each was due, in response"
)
"""What a run cannot see whose trials have no schedule."""

DIGITS: Final = 3
LOPSIDED: Final = 2.0
_LARGE: Final = 1e9
_SMALL: Final = 1e-4
_NS_PER_HOUR: Final = 3_600e9
_SCALES: Final = (
    (86_400e9, "days"),
    (_NS_PER_HOUR, "h"),
    (60e9, "min"),
    (1e9, "s"),
    (1e6, "ms"),
    (1e3, "µs"),
    (1.0, "ns"),
)
_FROM: Final = {"days": 2.0, "h": 2.0, "min": 2.0}
"""Of a unit, from how many of it on it is used, where that is not 1: 119 s are told in seconds."""


def number(value: float | None, *, signed: bool = False, like: float | None = None) -> str:
    """Three digits, or all that are before the point: ``2,425 855 36.4 0.0713 0``; 4.45e+12 from 1e9 on.

    ``like`` is another number, whose decimal place it is printed to.
    """
    if value is None:
        return NOTHING
    sign, size = "+" if signed else "", abs(value if like is None else like)
    if size >= _LARGE or 0 < size < _SMALL:
        return f"{value:{sign}.3g}" if size < _SMALL else f"{value:{sign}.3e}"
    return f"{value:{sign},.{_decimals(size)}f}" if value or like else "0"


def _decimals(size: float) -> int:
    """So many that three digits are shown, after rounding; none of what is 0."""
    if not size:
        return 0
    rounded = float(f"{size:.{DIGITS - 1}e}")
    return max(0, DIGITS - 1 - math.floor(math.log10(rounded)))


hours = clock = rounded_seconds = number
"""Of worker-hours, of hours on the wall, and of seconds: their column says which."""


def parts(interval: Interval, *, unit: str = "", signed: bool = False) -> tuple[str, str]:
    """``855`` and ``±121``, at the decimal place of the value: the farther limit's distance.

    Both limits, ``(101…528)``, where one is twice as far as the other, or ± would reach below nothing. ``≥ 742`` and
    nothing where there is a lower limit only. ``unit`` follows the value.
    """
    value, low, high = interval
    if low is None:
        return f"{number(value, signed=signed)}{unit}", ""
    if high is None:
        return f"≥ {number(low, like=value)}{unit}", ""
    sure = _sure(interval, lambda end: number(end, like=value), lambda end: number(end, signed=signed, like=value))
    return f"{number(value, signed=signed)}{unit}", sure


def plus_minus(interval: Interval | None, *, unit: str = "") -> str:
    """``855 ±121``, ``254 (101…528)``, ``≥ 742``, ``3.48x ±0.12``: the two parts on one line."""
    return NOTHING if interval is None else " ".join(filter(None, parts(interval, unit=unit)))


def stacked(interval: Interval | None, *, unit: str = "", signed: bool = False) -> str:
    """As ``plus_minus``, the interval on a second line: ``0.116`` and below it ``±0.018``."""
    return NOTHING if interval is None else "\n".join(filter(None, parts(interval, unit=unit, signed=signed)))


def percent(share: float) -> str:
    """``92 %``, ``3.1 %``: two digits of a share of 1."""
    return f"{100 * share:.{0 if abs(share) >= 0.0995 or not share else 1}f} %"


def _sure(interval: Interval, size: Callable[[float], str], end: Callable[[float], str]) -> str:
    """``±18``, of the farther limit; ``(101…528)`` where the two are so different that this would mislead."""
    value, low, high = interval
    if low is None or high is None:
        return ""
    below, above = value - low, high - value
    if max(below, above) > LOPSIDED * min(below, above) or (low >= 0 and value <= above):
        return f"({end(low)}…{end(high)})"
    return f"±{size(max(below, above))}"


def duration(ns: float, low_ns: float | None = None, high_ns: float | None = None) -> str:
    """``612 ms`` to three digits and, on a second line, its interval in the same unit: ``598…640``."""
    scale, unit = _unit(ns)
    low, high = ("" if end is None else _scaled(end, scale, unit, ns) for end in (low_ns, high_ns))
    value = f"{_scaled(ns, scale, unit, ns)} {unit}"
    return f"{value}\n{low}…{high}" if high else value


def duration_plus_minus(hours: Interval) -> str:
    """``1.71 h ±0.26``, ``4.28 min ±0.69``: of hours, in the unit that fits."""
    return " ".join(filter(None, duration_parts(hours.times(_NS_PER_HOUR))))


def duration_parts(interval_ns: Interval) -> tuple[str, str]:
    """``1.71 h`` and ``±0.26``; ``≥ 1.2 h`` and nothing where there is a lower limit only."""
    value, low, high = interval_ns
    scale, unit = _unit(value)
    if low is not None and high is None:
        return f"≥ {_scaled(low, scale, unit, value)} {unit}", ""
    sure = _sure(interval_ns, *[lambda end: _scaled(end, scale, unit, value)] * 2)
    return f"{_scaled(value, scale, unit, value)} {unit}", sure


def short_duration(ns: float) -> str:
    """As ``duration``, where every column counts: ``612ms``."""
    return duration(ns).replace(" ", "")


def _unit(ns: float) -> tuple[float, str]:
    size = abs(ns)
    found = ((scale, unit) for scale, unit in _SCALES if size >= 0.9995 * scale * _FROM.get(unit, 1.0))
    return next(found, _SCALES[-1])


def _scaled(ns: float, scale: float, unit: str, like: float) -> str:
    decimals = 0 if unit == "ns" else min(DIGITS - 1, _decimals(abs(like) / scale))
    return f"{ns / scale:,.{decimals}f}"


def left_out(cleanups: Sequence[float]) -> str:
    """How much clean-up is not in held, from its shares of it; there is at least one."""
    ends = dict.fromkeys(f"{100 * share:.2g}" for share in (min(cleanups), max(cleanups)))
    return f"Clean-up is left out: {' to '.join(ends)} % of held on top"


def seconds(value: float | None) -> str:
    """Seconds to the nanosecond, without idle zeros: what the long tables can be recomputed from."""
    return NOTHING if value is None else f"{value:.9f}".rstrip("0").rstrip(".")


def usd(value: float | None) -> str:
    """Dollars: cents, from 1,000 on without, below one cent three digits."""
    if value is None:
        return NOTHING
    size = abs(value)
    return f"{value:,.0f}" if size >= 999.5 else f"{value:,.2f}" if size >= 0.995 or not size else number(value)


def between(limits: Between, show: Callable[[float], str]) -> str:
    """What an amount is at least and, on a second line, at most."""
    return f"≥ {show(limits.low)}\n≤ {show(limits.high)}"


def span(interval: Interval | None, show: Callable[[float], str] = number, *, signed: bool = False) -> str:
    """The limits of an interval, "≥" before a lower one that is alone, or nothing; plain numbers as their value is."""
    if interval is None or interval.low is None:
        return ""

    def shown(end: float) -> str:
        return number(end, signed=signed, like=interval.value) if show is number else show(end)

    if interval.high is None:
        return f"≥ {shown(interval.low)}"
    return f"{shown(interval.low)} … {shown(interval.high)}"
