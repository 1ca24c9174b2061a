"""How many actions the trajectories of a run have: one number, any of a range, or what a recording's trials had."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import accumulate
from typing import Final, NamedTuple, Self

from costmodel.errors import TrainingRunError

FIXED_LENGTH: Final = "fixed"
RECORDED_LENGTH: Final = "recorded"
"""Of a cell: its trials all have the number of actions that it says, or each has one of its own."""


class Length(NamedTuple):
    """A law of lengths: numbers of actions, ascending, each with its weight. Two that say the same are equal."""

    weights: tuple[tuple[int, int], ...]

    @classmethod
    def weighted(cls, weights: Mapping[int, int]) -> Self:
        """Weights by number of actions, reduced to the smallest whole ones.

        Raises:
            TrainingRunError: no weight is above 0, or a weight or a length is below 0.
        """
        kept = {actions: weight for actions, weight in weights.items() if weight}
        if not kept or min(kept) < 0 or min(kept.values()) < 0:
            raise TrainingRunError("a law of lengths needs at least one of 0 or more actions with a weight above 0")
        divisor = math.gcd(*kept.values())
        return cls(tuple((actions, kept[actions] // divisor) for actions in sorted(kept)))

    @classmethod
    def constant(cls, actions: int) -> Self:
        """All trajectories have the same number of actions."""
        return cls.weighted({actions: 1})

    @classmethod
    def between(cls, low: int, high: int) -> Self:
        """Any number from ``low`` to ``high``, both included, is as likely. Raises TrainingRunError: it is empty."""
        return cls.weighted(dict.fromkeys(range(low, high + 1), 1))

    @classmethod
    def of(cls, lengths: Iterable[int]) -> Self:
        """As often as each is seen here. Raises TrainingRunError: there are none."""
        return cls.weighted(Counter(lengths))

    @property
    def low(self) -> int:
        """The shortest."""
        return self.weights[0][0]

    @property
    def high(self) -> int:
        """The longest."""
        return self.weights[-1][0]

    @property
    def mean(self) -> Fraction:
        """The expected number of actions, exactly."""
        total = sum(weight for _, weight in self.weights)
        return Fraction(sum(actions * weight for actions, weight in self.weights), total)

    @property
    def actions(self) -> int | float:
        """The number of actions where there is one; else their mean."""
        return self.low if self.low == self.high else float(self.mean)

    def record(self) -> dict[str, float]:
        """For exports."""
        return {"shortest_actions": self.low, "longest_actions": self.high, "mean_actions": float(self.mean)}

    def draws(self, count: int) -> list[int]:
        """``count`` lengths, ascending, that stand for the law: its quantiles at the middle of equal shares."""
        edges = list(accumulate(weight for _, weight in self.weights))
        places = ((2 * i + 1) * edges[-1] // (2 * count) for i in range(count))
        return [self.weights[bisect_right(edges, place)][0] for place in places]

    def __str__(self) -> str:
        """``50``, or the shortest, the longest and the mean: ``7-31 avg 14.2``."""
        if self.low == self.high:
            return f"{self.low:,}"
        mean = float(self.mean)
        return f"{self.low:,}-{self.high:,} avg {f'{mean:.3g}' if mean < 100 else f'{mean:,.0f}'}"
