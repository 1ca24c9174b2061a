"""How the trials of a block are dealt out to workers: ahead of what they run, the less the fewer are left."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Sequence

from taxtui.plan.spec import CellPlan


def lanes_of(concurrency: int, workers: int) -> list[int]:
    """How many trials at a time are each worker's; together they are the cell's concurrency."""
    each, more = divmod(concurrency, workers)
    return [each + (worker < more) for worker in range(workers)]


class SharedBlock:
    """The trials of a block that wait, those that workers have, and who may run how many."""

    def __init__(
        self,
        cell: int,
        plan: CellPlan,
        number: int,
        trials: int,
        began_unix_ns: int,
        starts_ns: Sequence[int] | None = None,
    ) -> None:
        """Nothing has been dealt out. ``number`` −1: warm-ups. ``starts_ns``: the ``schedule`` of its trials."""
        self.cell, self.plan, self.number = cell, plan, number
        self.began_unix_ns = began_unix_ns
        self.left: deque[tuple[int, int]] = deque((place, 0) for place in range(trials))  # place and attempt
        self.out: Counter[int] = Counter()  # dealt and not ended, by worker
        self.lanes: dict[int, int] = {}  # by worker
        self.settled = asyncio.Event()
        self._starts_ns = starts_ns
        self._ahead = 0 if starts_ns is not None else 1

    def widen(self, workers: Sequence[int]) -> dict[int, int]:
        """Share the lanes out among these; those whose number has changed, and those that are to have more first."""
        lanes = dict(zip(workers, lanes_of(self.plan.concurrency, len(workers)), strict=True))
        changed = {worker: count for worker, count in lanes.items() if count > self.lanes.get(worker, 0)}
        self.lanes |= changed
        return changed

    def due_ns(self, place: int) -> int | None:
        """When one of its trials is due after its beginning; None: as soon as a lane is free."""
        return None if self._starts_ns is None else self._starts_ns[place]

    def take(self, worker: int, ended: int) -> list[tuple[int, int]]:
        """The next that a worker is dealt, which has just ended so many.

        As many as it has lanes, so that none is idle, and besides those that it ends while it waits for more; but the
        last of a block go to whoever is free. Where each trial is due at an instant of its own nothing is dealt ahead.
        """
        lanes = self.lanes.get(worker, 0)
        fair = len(self.left) // (2 * max(1, len(self.lanes)))
        ahead = self._ahead * min(fair, max(lanes, 2 * ended))
        count = min(len(self.left), lanes + ahead - self.out[worker]) if lanes else 0
        return [self.left.popleft() for _ in range(count)]

    def dealt(self, worker: int, count: int) -> None:
        """A worker has so many more of it."""
        self.out[worker] += count

    def ended(self, worker: int) -> None:
        """One that it was dealt has ended, or is not going to be started."""
        self.out[worker] -= 1
        self.look()

    def again(self, worker: int, work: Iterable[tuple[int, int]]) -> None:
        """A worker is no more; this is what others are to run in its place."""
        self.lanes.pop(worker, None)
        self.out.pop(worker, None)
        self.left.extendleft(work)

    def drop(self) -> None:
        """Deal out nothing more."""
        self.left.clear()
        self.look()

    def look(self) -> None:
        """Tell whoever waits once nothing is left and nothing is out."""
        if not self.left and not self.out.total():
            self.settled.set()
