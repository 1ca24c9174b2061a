"""The one formatter of numbers for people: amounts, durations, dollars, shares and intervals.

A value has three digits, or all before the point, and never more decimals than its interval supports. A table prints an
interval as ``187 ±14``, and as ``254 (101–528)`` where one limit is much farther away; a sentence prints ``175–201``.
CSV, JSON and ``--explain`` have every digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from costmodel import Between, Interval

NOTHING: Final = "–"
UNSPLIT: Final = (
    "unsplit: commands whose time inside the sandbox is unknown, so dispatch and command time are one number. The tax "
    "is at least its value if all of that were command time (less the dispatch of --reference RECORDING, where given), "
    "and at most its value if none were."
)
"""The note under a table that has such commands."""
WRAPPER: Final = (
    "wrapper: taxtui's own shell code around each command, inside the sandbox: neither dispatch nor tax. Recordings "
    "without wrapper time count it as dispatch."
)
"""The note under a table that has wrapper time."""

CLOSED_LOOP: Final = (
    "closed loop: a trial starts when another has ended, so a stall delays starts that no number shows; "
    "--arrival open:20/s measures response times from when each trial was due"
)
"""The limit of a measurement whose trials have no schedule."""

NS: Final = "ns"
TIMES: Final = "x"
DOLLARS: Final = "$"
SHARE: Final = "%"
COUNT: Final = "n"
SHORT: Final = "k"
"""Units: nanoseconds, a ratio, dollars, a share of 1, a count, and an amount that is printed with k, M or B."""

DIGITS: Final = 3
LOPSIDED: Final = 2.0
_MOST_PLACES: Final = 6
_SAME: Final = 1e-9
"""Share of a value below which its interval is no interval."""
_LARGE: Final = 1e9
_SMALL: Final = 1e-4
_NS_PER_HOUR: Final = 3_600e9
_TIMES: Final = (
    (86_400e9, " days"),
    (_NS_PER_HOUR, " h"),
    (60e9, " min"),
    (1e9, " s"),
    (1e6, " ms"),
    (1e3, " µs"),
    (1.0, " ns"),
)
_LETTERS: Final = ((1e9, "B"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_LEAST: Final = {" days": 2.0, " h": 2.0, " min": 2.0}
"""Unit → the amount from which it is used, where that is not 1: 119 s are printed in seconds."""


def number(value: float | None, *, signed: bool = False, like: float | None = None) -> str:
    """Three digits, or all before the point: ``2,425 855 36.4 0.0713 0``; 4.45e+12 from 1e9 on.

    ``like`` is another number, whose decimal place is used.
    """
    if value is None:
        return NOTHING
    sign, size = "+" if signed else "", abs(value if like is None else like)
    if size >= _LARGE or 0 < size < _SMALL:
        return f"{value:{sign}.3g}" if size < _SMALL else f"{value:{sign}.3e}"
    return f"{value:{sign},.{_decimals(size)}f}" if value or like else "0"


hours = clock = rounded_seconds = number
"""Worker-hours, hours of wall-clock, and seconds: the head of a column names the unit."""


def _decimals(size: float) -> int:
    """Decimals that show three digits after rounding; none for 0."""
    if not size:
        return 0
    rounded = float(f"{size:.{DIGITS - 1}e}")
    return max(0, DIGITS - 1 - math.floor(math.log10(rounded)))


def parts(interval: Interval, *, unit: str = "", signed: bool = False) -> tuple[str, str]:
    """Return ``855`` and ``±121``, both with the decimals that the interval supports.

    Both limits, ``(101–528)``, where one is twice as far away as the other, or ± would reach below 0. ``≥ 742`` and
    nothing where there is a lower limit only. The unit follows the value.
    """
    size, suffix = _scale(interval.value, unit)
    value, low, high = (None if amount is None else amount / size for amount in interval)
    assert value is not None
    far = None if low is None or high is None else max(value - low, high - value)
    plain = unit not in (NS, SHORT, SHARE, COUNT) and not (0 < abs(value) < _SMALL or abs(value) >= _LARGE)
    decimals = _places(value, unit, suffix, far)

    def show(amount: float, *, sign: bool = False) -> str:
        if plain or unit:
            return f"{amount:{'+' if sign else ''},.{decimals}f}" if amount or value or unit == NS else "0"
        return number(amount, signed=sign, like=value)

    if low is not None and high is None:
        return f"≥ {show(low)}{suffix}", ""
    text = f"{show(value, sign=signed)}{suffix}"
    if low is None or high is None or far is None or far <= _SAME * abs(value):
        return text, ""
    near = min(value - low, high - value)
    if far > LOPSIDED * near or (low >= 0 and value <= high - value):
        return text, f"({_joined(show(low, sign=signed), show(high, sign=signed))})"
    return text, f"±{show(far)}"


def _scale(value: float, unit: str) -> tuple[float, str]:
    """The amount that one of the printed units is, and its name."""
    if unit in (NS, SHORT):
        scales = _TIMES if unit == NS else _LETTERS
        fitting = (pair for pair in scales if abs(value) >= 0.9995 * pair[0] * _LEAST.get(pair[1], 1.0))
        return next(fitting, scales[-1])
    if unit == SHARE:
        return 0.01, " %"
    return 1.0, TIMES if unit == TIMES else ""


def _places(value: float, unit: str, suffix: str, far: float | None) -> int:
    """Decimals of a scaled value; at most two digits of the distance ``far`` to its farther limit."""
    if unit == COUNT or suffix == " ns":
        return 0
    size = abs(value)
    if unit == SHARE:
        most = 0 if size >= 9.95 or not size else max(1, 1 - math.floor(math.log10(size)))
    else:
        most = min(DIGITS - 1, _decimals(size)) if unit in (NS, SHORT) else _decimals(size)
    if far and far > _SAME * size:
        most = min(most, max(0, 1 - math.floor(math.log10(far))))
        if not round(far, most):  # 1.0057x ±0.0001: an interval is never printed as ±0.00
            most = min(_MOST_PLACES, -math.floor(math.log10(far)))
    return most


def plus_minus(interval: Interval | None, *, unit: str = "") -> str:
    """``855 ±121``, ``254 (101–528)``, ``≥ 742``, ``3.48x ±0.12``: value and interval on one line."""
    return NOTHING if interval is None else " ".join(filter(None, parts(interval, unit=unit)))


def stacked(interval: Interval | None, *, unit: str = "", signed: bool = False) -> str:
    """As ``plus_minus``, the interval on a second line: ``0.116`` and below it ``±0.018``."""
    return NOTHING if interval is None else "\n".join(filter(None, parts(interval, unit=unit, signed=signed)))


def percent(share: float) -> str:
    """``92 %``, ``3.1 %``: two digits of a share of 1."""
    return parts(Interval(share), unit=SHARE)[0]


def duration(ns: float, low_ns: float | None = None, high_ns: float | None = None) -> str:
    """``612 ms`` to three digits and, on a second line, its interval in the same unit: ``598–640``."""
    text = parts(Interval(ns), unit=NS)[0]
    if low_ns is None or high_ns is None:
        return text
    size, suffix = _scale(ns, NS)
    decimals = _places(ns / size, NS, suffix, None)
    return f"{text}\n{_joined(*(f'{end / size:,.{decimals}f}' for end in (low_ns, high_ns)))}"


def short_duration(ns: float) -> str:
    """As ``duration``, where every column counts: ``612ms``."""
    return duration(ns).replace(" ", "")


def rough_duration(ns: float) -> str:
    """``40 s``, ``22 min``, ``1 h 20 min``: as exact as an estimate deserves."""
    seconds = ns / 1e9
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60:,} h {minutes % 60} min"


def stopwatch(seconds: float) -> str:
    """``1:07``, ``1:02:33``: the time that a measurement has taken."""
    minutes, rest = divmod(round(seconds), 60)
    full, minutes = divmod(minutes, 60)
    return f"{full}:{minutes:02}:{rest:02}" if full else f"{minutes}:{rest:02}"


def duration_tick(seconds: float) -> str:
    """A round duration beside an axis: ``500 ms``, ``1.5 s``, ``0``."""
    if not seconds:
        return "0"
    size, suffix = next((pair for pair in _TIMES[1:] if seconds * 1e9 >= 0.9999 * pair[0]), _TIMES[-1])
    return f"{seconds * 1e9 / size:g}{suffix}"


def amount_tick(value: float, sign: str = "") -> str:
    """A round amount beside an axis: ``20k``, ``$1.5M``."""
    size, letter = next((pair for pair in _LETTERS if abs(value) >= pair[0]), _LETTERS[-1])
    return f"{sign}{value / size:g}{letter}"


def compact(amount: float) -> str:
    """Three digits: ``3.10``, ``347``, ``91.0k``, ``1.27M``."""
    return parts(Interval(amount), unit=SHORT)[0] if amount else "0"


def money(amount: float) -> str:
    """Dollars to three digits: ``$347``, ``$91.0k``, ``-$3.10``; ``<$0.01``."""
    if 0 < abs(amount) < 0.01:
        return "<$0.01"
    return f"-${compact(-amount)}" if amount < 0 else f"${compact(amount)}"


def dollars(amount: float) -> str:
    """A bill, to the cent below $1,000: ``$0``, ``<$0.01``, ``$1.84``, ``$1,840``."""
    if 0 < amount < 0.01:
        return "<$0.01"
    return f"${amount:,.{0 if amount >= 1000 else 2}f}" if amount else "$0"


def usd(value: float | None) -> str:
    """Dollars in a column: cents, from 1,000 on without, below one cent three digits."""
    if value is None:
        return NOTHING
    size = abs(value)
    return f"{value:,.0f}" if size >= 999.5 else f"{value:,.2f}" if size >= 0.995 or not size else number(value)


def exact(value: float) -> str:
    """Nine digits, which a derivation can be computed again from."""
    return f"{value:,.9g}" if abs(value) < _LARGE else f"{value:.9g}"


def seconds(value: float | None) -> str:
    """Seconds to the nanosecond, without trailing zeros."""
    return NOTHING if value is None else f"{value:.9f}".rstrip("0").rstrip(".")


def between(limits: Between, show: Callable[[float], str]) -> str:
    """The lower limit of an amount and, on a second line, the upper one."""
    return f"≥ {show(limits.low)}\n≤ {show(limits.high)}"


def span(interval: Interval | None, show: Callable[[float], str] = number, *, signed: bool = False) -> str:
    """The limits in a sentence, ``175–201``; ``≥ 175`` where there is a lower one only; nothing without limits."""
    if interval is None or interval.low is None:
        return ""

    value, low, high = interval.value, interval.low, interval.high
    far = None if high is None else max(value - low, high - value)

    def shown(end: float) -> str:
        if show is not number or not _SMALL <= abs(value) < _LARGE:
            return show(end)
        return f"{end:{'+' if signed else ''},.{_places(value, '', '', far)}f}"

    return f"≥ {shown(low)}" if high is None else _joined(shown(low), shown(high))


def _joined(low: str, high: str) -> str:
    """``175–201``; ``-13 to 38`` where a dash beside a minus would mislead."""
    return f"{low} to {high}" if low.startswith("-") else f"{low}–{high}"


def left_out(cleanups: Sequence[float]) -> str:
    """The clean-up that is no part of occupied time, from its shares of it; there is at least one."""
    ends = dict.fromkeys(f"{100 * share:.2g}" for share in (min(cleanups), max(cleanups)))
    return f"Clean-up is left out: {' to '.join(ends)} % of the occupied time on top"
