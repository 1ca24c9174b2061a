"""Durations, sizes, shares and percentiles as text."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from taxtui.live.histogram import LogHistogram
from taxtui.report.numbers import short_duration

QUANTILES: Final[Mapping[str, float]] = MappingProxyType({"p50": 0.5, "p95": 0.95, "p99": 0.99})
NEEDED: Final[Mapping[str, int]] = MappingProxyType({"p50": 1, "p95": 72, "p99": 368})
"""Least n with an upper confidence limit of the quantile at 95 %: q**n ≤ 0.025. The median needs no limit."""

_SCALES: Final = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def duration(ns: float) -> str:
    """Return a short duration, from a minute on as a clock: ``12.3µs 612ms 1.10s 2m05s 1h02m``."""
    if ns >= 59.95e9:
        return clock(ns, short=True)
    return short_duration(ns)


def tick(ns: float) -> str:
    """Return a round duration without trailing zeros: ``500ms 1.5s 2m 2m30s``."""
    if ns >= 60e9:
        text = clock(ns, short=True)
        return text.removesuffix("00s") if "h" not in text else text.removesuffix("00m")
    scale, unit = next(((s, u) for s, u in _SCALES if ns >= s * 0.9999), (1.0, "ns"))
    return f"{ns / scale:g}{unit}"


def clock(ns: float, *, short: bool = False) -> str:
    """Return ``00:04:12``; ``4m12s`` or ``1h04m`` if ``short``."""
    seconds = round(ns / 1e9)
    minutes, hours = seconds // 60, seconds // 3600
    if not short:
        return f"{hours:02}:{minutes % 60:02}:{seconds % 60:02}"
    if hours:
        return f"{hours}h{minutes % 60:02}m"
    return f"{minutes}m{seconds % 60:02}s" if minutes else f"{seconds}s"


def size(octets: int) -> str:
    """Return ``640 B`` or ``1.2 MB``, in powers of ten."""
    value, unit = float(octets), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def percentile(histogram: LogHistogram, name: str) -> str:
    """Return ``≈612ms``; ``n≥72`` if too few values support the number; ``–`` without values."""
    if not histogram.n:
        return "–"
    if histogram.n < NEEDED[name]:
        return f"n≥{NEEDED[name]}"
    return f"≈{duration(histogram.quantile(QUANTILES[name]))}"


def ticks(low_ns: float, high_ns: float, columns: int, spacing: int) -> list[float]:
    """Round values on a logarithmic axis, as many as fit with their labels at least ``spacing`` columns apart."""
    if columns < spacing or not 0 < low_ns < high_ns:
        return []
    best: list[float] = []
    for values in (*_mantissas(low_ns, high_ns), *_steps(low_ns, high_ns)):
        fitting = [v for v in values if column(v, low_ns, high_ns, columns) + len(tick(v)) < columns]
        room = max([spacing, *(len(tick(v)) + 2 for v in fitting)])
        if len(fitting) > len(best) and _spacing(fitting, low_ns, high_ns, columns) >= room:
            best = fitting
    return best


def column(ns: float, low_ns: float, high_ns: float, columns: int) -> int:
    """Return the column of a value on a logarithmic axis; outside 0..columns−1 for values beyond the axis."""
    place = math.floor(math.log(max(ns, 1) / low_ns) / math.log(high_ns / low_ns) * columns)
    return min(place, columns - 1) if ns <= high_ns else columns


def _mantissas(low_ns: float, high_ns: float) -> list[list[float]]:
    """Return 1, 2, 5 and the like in every decade, for a wide axis."""
    decades = range(math.floor(math.log10(low_ns)), math.ceil(math.log10(high_ns)) + 1)
    choices: list[tuple[float, ...]] = [(1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)]
    return [[v for d in decades for m in choice if low_ns <= (v := m * 10.0**d) <= high_ns] for choice in choices]


def _steps(low_ns: float, high_ns: float) -> list[list[float]]:
    """Return multiples of a round step, for an axis of less than a decade."""
    magnitude = 10.0 ** math.floor(math.log10(high_ns - low_ns))
    stops = []
    for step in (magnitude * 5, magnitude * 2, magnitude, magnitude / 2, magnitude / 5, magnitude / 10):
        first = math.ceil(low_ns / step)
        stops.append([n * step for n in range(first, min(first + 40, math.floor(high_ns / step) + 1)) if n])
    return stops


def _spacing(values: list[float], low_ns: float, high_ns: float, columns: int) -> int:
    """Return the least distance in columns between neighbours; the whole axis for a single value."""
    places = [column(value, low_ns, high_ns, columns) for value in values]
    return min((b - a for a, b in itertools.pairwise(places)), default=columns)
