"""From one event to the next: workers, tokens, pods, images, attempts that fail, and prompts that are redone.

As in ``engine.events`` every busy worker has one entry in a heap: when its next event is, in the high bits of a whole
number, and the worker in the low ones. Pods that are being cleaned up have a heap of their own, which is looked at
only when somebody wants a pod.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from heapq import heappop, heappush, heapreplace
from typing import NamedTuple

from costmodel.simulation.random_streams import Told
from costmodel.simulation.state import CarriedOn, Seat, State, Totals
from costmodel.training.run import KEEP, MASK, RESAMPLE

DONE, GIVEN_UP, LEFT_OUT, BROKEN, ASKS, GRANTED, LINED, TRAINED = range(8)
"""A worker's next event: its rollout succeeds, ends without, is left out of the step, or breaks its prompt; it asks for
a sandbox, its create is let through, or its time is over while it stands in line for a pod. The last is the trainer's.
"""


class Waiting(NamedTuple):
    """An attempt whose create was let through, and that has no pod yet. ns."""

    told: Told
    ready: int  # when its sandbox is, if that is a hit; below 0: it is none
    limit: int  # when its time is over; 0: never


class StepSimulator:
    """The workers from one start to the end of that step, or of the stream."""

    def __init__(self, state: State, start: int, count: int, more: Callable[[int], bool] | None = None) -> None:
        """``count`` workers begin at ``start``. Of a stream, ``more`` may add rollouts when the queue is empty, given
        how many steps are trained."""
        self.state = state
        self.now = start
        self.done = 0
        self.trained: list[tuple[int, Totals, int]] = []  # of a stream: when each step is, and how things stood
        self.steps_trained = 0
        self._more = more
        self._count = count
        self._shift = (count + 1).bit_length()
        self._job = [-1] * count  # the rollout; below 0: none
        self._tries = [0] * count
        self._stage = [ASKS] * count + [TRAINED]
        self._since = [start] * count  # it took its rollout
        self._due = [0] * count  # the code of its next event
        self._seat: list[Seat | None] = [None] * count
        self._waits: dict[int, Waiting] = {}
        self._line: deque[int] = deque()  # workers that wait for a pod
        self._idle: list[int] = []
        self._heap: list[int] = []
        self._void: Counter[int] = Counter()  # events that will not happen
        rules = state.asked.rules
        self._whole = more is None and rules.over_provision == 0 and state.redone is None
        """Whether nothing is ever cut, so that who has the last rollouts is done as soon as their ends are known."""
        self._last = False  # whether there are no others
        self._latest = start  # when the last of those ends

    def start(self, carried: list[CarriedOn]) -> None:
        """Begin with what is carried, then with the queue."""
        for worker, one in enumerate(carried):
            self._job[worker], self._tries[worker] = one.rollout, one.tries
            if one.seat is not None:
                seat, now = one.seat, self.now
                seat = seat._replace(begin=seat.begin + now, end=seat.end + now)
                self._seat[worker] = self.state.seated(seat)
            self._next(worker, self.now + one.left, one.stage)
        state = self.state
        self._last = self._whole and len(state.told) - state.launched <= self._count
        if state.asked.workers_only:
            self._one_after_another()
        elif self._last and state.simple and self._each_has_a_pod():
            self._all_at_once()
        else:
            self._begin(range(len(carried), self._count), self.now)

    def _each_has_a_pod(self) -> bool:
        """Whether there is one for every worker, whenever its create is let through."""
        state = self.state
        return state.nodes is None or (not state.gap_ns and state.pods_free(self.now) >= self._count)

    def _one_after_another(self) -> None:
        """Nothing but workers holds a rollout up: whoever is free first takes the next."""
        state, rules, start = self.state, self.state.asked.rules, self.now
        first, clocks, include = state.launched, state.clocks_ns, state.asked.include_cleanup
        free = [start] * self._count
        held = 0
        for rollout, told in enumerate(state.told[first:], first):
            tries, busy = 1, 0
            ok, span, queued, cleanup, _ = told
            while ok is False and tries != rules.cap:
                clocks.append(span - queued + cleanup)
                busy += (span + cleanup if include else span) + rules.backoff_ns
                ok, span, queued, cleanup, _ = state.again(rollout, tries, warm=False)
                tries += 1
            clocks.append(span - queued + cleanup)
            busy += span + cleanup if include else span
            held += busy
            state.attempts += tries
            state.delivered += bool(ok)
            heapreplace(free, free[0] + busy)
        state.held_ns += held
        self.done += len(state.told) - first
        state.launched = len(state.told)
        self._latest = max(free)

    def _all_at_once(self) -> None:
        """Every rollout has a worker and a pod, and nothing but the create limit holds it up."""
        state, now, include, heap = self.state, self.now, self.state.asked.include_cleanup, self._heap
        first, nodes, clocks = state.launched, state.nodes, state.clocks_ns
        gap = state.gap_ns
        begin = latest = now
        held, freed = 0, []
        for rollout, (ok, span, queued, cleanup, _) in enumerate(state.told[first:], first):
            if gap:
                begin = int(state.granted(now))
            end = begin + span
            if nodes is not None:
                node, there = nodes.take(state.image[rollout], now)
                end += there - now
                freed.append((end + cleanup, node))
            clocks.append(span - queued + cleanup if span > queued or not gap else 0)
            until = end + cleanup if include else end
            if ok:
                held += until - now
                self.done += 1
                if until > latest:
                    latest = until
                continue
            worker = rollout - first
            self._job[worker] = rollout
            self._tries[worker] = 1
            self._failed(worker, until, dropped=ok is None)
            if gap and heap[0] >> self._shift == now:  # it asks again before the next one does for the first time
                state.launched = rollout + 1
                break
        else:
            state.launched = len(state.told)
        state.free_all_at(freed)
        state.held_ns += held
        state.delivered += self.done
        state.attempts += state.launched - first
        self._latest = latest
        self._begin(range(state.launched - first, self._count), now)

    def work(self, keep: int, most: float = float("inf")) -> None:
        """Go on until ``keep`` rollouts are done in all, or nothing is left to do before ``most``."""
        state, heap, stage, line = self.state, self._heap, self._stage, self._line
        shift, mask, gap, void = self._shift, (1 << self._shift) - 1, state.gap_ns, self._void
        while self.done < keep:
            if line and 0 <= (freed := state.next_release()) <= most and (not heap or freed <= heap[0] >> shift):
                self.now = freed
                state.release()
                self._sit(line.popleft(), freed)
                continue
            if not heap or heap[0] >> shift > most:
                break
            code = heappop(heap)
            if void and void[code]:
                void[code] -= 1
                continue
            self.now = now = code >> shift
            worker = code & mask
            step = stage[worker]
            if step < ASKS:
                if not self._ended(worker, step, now, keep):
                    continue
            elif step == LINED:
                line.remove(worker)
                del self._waits[worker]
                self._failed(worker, now)
                continue
            elif step == TRAINED:
                self.steps_trained += 1
                idle, self._idle = self._idle, []
                self._begin(idle, now)
                continue
            if gap and step != GRANTED:
                granted = state.granted(now)
                if granted > now:
                    self._next(worker, int(granted), GRANTED)
                    continue
            self._let_through(worker, now)
        if self.done >= keep or not heap:
            self.now = max(self.now, self._latest)

    def cut(self) -> list[CarriedOn]:
        """The step has ended: what has begun and goes on; without partial rollouts it is cut."""
        state, now, beyond = self.state, self.now, []
        for worker, rollout in enumerate(self._job):
            if rollout < 0:
                continue
            state.held_ns += now - self._since[worker]
            stage, tries, seat = self._stage[worker], self._tries[worker], self._seat[worker]
            lined = worker in self._waits
            if stage == GRANTED:
                state.full_again -= state.gap_ns
            if state.asked.rules.partial and tries:
                if lined or stage == GRANTED:
                    beyond.append(CarriedOn(rollout, tries - lined, ASKS, 0, None))
                    continue
                left = (self._due[worker] >> self._shift) - now
                if seat is not None and seat.end > now:
                    state.unseat(seat)
                    seat = seat._replace(begin=seat.begin - now, end=seat.end - now)
                else:
                    seat = None
                beyond.append(CarriedOn(rollout, tries, stage, left, seat))
            elif seat is not None:
                state.drop(seat, now)
        state.launched = len(state.told)
        return beyond

    def _begin(self, workers: list[int] | range, now: int) -> None:
        """These workers, who have nothing to do, take rollouts."""
        for place, worker in enumerate(workers):
            if not self._take(worker, now):
                self._idle += workers[place + 1 :]
                return
            self._next(worker, now, ASKS)

    def _take(self, worker: int, now: int) -> bool:
        """Whether there is a rollout for this worker."""
        state = self.state
        while state.launched < len(state.told) and state.dead and state.prompt[state.launched] in state.dead:
            state.launched += 1
        if state.launched == len(state.told) and (self._more is None or not self._more(self.steps_trained)):
            self._job[worker] = -1
            self._idle.append(worker)
            return False
        self._job[worker] = state.launched
        self._tries[worker] = 0
        self._since[worker] = now
        state.launched += 1
        self._last = self._whole and state.launched == len(state.told)
        return True

    def _next(self, worker: int, when: int, stage: int) -> None:
        self._stage[worker] = stage
        self._due[worker] = code = when << self._shift | worker
        heappush(self._heap, code)

    def _let_through(self, worker: int, now: int) -> None:
        """A create is let through: what it will take, and the pod for it."""
        state, rollout, tries = self.state, self._job[worker], self._tries[worker]
        self._tries[worker] = tries + 1
        state.attempts += 1
        told = state.again(rollout, tries, warm=False) if tries else state.told[rollout]
        ready = -1
        if state.pool is not None:
            ready = state.claim(state.prompt[rollout], now, told[4])
            if ready >= 0:
                told = state.again(rollout, tries, warm=True)
        timeout = state.asked.timeout_ns
        limit = now + timeout if timeout else 0
        if state.nodes is not None and (self._line or not state.pods_free(now)):
            self._waits[worker] = Waiting(told, ready, limit)
            self._line.append(worker)
            if timeout:
                self._next(worker, limit, LINED)
            return
        self._place(worker, now, told, ready, limit)

    def _sit(self, worker: int, now: int) -> None:
        """The first in line has its pod."""
        waits = self._waits.pop(worker)
        if waits.limit:
            self._void[self._due[worker]] += 1
        self._place(worker, now, *waits)

    def _place(self, worker: int, now: int, told: Told, ready: int, limit: int) -> None:
        """An attempt that begins as soon as its image, or its sandbox, is there."""
        state, asked = self.state, self.state.asked
        ok, span, queued, cleanup, _ = told
        dropped = ok is None
        node, begin = -1, now
        if state.nodes is not None:
            node, begin = state.sit(self._job[worker], now, hit=ready >= 0)
        if ready > begin:
            begin = ready
        end = begin + span
        until = end + cleanup if asked.include_cleanup else end
        if limit and until > limit:
            ok, dropped, until, end = False, False, limit, min(end, limit)
        begin += queued
        state.clocks_ns.append(end - begin + cleanup if end > begin else 0)
        if self._last:
            if node >= 0:
                state.free_at(end + cleanup, node)
            if ok:
                state.held_ns += until - self._since[worker]
                state.delivered += 1
                self.done += 1
                self._job[worker] = -1
                self._latest = max(self._latest, until)
                return
        else:
            self._seat[worker] = state.seated(Seat(begin, end, cleanup, node, len(state.clocks_ns) - 1))
        if ok:
            self._next(worker, until, DONE)
        else:
            self._failed(worker, until, dropped=dropped)

    def _failed(self, worker: int, until: int, *, dropped: bool = False) -> None:
        """What follows a failure that is over at ``until``; a ``dropped`` rollout is not tried again."""
        rules, how = self.state.asked.rules, self.state.asked.on_failure
        if how == RESAMPLE:
            self._next(worker, until, BROKEN)
        elif how == KEEP:  # delivered, with reward 0
            self._next(worker, until, DONE)
        elif how == MASK or dropped:
            self._next(worker, until, LEFT_OUT)
        elif self._tries[worker] == rules.cap:
            self._next(worker, until, GIVEN_UP)
        else:
            self._next(worker, until + rules.backoff_ns, ASKS)

    def _ended(self, worker: int, step: int, now: int, keep: int) -> bool:
        """A worker's rollout is over; whether it has another, and asks for its sandbox at once."""
        state = self.state
        if step == BROKEN:
            self._break(worker, now)
            return False
        state.held_ns += now - self._since[worker]
        state.delivered += step == DONE
        self.done += step != LEFT_OUT or self._more is not None
        self._seat[worker] = None
        if state.redone is not None:
            state.finished[state.prompt[self._job[worker]]] += 1
        if self._more is not None and (self.done % state.asked.size == 0 or self.done == keep):
            self._train(now)
        if self.done == keep:
            self._job[worker] = -1
            return False
        return self._take(worker, now)

    def _train(self, now: int) -> None:
        """Of a stream: a batch is done."""
        before = self.trained[-1][0] if self.trained else 0
        trained = max(now, before) + self.state.asked.rules.train_ns
        self.trained.append((trained, self.state.totals(now), len(self.state.clocks_ns)))
        if self.state.asked.staleness:
            heappush(self._heap, trained << self._shift | self._count)

    def _break(self, worker: int, now: int) -> None:
        """A rollout has failed, and all of its prompt are redone."""
        state = self.state
        prompt = state.prompt[self._job[worker]]
        free = [one for one, rollout in enumerate(self._job) if rollout >= 0 and state.prompt[rollout] == prompt]
        for one in free:
            state.held_ns += now - self._since[one]
            seat, self._seat[one], self._job[one] = self._seat[one], None, -1
            if one in self._waits:
                self._line.remove(one)
                if self._waits.pop(one).limit:
                    self._void[self._due[one]] += 1
            elif one != worker:
                self._void[self._due[one]] += 1
            if seat is not None:
                state.drop(seat, now)
        lost = state.finished.pop(prompt, 0)
        self.done -= lost
        state.delivered -= lost
        self.done += state.redo(prompt)
        idle, self._idle = self._idle, []
        self._begin(sorted(free + idle), now)
