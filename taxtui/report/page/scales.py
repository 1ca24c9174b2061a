"""Ticks of an axis: round numbers in the unit that fits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from taxtui.report.numbers import amount_tick, duration_tick

NS: Final = 1e-9
_UNITS: Final = ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s"), (60.0, "min"), (3600.0, "h"))
_ROUND: Final = [step * 10**power for power in range(3) for step in (1, 2, 5)]
_CLOCK: Final = [1, 2, 5, 10, 20, 30]
_MOST: Final = 5


class Tick(NamedTuple):
    """A place on an axis and its words."""

    at: float
    label: str


def durations(low_s: float, high_s: float, *, log: bool) -> list[Tick]:
    """Ticks for times in seconds; ``low_s`` is above 0 where the axis is logarithmic."""
    if not log:
        unit_s = next((size for size, _ in reversed(_UNITS) if high_s >= size), _UNITS[0][0])
        return [Tick(at * unit_s, duration_tick(at * unit_s)) for at in _even(high_s / unit_s)]
    places = [at * size for size, name in _UNITS[:3] for at in _ROUND]
    places += [float(at) for at in _CLOCK] + [60.0 * at for at in _CLOCK] + [3600.0 * at for at in _ROUND]
    return [Tick(at, duration_tick(at)) for at in _within(places, low_s, high_s)]


def amounts(low: float, high: float, *, log: bool, unit: str = "") -> list[Tick]:
    """Ticks for counts, hours and dollars: 10k, 1M."""
    if not log:
        return [Tick(at, amount_tick(at, unit)) for at in _even(high)]
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    places = [step * 10.0**power for power in powers for step in (1, 2, 5)]
    return [Tick(at, amount_tick(at, unit)) for at in _within(places, low, high)]


def limits(values: Sequence[float], *, log: bool, room: float = 0.06) -> tuple[float, float]:
    """The ends of an axis that holds all the values; a logarithmic one those above 0."""
    if log:
        values = [value for value in values if value > 0] or [1.0]
    low, high = min(values), max(values)
    if log:
        low, high = (low / 1.5, high * 1.5) if low == high else (low, high)
        share = (high / low) ** room
        return low / share, high * share
    return 0.0, (high or 1.0) * (1 + room)


def _even(high: float) -> list[float]:
    """From 0 on, at most ``_MOST`` steps of a round size."""
    if high <= 0 or not math.isfinite(high):
        return [0.0]
    rough = high / _MOST
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power >= rough * 0.999)
    return [step * number for number in range(int(high / step * 1.0001) + 1)]


def _within(places: Sequence[float], low: float, high: float) -> list[float]:
    """Return the places between the ends, at most ``_MOST``; round steps instead where there are fewer than two."""
    inside = [at for at in places if low * (1 - 1e-9) <= at <= high * (1 + 1e-9)]
    result = next(
        (kept for first in ("125", "15", "1") if len(kept := _beginning(inside, first)) in range(2, _MOST + 1)),
        _thinned(inside, low, high),
    )
    if len(result) > 1:
        return result
    (_, step, *_) = _even((high - low) * 1.2)
    first = math.ceil(low / step)
    return [step * number for number in range(first, math.floor(high / step) + 1)][:_MOST]


def _beginning(places: Sequence[float], digits: str) -> list[float]:
    """Return the places whose first digit is one of these digits."""
    return [at for at in places if digits == "125" or f"{at:e}"[0] in digits]


def _thinned(places: list[float], low: float, high: float) -> list[float]:
    """At most ``_MOST``, about evenly spaced on a logarithmic axis."""
    if len(places) <= _MOST:
        return places
    apart = math.log(high / low) / _MOST
    kept: list[float] = []
    for at in places:
        if not kept or math.log(at / kept[-1]) >= apart * 0.8:
            kept.append(at)
    return kept
