"""Sizes and percentiles as text."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from taxtui.live.histogram import LogHistogram
from taxtui.report.numbers import short_duration

QUANTILES: Final[Mapping[str, float]] = MappingProxyType({"p50": 0.5, "p95": 0.95, "p99": 0.99})
NEEDED: Final[Mapping[str, int]] = MappingProxyType({"p50": 1, "p95": 72, "p99": 368})
"""Least n with an upper confidence limit of the quantile at 95 %: q**n ≤ 0.025. The median needs no limit."""


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
    return f"≈{short_duration(histogram.quantile(QUANTILES[name]))}"
