"""The workers of a run, from event to event: waits for tokens, pods and images, retries, repeated prompts.

``simulate_steps`` alternates the rollouts and the training of steps, as the policy says.

A heap has one live event per busy worker: time, worker number and event number. An event with an older number is void.
``State`` has a separate heap of pods in clean-up, read only while a worker waits for a pod. Simultaneous events are
ordered by worker number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from operator import attrgetter
from typing import Final, NamedTuple

from costmodel.simulation.attempts import AttemptTimes
from costmodel.simulation.random_streams import AttemptStream
from costmodel.simulation.rules import StepRules
from costmodel.simulation.state import SimulatedSandbox, State, StepTaken
from costmodel.training.run import KEEP, MASK, RESAMPLE

DONE, GIVEN_UP, LEFT_OUT, BROKEN, ASKS, GRANTED, EXPIRED = range(7)
"""Kinds of a worker's next event: the rollout succeeds, ends without success, is left out of the step, or breaks its
prompt; the worker requests a sandbox; its create is granted; its time limit passes during a wait for a pod."""
NONE: Final = -1
"""The rollout of an idle worker."""
Bill = Callable[[Sequence[int], float], float]
"""Function from running times of sandboxes and their total suspended time, in ns, to dollars."""


class Segment(NamedTuple):
    """Consecutive simulated steps of a run, and how many steps of the run each stands for."""

    first: int  # number of its random stream
    sizes: tuple[int, ...]  # kept rollouts per step
    stands_for: tuple[float, ...] = ()  # weight of each step after the lead
    lead: int = 0  # first steps that do not count
    disks: Sequence[Iterable[int]] = ()  # images on nodes before the first step
    built: Sequence[int] = ()  # images built before the first step


@dataclass(slots=True, eq=False)
class SimulatedWorker:
    """A worker with its current attempt and next event. Times are ns from the start of the run."""

    number: int
    since: int  # start of the rollout or of the step, plus waits for creates
    rollout: int = NONE
    tries: int = 0  # attempts at this rollout so far
    stage: int = ASKS
    due: int = 0  # time of the next event
    event: int = 0  # number of the next event
    sandbox: SimulatedSandbox | None = None
    used: SimulatedSandbox | None = None  # with recycling: of the last successful attempt
    attempt: AttemptTimes | None = None  # waiting for a pod
    hit: bool = False  # whether it has a sandbox of the pool
    limit: int = 0  # end of the time limit; 0: never


class Simulator:
    """The workers of one step, or of a stream."""

    def __init__(self, state: State, start: int, count: int, more: Callable[[int], bool] | None = None) -> None:
        """``count`` workers begin at ``start``. ``more`` adds rollouts to an empty queue, given the trained steps."""
        self.state = state
        self.now = start
        self.ended = 0
        self.trained: list[StepTaken] = []  # batches of a stream
        self.steps_trained = 0
        self._trained_ns = 0  # end of the last training
        self._more = more
        self._cuts = state.rules.over_provision > 0 or state.redone is not None  # whether an attempt may be cut
        self._workers = [SimulatedWorker(number, start) for number in range(count)]
        self._line: deque[SimulatedWorker] = deque()  # waiting for a pod
        self._idle: list[SimulatedWorker] = []
        self._heap: list[tuple[int, int, int]] = []

    def _one_after_another(self) -> None:
        """Run the queue where rollouts wait for workers only: each starts on the worker that is free first."""
        state, rules = self.state, self.state.rules
        first, clocks, include = state.launched, state.clocks_ns, rules.include_cleanup
        free = [self.now] * len(self._workers)
        for rollout, attempt in enumerate(state.first[first:], first):
            tries, busy = 1, 0
            while attempt.ok is False and tries != rules.cap:
                clocks.append(attempt.span - attempt.queued + attempt.cleanup)
                busy += attempt.span + attempt.cleanup * include + rules.backoff_ns
                attempt = state.attempt(rollout, tries, warm=False)
                tries += 1
            ok, span, queued, cleanup, *_ = attempt
            clocks.append(span - queued + cleanup)
            busy += span + cleanup * include
            heapreplace(free, free[0] + busy)
            state.held_ns += busy
            state.attempts += tries
            state.delivered += bool(ok)
        self.ended += len(state.first) - first
        state.launched = len(state.first)
        self.now = max(free)

    def work(self, keep: int) -> None:
        """Take up the queue, until ``keep`` rollouts are done in all, or nothing is left to do."""
        if self.state.rules.workers_only:
            self._one_after_another()
        else:
            self._begin(self._workers, self.now)
        state, heap, line, workers = self.state, self._heap, self._line, self._workers
        while self.ended < keep:
            if line and (freed := state.next_release()) >= 0 and (not heap or freed <= heap[0][0]):
                self.now = freed
                state.release()
                self._place(line.popleft(), freed)
                continue
            if not heap:
                break
            now, number, event = heappop(heap)
            if number == len(workers):  # the trainer's
                self.now = now
                self.steps_trained += 1
                self._begin([], now)
                continue
            worker = workers[number]
            if event != worker.event:
                continue
            self.now, stage = now, worker.stage
            if stage == EXPIRED:
                line.remove(worker)
                worker.attempt = None
                self._failed(worker, now)
            elif stage == BROKEN:
                self._break(worker, now)
            elif stage == GRANTED:
                self._let_through(worker, now)
            elif stage == ASKS or self._takes_next(worker, now, keep):
                self._ask(worker, now)

    def cut(self) -> None:
        """End the step with its unfinished rollouts."""
        state, now = self.state, self.now
        for worker in self._workers:
            if worker.rollout == NONE:
                continue
            spent = now - worker.since
            if worker.stage == GRANTED:  # return the promised token
                state.full_ns -= state.gap_ns
                state.waited_ns -= worker.due - now
                spent += worker.due - now
            state.held_ns += spent
            if worker.tries:
                state.wasted_ns += spent
            if worker.sandbox is not None:
                state.drop(worker.sandbox, now)
        state.launched = len(state.first)
        state.waiting.clear()

    def _begin(self, workers: list[SimulatedWorker], now: int) -> None:
        """Give rollouts to these workers and to all idle workers, the lowest number first."""
        workers, self._idle = sorted(workers + self._idle, key=attrgetter("number")), []
        for worker in workers:
            if self._take(worker, now):
                self._ask(worker, now)

    def _take(self, worker: SimulatedWorker, now: int) -> bool:
        """Return whether this worker has a rollout; an idle worker has none."""
        state, used, image = self.state, worker.used, NONE
        if used is not None:
            worker.used, image = None, state.image[worker.rollout]
        while state.launched < len(state.first) and state.dead and state.prompt[state.launched] in state.dead:
            state.launched += 1
        if state.launched == len(state.first) and (self._more is None or not self._more(self.steps_trained)):
            worker.rollout = NONE
            self._idle.append(worker)
            return False
        rollout = state.launched if state.rules.recycle_ns is None else state.take_waiting(image)
        worker.rollout, worker.tries, worker.since = rollout, 0, now
        state.launched += 1
        if used is not None and state.image[rollout] == image:  # the sandbox is reset, and not cleaned up
            worker.used = used
            state.vacate(used)
            state.clocks_ns[used.bill] = max(0, used.end - used.begin - used.suspended)
        return True

    def _next(self, worker: SimulatedWorker, when: int, stage: int) -> None:
        worker.stage, worker.due = stage, when
        worker.event += 1
        heappush(self._heap, (when, worker.number, worker.event))

    def _ask(self, worker: SimulatedWorker, now: int) -> None:
        """Ask for a sandbox, and wait for a create where creates are throttled."""
        state = self.state
        granted = state.granted(now) if state.gap_ns and worker.used is None else now
        if granted > now:
            until = int(granted)
            state.waited_ns += until - now
            worker.since += until - now
            self._next(worker, until, GRANTED)
        else:
            self._let_through(worker, now)

    def _let_through(self, worker: SimulatedWorker, now: int) -> None:
        """Draw the attempt of a granted create, and find a pod."""
        state, rollout, tries, timeout = self.state, worker.rollout, worker.tries, self.state.rules.timeout_ns
        worker.tries = tries + 1
        state.attempts += 1
        attempt = state.attempt(rollout, tries, warm=False) if tries else state.first[rollout]
        worker.hit = state.rules.pool is not None and state.claim(state.prompt[rollout], now)
        if worker.hit:
            attempt = state.attempt(rollout, tries, warm=True)
        worker.attempt, worker.limit = attempt, now + timeout if timeout else 0
        if worker.used is not None:
            state.hits += 1
            attempt = state.attempt(rollout, tries, warm=True)
            worker.attempt = attempt._replace(span=attempt.span + (state.rules.recycle_ns or 0))
        if worker.used is not None or state.nodes is None or (not self._line and state.pods_free(now)):
            self._place(worker, now)
            return
        self._line.append(worker)
        if timeout:
            self._next(worker, worker.limit, EXPIRED)

    def _place(self, worker: SimulatedWorker, now: int) -> None:
        """Start the attempt on its pod at the arrival of its image or sandbox."""
        state, attempt = self.state, worker.attempt
        assert attempt is not None
        used, worker.attempt, worker.used = worker.used, None, None
        ok, span, queued, cleanup, startup, suspended = attempt
        dropped = ok is None
        node, begin = NONE, now
        if used is not None:
            node = used.node
        elif state.nodes is not None:
            node, begin = state.nodes.take(state.image[worker.rollout], now, hit=worker.hit)
        end = begin + span
        until = end + cleanup if state.rules.include_cleanup else end
        if worker.limit and until > worker.limit:
            suspended = suspended * max(0, worker.limit - begin) // max(1, span) if worker.limit < end else suspended
            ok, dropped, until, end = False, False, worker.limit, min(end, worker.limit)
        begin += queued
        if worker.hit:  # made earlier, and billed from then on
            begin -= startup
        state.suspended_ns += suspended
        bill = len(state.clocks_ns)
        if used is not None and used.bill >= (self.trained[-1].sandboxes if self.trained else 0):  # begun in this batch
            bill, begin, suspended = used.bill, used.begin, used.suspended + suspended
        else:
            state.clocks_ns.append(0)
        state.clocks_ns[bill] = end - begin - suspended + cleanup if end > begin else 0
        recycles = state.rules.recycle_ns is not None
        if node >= 0 or self._cuts or recycles:
            cleanup = max(1, cleanup) if recycles else cleanup  # a worker may keep its pod before others get it
            worker.sandbox = SimulatedSandbox(begin, end, cleanup, node, bill, suspended)
            state.occupy(worker.sandbox)
            worker.used = worker.sandbox if recycles and ok else None
        if ok:
            self._next(worker, until, DONE)
        else:
            self._failed(worker, until, dropped=dropped)

    def _failed(self, worker: SimulatedWorker, until: int, *, dropped: bool = False) -> None:
        """Decide the consequence of a failure at ``until``; a ``dropped`` rollout is not retried."""
        rules = self.state.rules
        stage = {RESAMPLE: BROKEN, KEEP: DONE, MASK: LEFT_OUT}.get(rules.on_failure)
        if stage is None:
            stage = LEFT_OUT if dropped else GIVEN_UP if worker.tries == rules.cap else ASKS
        self._next(worker, until + rules.backoff_ns * (stage == ASKS), stage)

    def _takes_next(self, worker: SimulatedWorker, now: int, keep: int) -> bool:
        """End the worker's rollout; return whether another rollout requests a sandbox at once."""
        state, delivered = self.state, worker.stage == DONE
        state.held_ns += now - worker.since
        state.delivered += delivered
        self.ended += worker.stage != LEFT_OUT or self._more is not None
        worker.sandbox = None
        if state.redone is not None:
            state.finished[state.prompt[worker.rollout]] += 1
        if self._more is not None and (self.ended % state.rules.size == 0 or self.ended == keep):  # train a batch
            self._trained_ns = max(now, self._trained_ns) + state.rules.train_ns
            self.trained.append(state.totals(now, self._trained_ns))
            if state.rules.staleness:
                heappush(self._heap, (self._trained_ns, len(self._workers), 0))
        if self.ended == keep:
            worker.rollout = NONE
            return False
        return self._take(worker, now)

    def _break(self, broken: SimulatedWorker, now: int) -> None:
        """End all rollouts of a failed rollout's prompt, and redo the prompt."""
        state = self.state
        prompt = state.prompt[broken.rollout]
        free = [
            candidate
            for candidate in self._workers
            if candidate.rollout != NONE and state.prompt[candidate.rollout] == prompt
        ]
        for worker in free:
            state.held_ns += now - worker.since
            if worker.attempt is not None:
                self._line.remove(worker)
            if worker.sandbox is not None:
                state.drop(worker.sandbox, now)
            worker.rollout, worker.attempt, worker.sandbox = NONE, None, None
            worker.event += 1  # void the next event
        lost = state.finished.pop(prompt, 0)
        self.ended -= lost
        state.delivered -= lost
        self.ended += state.redo(prompt)
        self._begin(free, now)


