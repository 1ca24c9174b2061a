"""The waiting trials of one batch, and the number for each worker."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence

from taxtui.plan.spec import CellPlan


class TrialQueue:
    """The waiting trials of a batch, assigned trials by worker, and slots by worker."""

    def __init__(
        self,
        cell: int,
        plan: CellPlan,
        batch: int,
        trials: int,
        starts_ns: Sequence[int] | None = None,
        limited: bool = False,
    ) -> None:
        """Assign nothing yet.

        Args:
            starts_ns: the ``schedule`` of the trials, in ns after now.
            limited: assign only to free slots, since each assigned trial counts towards a limit.
        """
        self.cell, self.plan, self.batch = cell, plan, batch
        self.waiting: deque[tuple[int, int]] = deque((place, 0) for place in range(trials))  # place and attempt
        self.assigned: Counter[int] = Counter()  # trials in progress, by worker
        self.slots: dict[int, int] = {}  # by worker
        self.drained = asyncio.Event()
        self._began_ns = time.monotonic_ns()
        self._starts_ns = starts_ns
        self._ahead = 0 if limited or starts_ns is not None else 1

    @property
    def elapsed_ns(self) -> int:
        return time.monotonic_ns() - self._began_ns

    def share(self, workers: Sequence[int]) -> None:
        """Share the slots among workers; no worker gets fewer than before."""
        slots, more = divmod(self.plan.concurrency, len(workers))
        for number, worker in enumerate(workers):
            self.slots[worker] = max(slots + (number < more), self.slots.get(worker, 0))

    def due_ns(self, place: int) -> int | None:
        """Return when a trial is due after the start of the batch; None: as soon as a slot is free."""
        return None if self._starts_ns is None else self._starts_ns[place]

    def take(self, worker: int, ended: int) -> list[tuple[int, int]]:
        """Return the next trials for a worker after the end of ``ended`` trials.

        The trials fill its slots, plus a prefetch for one round trip. Near the end of a batch nothing is
        prefetched, so that idle workers get the rest. Trials with start times are never prefetched.
        """
        slots = self.slots.get(worker, 0)
        fair = len(self.waiting) // (2 * max(1, len(self.slots)))
        ahead = self._ahead * min(fair, max(slots, 2 * ended))
        count = min(len(self.waiting), slots + ahead - self.assigned[worker]) if slots else 0
        return [self.waiting.popleft() for _ in range(count)]

    def end(self, worker: int) -> None:
        """Count an assigned trial after the end, or one never started."""
        self.assigned[worker] -= 1
        self.check()

    def take_back(self, worker: int, trials: Iterable[tuple[int, int]]) -> None:
        """Remove a worker, and queue the trials for other workers."""
        self.slots.pop(worker, None)
        self.assigned.pop(worker, None)
        self.waiting.extendleft(trials)

    def drop(self) -> None:
        self.waiting.clear()
        self.check()

    def check(self) -> None:
        """Set ``drained`` once no trial waits and none is assigned."""
        if not self.waiting and not self.assigned.total():
            self.drained.set()
