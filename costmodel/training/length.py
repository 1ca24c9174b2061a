"""Number of actions per trajectory: a number, a range, or the recorded numbers."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from fractions import Fraction
from itertools import accumulate
from typing import Final, NamedTuple, Self

from costmodel.errors import TrainingRunError

FIXED_LENGTH: Final = "fixed"
RECORDED_LENGTH: Final = "recorded"
"""Kind of a cell's length: equal for all trials, or recorded for each trial."""


class Length(NamedTuple):
    """A distribution of numbers of actions, ascending, each with a weight. Equal distributions compare equal."""

    weights: tuple[tuple[int, int], ...]

    @classmethod
    def weighted(cls, weights: Mapping[int, int]) -> Self:
        """Reduce weights by number of actions to the smallest whole weights.

        Raises:
            TrainingRunError: no weight is above 0, or a weight or a length is below 0.
        """
        positive = {actions: weight for actions, weight in weights.items() if weight}
        if not positive or min(positive) < 0 or min(positive.values()) < 0:
            raise TrainingRunError(
                "a distribution of lengths needs a length of at least 0 actions with a weight above 0"
            )
        divisor = math.gcd(*positive.values())
        return cls(tuple((actions, positive[actions] // divisor) for actions in sorted(positive)))

    @classmethod
    def constant(cls, actions: int) -> Self:
        return cls.weighted({actions: 1})

    @classmethod
    def between(cls, low: int, high: int) -> Self:
        """Give equal weight to ``low`` … ``high``, both included. Raises TrainingRunError for an empty range."""
        return cls.weighted(dict.fromkeys(range(low, high + 1), 1))

    @property
    def low(self) -> int:
        return self.weights[0][0]

    @property
    def high(self) -> int:
        return self.weights[-1][0]

    @property
    def mean(self) -> Fraction:
        """Expected number of actions, exact."""
        total = sum(weight for _, weight in self.weights)
        return Fraction(sum(actions * weight for actions, weight in self.weights), total)

    @property
    def actions(self) -> int | float:
        """Number of actions, or the mean of several."""
        return self.low if self.low == self.high else float(self.mean)

    def record(self) -> dict[str, float]:
        return {"shortest_actions": self.low, "longest_actions": self.high, "mean_actions": float(self.mean)}

    def draws(self, count: int) -> list[int]:
        """Return ``count`` ascending lengths: quantiles at the middles of equal shares."""
        edges = list(accumulate(weight for _, weight in self.weights))
        places = ((2 * i + 1) * edges[-1] // (2 * count) for i in range(count))
        return [self.weights[bisect_right(edges, place)][0] for place in places]

    def __str__(self) -> str:
        """Format as ``50``, or as range and mean: ``7-31 avg 14.2``."""
        if self.low == self.high:
            return f"{self.low:,}"
        mean = float(self.mean)
        return f"{self.low:,}-{self.high:,} avg {f'{mean:.3g}' if mean < 100 else f'{mean:,.0f}'}"
