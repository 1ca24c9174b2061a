"""What a sample of clustered values is worth, and which of its values lie far off."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import median
from typing import Final

from costmodel.uncertainty import MIN_CLUSTERS, student_t

OUTLIER_Z: Final = 3.5


def effective_count(values: Sequence[int], sizes: Sequence[int], at: int) -> int:
    """How many independent values a sample is worth at its quantile ``at``, if its values come in clusters.

    A trial's actions are a cluster; ``sizes`` are theirs, in the order of ``values``. The variance between clusters
    of the share that is not above ``at`` is compared with the binomial one, and few clusters are paid for through
    Student's t (Korn and Graubard, Survey Methodology 24, 1998). Fewer than three count as one value each.
    """
    count, clusters = len(values), len(sizes)
    if clusters < MIN_CLUSTERS:
        return clusters
    ends = pairwise(accumulate(sizes, initial=0))
    below = [sum(map(at.__ge__, values[start:end])) for start, end in ends]
    share = sum(below) / count
    spread = math.fsum((hits - share * size) ** 2 for hits, size in zip(below, sizes, strict=True))
    variance = clusters / (clusters - 1) * spread / count**2
    if variance == 0:
        return count
    price = student_t(count - 1) / student_t(clusters - 1)
    return max(1, min(count, math.floor(share * (1 - share) / variance * price**2)))


def outliers(ascending: Sequence[int]) -> int:
    """How many values have a modified z = 0.6745·|x − median| / MAD above 3.5 (Iglewicz and Hoaglin 1993)."""
    middle = median(ascending)
    distances = sorted(abs(value - middle) for value in ascending)
    limit = OUTLIER_Z * median(distances) / 0.6745
    return len(distances) - bisect_right(distances, limit)
