"""How many trials a second get done with so many in flight, from when each starts and when its lane is free again.

Lanes are filled together and fall empty together, so only the time in which all are taken tells: from a block's first
start to its last, behind which nothing takes a lane's place. Live counts so while events come, the report afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Self

ROUNDS: Final = 3
"""A block of fewer trials than this for each lane is counted whole, from its first start to its last end."""


class RateSpan(NamedTuple):
    """Successes and the time they took."""

    done: float
    ns: float

    @property
    def per_s(self) -> float:
        """0 where it lasted no time."""
        return self.done / self.ns * 1e9 if self.ns else 0.0


@dataclass(slots=True)
class BlockRate:
    """One block on one worker, whose instants are of one clock; told in their order, of one instant the end first."""

    first_ns: int = 0
    last_start_ns: int = 0
    last_end_ns: int = 0
    begun: int = 0
    in_flight: int = 0
    lanes: int = 0  # the most that were in flight
    done: int = 0  # successes
    done_by_then: int = 0  # at the last start

    def start(self, at_ns: int) -> None:
        """A trial starts."""
        self.first_ns = at_ns if not self.begun else self.first_ns
        self.last_start_ns, self.done_by_then = at_ns, self.done
        self.begun += 1
        self.in_flight += 1
        self.lanes = max(self.lanes, self.in_flight)

    def end(self, at_ns: int, *, ok: bool) -> None:
        """A trial's lane is free again."""
        self.in_flight -= 1
        self.done += ok
        self.last_end_ns = max(self.last_end_ns, at_ns)

    @property
    def span(self) -> RateSpan:
        """While all lanes were taken; all of it where it has too few rounds for that."""
        if self.begun >= ROUNDS * self.lanes and self.begun > self.lanes:
            return RateSpan(self.done_by_then, self.last_start_ns - self.first_ns)
        return RateSpan(self.done, max(0, self.last_end_ns - self.first_ns))

    @classmethod
    def of(cls, trials: Iterable[tuple[int, int, bool]]) -> Self:
        """Add trials, each as (start, end of its slot, whether it succeeded)."""
        rates = cls()
        steps = [(at_ns, kind, ok) for start, end, ok in trials for at_ns, kind, ok in ((start, 1, ok), (end, 0, ok))]
        for at_ns, kind, ok in sorted(steps):
            if kind:
                rates.start(at_ns)
            else:
                rates.end(at_ns, ok=ok)
        return rates

    def copy(self) -> Self:
        """A detached copy."""
        return replace(self)


def together(workers: Sequence[BlockRate], concurrency: int) -> RateSpan:
    """A block that several workers shared: their rates add up; one after the other where one alone had all lanes."""
    spans = [worker.span for worker in workers]
    if sum(worker.lanes for worker in workers) > concurrency:
        return summed(spans)
    ns = sum(span.ns for span in spans) / len(spans)
    return RateSpan(sum(span.done * ns / span.ns for span in spans if span.ns), ns)


def summed(spans: Iterable[RateSpan]) -> RateSpan:
    """One after the other."""
    spans = list(spans)
    return RateSpan(sum(span.done for span in spans), sum(span.ns for span in spans))


@dataclass(slots=True)
class CellRates:
    """The blocks of one cell while they go on: the last of each worker, and what those before amount to."""

    _now: dict[int, tuple[int, BlockRate]] = field(default_factory=dict)  # by worker, all three
    _before: dict[int, RateSpan] = field(default_factory=dict)
    _lanes: dict[int, int] = field(default_factory=dict)

    def start(self, worker: int, block: int, at_ns: int) -> None:
        """A counted trial starts."""
        number, rate = self._now.get(worker, (block, BlockRate()))
        if number != block:
            self._before[worker] = self._span(worker)
            rate = BlockRate()
        self._now[worker] = block, rate
        rate.start(at_ns)
        self._lanes[worker] = max(rate.lanes, self._lanes.get(worker, 0))

    def end(self, worker: int, at_ns: int, *, ok: bool) -> None:
        """Its lane is free again."""
        if worker in self._now:
            self._now[worker][1].end(at_ns, ok=ok)

    def _span(self, worker: int) -> RateSpan:
        return summed([self._before.get(worker, RateSpan(0, 0)), self._now[worker][1].span])

    def per_s(self, concurrency: int) -> float:
        """So far; 0 before a trial has ended. Workers that share the lanes add up, those that took turns do not."""
        spans = [self._span(worker) for worker in self._now]
        if sum(self._lanes.values()) > concurrency:
            return summed(spans).per_s
        return sum(span.per_s for span in spans)

    def copy(self) -> CellRates:
        """A detached copy."""
        twin = CellRates()
        twin._now = {worker: (block, rate.copy()) for worker, (block, rate) in self._now.items()}
        twin._before, twin._lanes = self._before.copy(), self._lanes.copy()
        return twin
