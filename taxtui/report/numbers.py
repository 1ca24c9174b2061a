"""Formatting of numbers for people: amounts, durations, dollars, shares and intervals.

A value has three digits, or all before the point, and never more decimals than its interval supports. A table prints
``187 ±14``, or ``254 (101–528)`` where one limit is much farther away. A sentence prints ``175–201``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from costmodel import Interval

if TYPE_CHECKING:
    from costmodel import Attribution, Share

NOTHING: Final = "–"
UNSPLIT: Final = (
    "unsplit: commands whose time inside the sandbox is unknown, so dispatch and command time are one number. The "
    "lower limit of the tax counts all unsplit time as command time, except the dispatch of --reference RECORDING. The "
    "upper limit counts none."
)
"""Note under a table with unsplit commands."""
WRAPPER: Final = (
    "wrapper: taxtui's own shell code around each command, inside the sandbox: neither dispatch nor tax. Recordings "
    "without wrapper time count it as dispatch."
)
"""Note under a table with wrapper time."""

CLOSED_LOOP: Final = (
    "closed loop: a trial starts when another has ended, so a stall delays later starts without a trace; "
    "--arrival open:20/s measures response times from the scheduled starts"
)
"""Limit of a measurement without scheduled starts."""

NS: Final = "ns"
TIMES: Final = "x"
DOLLARS: Final = "$"
SHARE: Final = "%"
COUNT: Final = "n"
SHORT: Final = "k"
"""Units: nanoseconds, a ratio, dollars, a share of 1, a count, and an amount with k, M or B."""

DIGITS: Final = 3
LOPSIDED: Final = 2.0
_MOST_PLACES: Final = 6
_SAME: Final = 1e-9
"""Smaller intervals, as a share of the value, are not printed."""
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
"""Unit → the smallest amount with this unit, if not 1: 119 s are printed in seconds."""


def number(value: float | None, *, signed: bool = False, like: float | None = None) -> str:
    """Three digits, or all before the point: ``2,425 855 36.4 0.0713 0``; 4.45e+12 from 1e9 on.

    ``like``: another number with the wanted number of decimals.
    """
    if value is None:
        return NOTHING
    sign, size = "+" if signed else "", abs(value if like is None else like)
    if size >= _LARGE or 0 < size < _SMALL:
        return f"{value:{sign}.3g}" if size < _SMALL else f"{value:{sign}.3e}"
    return f"{value:{sign},.{_decimals(size)}f}" if value or like else "0"


def _decimals(size: float) -> int:
    if not size:
        return 0
    rounded = float(f"{size:.{DIGITS - 1}e}")
    return max(0, DIGITS - 1 - math.floor(math.log10(rounded)))


def parts(interval: Interval, *, unit: str = "", signed: bool = False) -> tuple[str, str]:
    """Return ``855`` and ``±121``, both with the decimals that the interval supports.

    The second part is ``(101–528)`` where one limit is twice as far away as the other, or ± would reach below 0.
    With a lower limit only, the parts are ``≥ 742`` and "". The unit follows the value.
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
    if unit in (NS, SHORT):
        scales = _TIMES if unit == NS else _LETTERS
        fitting = (pair for pair in scales if abs(value) >= 0.9995 * pair[0] * _LEAST.get(pair[1], 1.0))
        return next(fitting, scales[-1])
    if unit == SHARE:
        return 0.01, " %"
    return 1.0, TIMES if unit == TIMES else ""


def _places(value: float, unit: str, suffix: str, far: float | None) -> int:
    """Return the decimals of a scaled value: at most two digits of ``far``, the distance to the farther limit."""
    if unit == COUNT or suffix == " ns":
        return 0
    size = abs(value)
    if unit == SHARE:
        decimals = 0 if size >= 9.95 or not size else max(1, 1 - math.floor(math.log10(size)))
    else:
        decimals = min(DIGITS - 1, _decimals(size)) if unit in (NS, SHORT) else _decimals(size)
    if far and far > _SAME * size:
        decimals = min(decimals, max(0, 1 - math.floor(math.log10(far))))
        if not round(far, decimals):  # 1.0057x ±0.0001: an interval is never printed as ±0.00
            decimals = min(_MOST_PLACES, -math.floor(math.log10(far)))
    return decimals


def plus_minus(interval: Interval | None, *, unit: str = "", signed: bool = False) -> str:
    """Return a value with its interval: ``855 ±121``, ``254 (101–528)``, ``≥ 742``, ``3.48x ±0.12``."""
    return NOTHING if interval is None else " ".join(filter(None, parts(interval, unit=unit, signed=signed)))


def percent(share: float) -> str:
    """Return a share of 1 with two digits: ``92 %``, ``3.1 %``."""
    return parts(Interval(share), unit=SHARE)[0]


