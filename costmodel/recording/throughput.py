"""Trials per second at a concurrency, from the start of each trial and the release of its slot.

Slots fill together and empty together. Only the time with all slots taken counts: from a block's first start to its
last start. Live counts while events arrive, the report afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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


@dataclass(slots=True)
class BlockRate:
    """Rate of one block on one worker. Events come in order of time, ends before starts at equal instants."""

    first_ns: int = 0
    last_start_ns: int = 0
    last_end_ns: int = 0
    begun: int = 0
    in_flight: int = 0
    lanes: int = 0  # maximum in flight
    successes: int = 0
    successes_at_last_start: int = 0

    def start(self, at_ns: int) -> None:
        """Count the start of a trial."""
        self.first_ns = at_ns if not self.begun else self.first_ns
        self.last_start_ns, self.successes_at_last_start = at_ns, self.successes
        self.begun += 1
        self.in_flight += 1
        self.lanes = max(self.lanes, self.in_flight)

    def end(self, at_ns: int, *, ok: bool) -> None:
        """Count the end of a trial, which releases its slot."""
        self.in_flight -= 1
        self.successes += ok
        self.last_end_ns = max(self.last_end_ns, at_ns)

    @property
    def span(self) -> RateSpan:
        """Time with all slots taken, or the whole block with too few rounds."""
        if self.begun >= ROUNDS * self.lanes and self.begun > self.lanes:
            return RateSpan(self.successes_at_last_start, self.last_start_ns - self.first_ns)
        return RateSpan(self.successes, max(0, self.last_end_ns - self.first_ns))

    @classmethod
    def of(cls, trials: Iterable[tuple[int, int, bool]]) -> Self:
        """Count trials, each as (start, release of the slot, success)."""
        rates = cls()
        steps = [(at_ns, kind, ok) for start, end, ok in trials for at_ns, kind, ok in ((start, 1, ok), (end, 0, ok))]
        for at_ns, kind, ok in sorted(steps):
            if kind:
                rates.start(at_ns)
            else:
                rates.end(at_ns, ok=ok)
        return rates

    def copy(self) -> Self:
        """Return an independent copy."""
        return replace(self)


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
