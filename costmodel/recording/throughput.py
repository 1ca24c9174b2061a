"""Trials per second at a concurrency, from the start of each trial and the release of its slot.

Slots fill together and empty together. Only the time with all slots taken counts: from a block's first start to its
last start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final, NamedTuple, Self

ROUNDS: Final = 3
"""Trials per slot below which a block counts from its first start to its last end."""


class RateSpan(NamedTuple):
    """Successes and their time span."""

    successes: float
    ns: float

    @property
    def per_s(self) -> float:
        return self.successes / self.ns * 1e9 if self.ns else 0.0


class BlockRate(NamedTuple):
    """Rate of one block on one worker, and the most trials in flight."""

    span: RateSpan
    lanes: int

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
        return cls(RateSpan(sum(ok and end <= last for _, end, ok in trials), last - first), lanes)


def together(workers: Sequence[BlockRate], concurrency: int) -> RateSpan:
    """Combine the workers of a block: rates add up, or spans if a worker used all slots alone."""
    spans = [worker.span for worker in workers]
    if sum(worker.lanes for worker in workers) > concurrency:
        return summed(spans)
    ns = sum(span.ns for span in spans) / len(spans)
    return RateSpan(sum(span.successes * ns / span.ns for span in spans if span.ns), ns)


def summed(spans: Iterable[RateSpan]) -> RateSpan:
    """Add spans in sequence."""
    spans = list(spans)
    return RateSpan(sum(span.successes for span in spans), sum(span.ns for span in spans))
