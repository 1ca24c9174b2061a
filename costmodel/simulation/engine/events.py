"""From one event to the next: workers that take rollouts in turn, the create limit, and the pool of ready sandboxes.

Every busy worker has one entry in a heap: when its next event is. Entries are whole numbers, the time in their high
bits and the worker in their low ones, so that the heap compares them in one step and ties go to the lower worker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heapreplace
from typing import Final, NamedTuple

from costmodel.simulation.engine.rules import Rules
from costmodel.simulation.engine.tries import Try

DONE, ASKS, GRANTED = 0, 1, 2
"""What a worker's next event is: its rollout ends, it asks for a sandbox, its create is let through."""
NOT_BEGUN: Final = -1
"""The clock of a worker that has no sandbox to account for."""


class Counts(NamedTuple):
    """What has happened since the start of the run. ns are sums over workers or sandboxes."""

    attempts: float = 0
    hits: float = 0
    held_ns: float = 0  # by attempts
    backoff_ns: float = 0
    waited_ns: float = 0  # for creates to be let through
    wasted_ns: float = 0  # of the first two, on rollouts that were thrown away
    idle_ns: float = 0  # of ready sandboxes, until they were taken


def plus(total: Counts, upper: Counts, lower: Counts, share: float) -> Counts:
    """``total``, and ``share`` times what came from ``lower`` to ``upper``."""
    return Counts._make(t + share * (u - v) for t, u, v in zip(total, upper, lower, strict=True))


class Carried(NamedTuple):
    """A rollout that goes on in the next step."""

    left_ns: int  # until its worker's next event
    stage: int
    tries: int
    spent_ns: int  # of worker time, so far, without waits for creates
    hold_left_ns: int  # until its sandbox is let go; 0 or less: it is
    clock_ns: int  # its sandbox's, when it is let go


class StepTotals(NamedTuple):
    """How things stood when so many rollouts of a phase were done."""

    at_ns: int
    counts: Counts
    clocks: int  # so many of the system's clocks were told


