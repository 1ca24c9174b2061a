"""Nanoseconds in longer units."""

from __future__ import annotations

from typing import Final

MAX_INT: Final = (1 << 63) - 1

NS_PER_S: Final = 1e9
NS_PER_HOUR: Final = 3_600_000_000_000
"""Whole, so that sums over trials stay exact."""