def simulate_steps(rules: StepRules, source: AttemptStream, segment: Segment, bill: Bill) -> list[StepTaken]:
    """Return the steps of a segment after its lead."""
    state = State(rules, source, segment.disks, segment.built)
    before, steps = StepTaken(), []
    for end in (_in_turn if rules.policy.barrier else _stream)(state, segment):
        added = StepTaken._make(now - then for then, now in zip(before, end, strict=True))
        steps.append(added._replace(usd=bill(state.clocks_ns[before.sandboxes : end.sandboxes], added.suspended_ns)))
        before = end
    return steps[segment.lead :]


def _in_turn(state: State, segment: Segment) -> list[StepTaken]:
    """Steps with a barrier."""
    rules = state.rules
    start = trained = rollouts_ns = 0
    ends = []
    for number, keep in enumerate(segment.sizes, segment.first):
        launched = rules.launched(keep)
        state.load(state.source.stream.step(number, launched), launched, number)
        crew = Simulator(state, start, min(rules.workers, launched))
        crew.work(keep)
        crew.cut()
        rollouts_ns += crew.now - start
        before, trained = trained, max(crew.now, trained) + rules.train_ns
        start = max(crew.now, before) if rules.policy.overlaps else trained
        ends.append(state.totals(start, trained)._replace(resting_ns=trained - rollouts_ns))
    return ends


def _stream(state: State, segment: Segment) -> list[StepTaken]:
    """Simulate rollouts without a barrier."""
    rules = state.rules
    coming = list(enumerate(segment.sizes, segment.first))

    def more(steps_trained: int) -> bool:
        loaded = len(segment.sizes) - len(coming)
        if not coming or (rules.staleness and loaded >= steps_trained + rules.staleness):
            return False
        number, size = coming.pop(0)
        state.load(state.source.stream.step(number, size), size, number)
        return True

    total = sum(segment.sizes)
    crew = Simulator(state, 0, min(rules.workers, total), more)
    crew.work(total)
    return crew.trained