class System:
    """Workers, throttle and pool of one run, which keep their state from step to step."""

    def __init__(self, rules: Rules, draws: Iterator[Try]) -> None:
        """Everything is ready: the burst unused, the pool full. ``draws`` are attempts without end."""
        self.rules = rules
        self.counts = Counts()
        self.clocks_ns: list[int] = []  # of each sandbox; with over-provisioning only
        self._draws = draws
        self._full_again = 0.0  # when the create limit has its whole burst again
        self._cut_at = 0
        pool = rules.pool
        self._stock = 0 if pool is None or pool.group is not None else pool.size  # ready from the start, and not taken
        self._ready: deque[int] = deque()  # when each sandbox that replaces one is ready, ascending

    def idle_ns(self, end: int) -> float:
        """How long ready sandboxes have waited in all by ``end``, those that still do among them."""
        waiting = sum(end - since for since in self._ready if since < end)
        return self.counts.idle_ns + waiting + self._stock * end

    def skip(self, ns: int, like: Counts) -> None:
        """The same state so much later, after what ``like`` adds to the counts."""
        self._full_again += ns
        self._cut_at += ns
        self._ready = deque(ready + ns for ready in self._ready)
        self.counts = plus(self.counts, like, Counts(), 1.0)

    def phase(
        self, start: int, fresh: int, keep: int, carried: Sequence[Carried] = (), marks: Sequence[int] = ()
    ) -> tuple[int, list[StepTotals], list[Carried]]:
        """From ``start``, run what is carried and ``fresh`` rollouts until ``keep`` of them are done.

        Returns when that is, how things stood when each of the ``marks`` (ascending numbers of rollouts) was done,
        and what is carried on: begun and not kept. Without ``partial`` that is thrown away instead.
        """
        rules = self.rules
        count = min(rules.workers, len(carried) + fresh)
        shift = count.bit_length()
        mask = (1 << shift) - 1
        stage, tries, asked, began = [ASKS] * count, [0] * count, [start] * count, [start] * count
        ends, clocks, images = [start] * count, [NOT_BEGUN] * count, [-1] * count
        times = [start] * count
        for worker, one in enumerate(carried):
            times[worker] = start + one.left_ns
            stage[worker], tries[worker], began[worker] = one.stage, one.tries, start - one.spent_ns
            # A sandbox that is carried exists, and is billed, while the trainer has its turn.
            paused = start - self._cut_at if one.hold_left_ns > 0 else 0
            ends[worker], clocks[worker] = start + one.hold_left_ns, one.clock_ns + paused
        heap = [when << shift | worker for worker, when in enumerate(times)]
        heapify(heap)
        cuts, cap, backoff, gap = rules.over_provision > 0, rules.cap or 0, rules.backoff_ns, rules.gap_ns
        allowance, full_again = (rules.burst - 1) * gap, self._full_again
        pool, ready, stock = rules.pool, self._ready, self._stock
        group, refill, pool_gap = (0, 0, 0) if pool is None else (pool.group or 0, pool.refill_ns, pool.gap_ns or 0)
        left = [pool.size] * -(-fresh // group) if pool is not None and group else []
        launched = count - len(carried)
        if group:
            images[len(carried) :] = [number // group for number in range(launched)]
        attempts, hits, held_ns, backoff_ns, waited_ns, wasted_ns, idle_ns = self.counts
        held_ns += sum(max(0, one.hold_left_ns) for one in carried)
        backoff_ns += sum(one.left_ns - max(0, one.hold_left_ns) for one in carried)
        all_clocks, draws = self.clocks_ns, self._draws
        snapshots: list[StepTotals] = []
        coming = iter(marks)
        mark = next(coming, -1)
        done, now = 0, start
        while done < keep:
            code = heap[0]
            now, worker = code >> shift, code & mask
            step = stage[worker]
            if cuts and step != GRANTED and clocks[worker] != NOT_BEGUN:
                all_clocks.append(clocks[worker])
                clocks[worker] = NOT_BEGUN
            if step == DONE:
                done += 1
                if done == mark:
                    so_far = Counts(attempts, hits, held_ns, backoff_ns, waited_ns, wasted_ns, idle_ns)
                    snapshots.append(StepTotals(now, so_far, len(all_clocks)))
                    mark = next(coming, -1)
                if launched == fresh or done == keep:
                    heappop(heap)
                    continue
                tries[worker] = 0
                began[worker] = now
                if group:
                    images[worker] = launched // group
                launched += 1
            if step == GRANTED:
                waited_ns += now - asked[worker]
                began[worker] += now - asked[worker]  # what is wasted is told without the waits
            elif gap:
                granted = full_again - allowance
                if granted > now:
                    full_again += gap
                    stage[worker], asked[worker] = GRANTED, now
                    heapreplace(heap, int(granted) << shift | worker)
                    continue
                full_again = (full_again if full_again > now else now) + gap
            ok, held, clock, warm_ok, warm, warm_clock = next(draws)
            attempts += 1
            if group:
                image = images[worker]
                if image >= 0 and left[image]:
                    left[image] -= 1
                    hits += 1
                    ok, held, clock = warm_ok, warm, warm_clock
            elif stock or (ready and ready[0] <= now):
                since = 0 if stock else ready.popleft()
                stock -= stock > 0
                idle_ns += now - since
                hits += 1
                ok, held, clock = warm_ok, warm, warm_clock
                if refill is not None:
                    ready.append(now + refill)
                else:  # one at a time: after the one that is being made, if there is one
                    latest = ready[-1] if ready else since
                    ready.append((latest if latest > now else now) + pool_gap)
            held_ns += held
            until = now + held
            if cuts:
                ends[worker], clocks[worker] = until, clock
            tries[worker] += 1
            if ok or tries[worker] == cap:
                stage[worker] = DONE
            else:
                stage[worker] = ASKS
                backoff_ns += backoff
                until += backoff
            heapreplace(heap, until << shift | worker)
        beyond: list[Carried] = []
        for code in heap:  # begun, or waiting for it, when the step ended
            until, worker = code >> shift, code & mask
            spent = now - began[worker]
            if stage[worker] == GRANTED:
                full_again -= gap
                waited_ns += now - asked[worker]
                spent -= now - asked[worker]
                goes_on = rules.partial and tries[worker] > 0
                if goes_on:
                    beyond.append(Carried(0, ASKS, tries[worker], spent, 0, NOT_BEGUN))
            elif clocks[worker] == NOT_BEGUN:  # nobody let it begin
                continue
            else:
                hold_left = ends[worker] - now
                held_ns -= max(0, hold_left)
                backoff_ns -= until - max(ends[worker], now)
                goes_on = rules.partial
                if goes_on:
                    beyond.append(Carried(until - now, stage[worker], tries[worker], spent, hold_left, clocks[worker]))
                else:
                    all_clocks.append(clocks[worker] - max(0, hold_left))
            wasted_ns += 0 if goes_on else spent
        self._full_again, self._cut_at, self._stock = full_again, now, stock
        self.counts = Counts(attempts, hits, held_ns, backoff_ns, waited_ns, wasted_ns, idle_ns)
        return now, snapshots, beyond

    def let_go(self, carried: Sequence[Carried]) -> None:
        """Throw away what the last step carries on."""
        self.counts = self.counts._replace(wasted_ns=self.counts.wasted_ns + sum(one.spent_ns for one in carried))
        for one in carried:
            if one.clock_ns != NOT_BEGUN:
                self.clocks_ns.append(one.clock_ns - max(0, one.hold_left_ns))
