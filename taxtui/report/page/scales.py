"""Ticks of an axis: round numbers in the fitting unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from matplotlib.ticker import MaxNLocator

from taxtui.report.numbers import amount_tick, duration_tick

NS: Final = 1e-9
_UNITS: Final = (1e-9, 1e-6, 1e-3, 1.0, 60.0, 3600.0)
_ROUND: Final = [step * 10**power for power in range(3) for step in (1, 2, 5)]
_CLOCK: Final = [1, 2, 5, 10, 20, 30]
_MOST: Final = 5


class Tick(NamedTuple):
    """A value on an axis and its label."""

    at: float
    label: str


def durations(low_s: float, high_s: float, *, log: bool) -> list[Tick]:
    """Return ticks for times in seconds; ``low_s`` is above 0 on a logarithmic axis."""
    if not log:
        unit_s = next((size for size in reversed(_UNITS) if high_s >= size), _UNITS[0])
        return [Tick(at * unit_s, duration_tick(at * unit_s)) for at in _even(0, high_s / unit_s)]
    values = [at * size for size in _UNITS[:3] for at in _ROUND]
    values += [float(at) for at in _CLOCK] + [60.0 * at for at in _CLOCK] + [3600.0 * at for at in _ROUND]
    return [Tick(at, duration_tick(at)) for at in _within(values, low_s, high_s)]


def amounts(high: float, unit: str = "") -> list[Tick]:
    """Return ticks for hours and dollars from 0 on: 10k, 1M."""
    return [Tick(at, amount_tick(at, unit)) for at in _even(0, high)]


def logarithmic_hours(low: float, high: float) -> list[Tick]:
    """Return ticks for hours above 0 on a logarithmic axis: 200 h, 10k h."""
    values = [float(f"{digit}e{power}") for power in range(-9, 18) for digit in (1, 2, 5)]
    return [Tick(at, f"{amount_tick(at)} h") for at in _within(values, low, high)]


def limits(values: Sequence[float], *, log: bool, room: float = 0.06) -> tuple[float, float]:
    """Return the ends of an axis for all values; a logarithmic axis ignores values of 0."""
    if log:
        values = [value for value in values if value > 0] or [1.0]
    low, high = min(values), max(values)
    if log:
        low, high = (low / 1.5, high * 1.5) if low == high else (low, high)
        share = (high / low) ** room
        return low / share, high * share
    return 0.0, (high or 1.0) * (1 + room)


def _even(low: float, high: float) -> list[float]:
    """Return a few even round values between the ends."""
    locator = MaxNLocator(nbins=_MOST, steps=[1, 2, 2.5, 5, 10])
    return [float(at) for at in locator.tick_values(low, high) if low <= at <= high] or [low]


def _within(values: Sequence[float], low: float, high: float) -> list[float]:
    """Return at most ``_MOST`` values between the ends, or even steps if there are fewer than two."""
    inside = [at for at in values if low <= at <= high]
    if len(inside) < 2:
        return _even(low, high)
    for digits in ("123456789", "15", "1"):
        choice = [at for at in inside if f"{at:e}"[0] in digits]
        if 2 <= len(choice) <= _MOST:
            return choice
    return inside[:: -(-len(inside) // _MOST)]