def duration(ns: float) -> str:
    """Return ``612 ms``."""
    return parts(Interval(ns), unit=NS)[0]


def short_duration(ns: float) -> str:
    """Return a duration without a space: ``612ms``."""
    return duration(ns).replace(" ", "")


def rough_duration(ns: float) -> str:
    """Return an estimated duration: ``40 s``, ``22 min``, ``1 h 20 min``."""
    seconds = ns / 1e9
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60:,} h {minutes % 60} min"


def stopwatch(seconds: float) -> str:
    """Return an elapsed time: ``1:07``, ``1:02:33``."""
    minutes, rest = divmod(round(seconds), 60)
    full, minutes = divmod(minutes, 60)
    return f"{full}:{minutes:02}:{rest:02}" if full else f"{minutes}:{rest:02}"


def duration_tick(seconds: float) -> str:
    """Return the label of a round duration on an axis: ``500 ms``, ``1.5 s``, ``0``."""
    if not seconds:
        return "0"
    size, suffix = next((pair for pair in _TIMES[1:] if seconds * 1e9 >= 0.9999 * pair[0]), _TIMES[-1])
    return f"{seconds * 1e9 / size:g}{suffix}"


def amount_tick(value: float, sign: str = "") -> str:
    """Return the label of a round amount on an axis: ``20k``, ``$1.5M``."""
    size, letter = next((pair for pair in _LETTERS if abs(value) >= pair[0]), _LETTERS[-1])
    return f"{sign}{value / size:g}{letter}"


def compact(amount: float) -> str:
    """Return an amount with three digits: ``3.10``, ``347``, ``91.0k``, ``1.27M``."""
    return parts(Interval(amount), unit=SHORT)[0] if amount else "0"


def money(amount: float) -> str:
    """Return dollars with three digits: ``$347``, ``$91.0k``, ``-$3.10``; ``<$0.01``."""
    if 0 < abs(amount) < 0.01:
        return "<$0.01"
    return f"-${compact(-amount)}" if amount < 0 else f"${compact(amount)}"


def dollars(amount: float) -> str:
    """Return a bill, to the cent below $1,000: ``$0``, ``<$0.01``, ``$1.84``, ``$1,840``."""
    if 0 < amount < 0.01:
        return "<$0.01"
    return f"${amount:,.{0 if amount >= 1000 else 2}f}" if amount else "$0"


def exact(value: float) -> str:
    """Return nine digits, enough to repeat a derivation."""
    return f"{value:,.9g}" if abs(value) < _LARGE else f"{value:.9g}"


def seconds(value: float | None) -> str:
    """Return seconds to the nanosecond, without trailing zeros."""
    return NOTHING if value is None else f"{value:.9f}".rstrip("0").rstrip(".")


def span(interval: Interval | None, show: Callable[[float], str] = number, *, signed: bool = False) -> str:
    """Return the limits for a sentence: ``175–201``, or ``≥ 175`` for a lower limit alone; "" without limits."""
    if interval is None or interval.low is None:
        return ""

    value, low, high = interval.value, interval.low, interval.high
    far = None if high is None else max(value - low, high - value)

    def format_limit(limit: float) -> str:
        if show is not number or not _SMALL <= abs(value) < _LARGE:
            return show(limit)
        return f"{limit:{'+' if signed else ''},.{_places(value, '', '', far)}f}"

    return f"≥ {format_limit(low)}" if high is None else _joined(format_limit(low), format_limit(high))


def _joined(low: str, high: str) -> str:
    """Return ``175–201``; ``-13 to 38`` because a dash before a minus would mislead."""
    return f"{low} to {high}" if low.startswith("-") else f"{low}–{high}"


def left_out(cleanups: Sequence[float]) -> str:
    """Return the note about clean-up outside of occupied time, from its shares of occupied time (one or more)."""
    ends = dict.fromkeys(f"{100 * share:.2g}" for share in (min(cleanups), max(cleanups)))
    return f"Clean-up is left out: {' to '.join(ends)} % of the occupied time on top"


class CostUnit(NamedTuple):
    """Unit of a training run's costs: dollars with prices, else worker-hours."""

    usd: bool

    @property
    def name(self) -> str:
        return "$" if self.usd else "worker-hours"

    def of(self, share: Share) -> Interval:
        return share.usd if self.usd and share.usd is not None else share.worker_hours

    def format(self, amount: float) -> str:
        return money(amount) if self.usd else f"{compact(amount)} worker-hours"


def unit_of(attribution: Attribution) -> CostUnit:
    """Return the unit of an attribution."""
    return CostUnit(usd=attribution.run.usd is not None)
