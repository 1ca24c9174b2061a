"""Which values of a sample lie far off."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from statistics import median
from typing import Final

OUTLIER_Z: Final = 3.5


def outliers(ascending: Sequence[int]) -> int:
    """How many values have a modified z = 0.6745·|x − median| / MAD above 3.5 (Iglewicz and Hoaglin 1993)."""
    middle = median(ascending)
    distances = sorted(abs(value - middle) for value in ascending)
    limit = OUTLIER_Z * median(distances) / 0.6745
    return len(distances) - bisect_right(distances, limit)
