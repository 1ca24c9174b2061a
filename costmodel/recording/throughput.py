"""Trials per second at a concurrency, from the start of each trial and the release of its slot.

Slots fill together and empty together. Only the time with all slots taken counts: from a block's first start to its
last start.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple, Self

ROUNDS: Final = 3
"""Trials per slot below which a block counts from its first start to its last end."""


class Rate(NamedTuple):
    """Successes in a span of time, of one block on one worker or of several; ``lanes``: the most trials in flight."""

    successes: float
    ns: float
    lanes: int = 0

    @property
    def per_s(self) -> float:
        return self.successes / self.ns * 1e9 if self.ns else 0.0

    @classmethod
    def of(cls, trials: Sequence[tuple[int, int, bool]]) -> Self:
        """Count trials, each as (start, release of the slot, success): at equal instants ends come before starts.

        The span is the time with all slots taken, or the whole block with too few rounds.
        """
        changes = sorted((at_ns, change) for start, end, _ in trials for at_ns, change in ((start, 1), (end, -1)))
        lanes = max(accumulate(change for _, change in changes))
        first, last = min(start for start, _, _ in trials), max(start for start, _, _ in trials)
        if len(trials) < ROUNDS * lanes or len(trials) <= lanes:
            last = max(end for _, end, _ in trials)
        return cls(sum(ok and end <= last for _, end, ok in trials), last - first, lanes)


def together(workers: Sequence[Rate], concurrency: int) -> Rate:
    """Combine the workers of a block: rates add up, or spans if a worker used all slots alone."""
    if sum(worker.lanes for worker in workers) > concurrency:
        return summed(workers)
    ns = sum(worker.ns for worker in workers) / len(workers)
    return Rate(sum(worker.successes * ns / worker.ns for worker in workers if worker.ns), ns)


def summed(rates: Sequence[Rate]) -> Rate:
    """Add spans in sequence."""
    return Rate(sum(rate.successes for rate in rates), sum(rate.ns for rate in rates))
