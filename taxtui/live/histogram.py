"""A histogram of durations in constant memory: 32 buckets per octave, so any quantile is within 1.6 %.

As in HdrHistogram (http://hdrhistogram.org), leading bits and magnitude of a value are the bucket.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

SUB_BITS: Final = 5
"""2**5 buckets per octave; below 2**6 ns each bucket has one value."""


def bucket(value: int) -> int:
    """Return the bucket of a value ≥ 0; consecutive and monotone in the value."""
    shift = value.bit_length() - SUB_BITS - 1
    return value if shift < 0 else (shift << SUB_BITS) + (value >> shift)


def lower(index: int) -> int:
    """Return the smallest value of a bucket, which ends before ``lower(i + 1)``."""
    if index < 2 << SUB_BITS:
        return index
    shift = (index >> SUB_BITS) - 1
    return ((index & ((1 << SUB_BITS) - 1)) + (1 << SUB_BITS)) << shift


@dataclass(slots=True)
class LogHistogram:
    """Counts of durations in ns in at most 1,920 buckets; exact count, sum, shortest and longest."""

    counts: dict[int, int] = field(default_factory=dict)
    n: int = 0
    total: int = 0
    shortest: int = 0
    longest: int = 0

    def add(self, values: Sequence[int]) -> None:
        """Count values in ns; negative values, of a clock set back, count as 0."""
        if not values:
            return
        values = [max(0, value) for value in values]
        lowest, longest = min(values), max(values)
        for index in map(bucket, values):
            self.counts[index] = self.counts.get(index, 0) + 1
        self.shortest = min(self.shortest, lowest) if self.n else lowest
        self.longest = max(self.longest, longest)
        self.n += len(values)
        self.total += sum(values)

    @property
    def mean(self) -> float:
        return self.total / self.n if self.n else 0.0

    def quantile(self, q: float) -> int:
        """Return the middle of the bucket at rank ⌈q·n⌉ in ns; 0 when empty."""
        if not self.n:
            return 0
        rank = max(1, math.ceil(q * self.n))
        indices = sorted(self.counts)
        for index, reached in zip(indices, accumulate(self.counts[i] for i in indices), strict=True):
            if reached >= rank:
                middle = (lower(index) + lower(index + 1) - 1) // 2
                return min(max(middle, self.shortest), self.longest)
        raise AssertionError("the counts add up to n")

    def columns(self, number: int, low_ns: float, high_ns: float) -> list[float]:
        """Return the counts in ``number`` columns of equal width in log(value) over [low, high].

        A bucket across several columns is shared by area, else narrow columns would show a comb.
        Values outside are left out; 0 counts as 1 ns.
        """
        start = math.log(max(low_ns, 1))
        width = (math.log(max(high_ns, 1)) - start) / number
        shares = [0.0] * number

        def position(value: int) -> float:
            inside = min(max(value, self.shortest, 1), max(self.longest, 1))
            return (math.log(inside) - start) / width if width > 0 else 0.0

        for index, count in self.counts.items():
            first, last = position(lower(index)), position(lower(index + 1))
            if last - first < 1e-9:  # a single value: one column
                if -1e-9 <= first <= number + 1e-9:
                    shares[min(max(int(first), 0), number - 1)] += count
                continue
            for column in range(max(0, math.floor(first)), min(number, math.ceil(last))):
                shares[column] += count / (last - first) * (min(column + 1, last) - max(column, first))
        return shares
