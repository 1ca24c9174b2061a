"""Empirical distributions of job durations, which makespan formulas and simulations draw from."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate

from costmodel.errors import TrainingRunError


class Distribution:
    """Distinct durations (int ns, ascending) with the number of times each was seen; immutable by convention."""

    __slots__ = ("counts", "cumulative", "mean", "sd", "second_moment", "size", "total", "trials", "values")

    def __init__(self, weights: Mapping[int, int], trials: int | None = None) -> None:
        """``weights`` by duration; ``trials``: independent trials behind them, by default the total weight.

        Raises:
            TrainingRunError: there is no duration, or one is negative.
        """
        self.values = sorted(value for value, weight in weights.items() if weight)
        if not self.values or self.values[0] < 0:
            raise TrainingRunError("a law needs at least one duration, and none below 0")
        self.counts = [weights[value] for value in self.values]
        self.cumulative = list(accumulate(self.counts))
        self.size = self.cumulative[-1]
        self.trials = self.size if trials is None else trials
        self.total = sum(value * count for value, count in zip(self.values, self.counts, strict=True))
        squares = sum(value * value * count for value, count in zip(self.values, self.counts, strict=True))
        self.mean = self.total / self.size
        self.second_moment = squares / self.size
        self.sd = math.sqrt((self.size * squares - self.total**2) / self.size**2)  # int difference: no cancellation

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Distribution):
            return NotImplemented
        return self.trials == other.trials and self.values == other.values and self.counts == other.counts

    def __hash__(self) -> int:
        return hash((self.trials, self.size, self.total, self.second_moment))

    @classmethod
    def of(cls, sample: Iterable[float]) -> Distribution:
        """Count the durations of a sample, rounded to whole ns.

        Raises:
            TrainingRunError: the sample is empty, or contains a negative number, NaN or infinity.
        """
        durations = list(sample)
        if not all(map(math.isfinite, durations)):
            raise TrainingRunError("a duration is NaN or infinite")
        return cls(Counter(map(round, durations)))

    def scaled(self, numerator: int, denominator: int) -> Distribution:
        """Multiply each duration by ``numerator / denominator``, rounded to whole ns."""
        weights: Counter[int] = Counter()
        for value, count in zip(self.values, self.counts, strict=True):
            weights[(2 * value * numerator + denominator) // (2 * denominator)] += count
        return Distribution(weights, self.trials)

    def quantile(self, share: float) -> int:
        """Return the smallest duration that more than ``share`` of the jobs do not exceed; ``share`` is below 1."""
        return self.values[bisect_right(self.cumulative, share * self.size)]
