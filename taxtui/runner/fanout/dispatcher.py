"""Assigns the trials of one repetition to workers, answers messages, and records events."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from costmodel import events
from taxtui.errors import RunCrashed
from taxtui.plan.spec import Plan
from taxtui.runner.arrivals import Block, blocks, schedule
from taxtui.runner.cleanup.ledger import LedgerEntry
from taxtui.runner.cleanup.reaping import final_sweep
from taxtui.runner.fanout.messages import (
    FINISH,
    WARM_UP,
    Assign,
    AssignedTrial,
    Finished,
    FromWorker,
    NotStarted,
    Recorded,
    WorkerCommand,
)
from taxtui.runner.fanout.trial_queue import TrialQueue
from taxtui.runner.fanout.worker_handle import Assigned, RunningTrial, WorkerHandle
from taxtui.runner.journal import Journal
from taxtui.runner.run_control import PAUSE, STOP, Progress, RunControl
from taxtui.runner.spend_limit import SpendLimit
from taxtui.sandboxes.protocol import Substrate

MOST_ATTEMPTS: Final = 2
"""Trials of a lost worker are run once more."""


class DispatchState(NamedTuple):
    """The state of a run, shared by all repetitions."""

    entry: LedgerEntry
    control: RunControl
    progress: Progress
    spend_limit: SpendLimit
    journal: Journal
    substrates: list[Substrate]


class Dispatcher:
    """One repetition of a run. ``measure`` is called once."""

    def __init__(
        self,
        plan: Plan,
        run: DispatchState,
        workers: list[WorkerHandle],
        remaining: Callable[[Sequence[Block]], list[Block]],
    ) -> None:
        """``remaining``: batches without measured trials."""
        self._plan, self._run, self._workers, self._remaining = plan, run, workers, remaining
        self.cleanup_failed = False
        self._ended_early = False
        self._limit = ""  # the exhausted limit of the run
        self._queues: list[TrialQueue] = []
        self._sweeps: set[asyncio.Task[list[str]]] = set()

    @property
    def first_free(self) -> int:
        return max(worker.first_free for worker in self._workers)

    # ---------------------------------------------------------------------------------------------------- end

    def relay(self, op: str) -> None:
        """Pass a change of the run's control on to every worker."""
        if op == STOP:
            for queue in self._queues:
                queue.drop()
        for worker in self._workers:
            worker.send(WorkerCommand(op))

    def end_early(self) -> None:
        self._ended_early = True
        self.relay(STOP)

    @property
    def _stopping(self) -> bool:
        return self._ended_early or bool(self._limit) or self._run.control.stopping

    # -------------------------------------------------------------------------------------------------- batches

    async def measure(self) -> None:
        """Run every batch, and return once the workers have ended. Errors are in the run's control then."""
        control = self._run.control
        attending = [asyncio.ensure_future(self._attend(worker)) for worker in self._workers]
        try:
            if control.stopping:
                self.relay(STOP)
            if not control.unpaused.is_set():
                self.relay(PAUSE)
            await control.guarded(self._run_cells())
        finally:
            if self._limit:
                control.stop("budget", self._limit)
            self.relay(FINISH)
            await asyncio.gather(*attending)
            await asyncio.gather(*self._sweeps)

    async def _run_cells(self) -> None:
        cells = range(len(self._plan.cells))
        for cell in cells:
            if self._remaining(blocks(self._plan, [cell])):
                await self._warm_up(cell)
        for batch in self._remaining(blocks(self._plan, cells)):
            if self._stopping:
                break
            starts_ns = schedule(self._plan, batch)
            await self._drained(self._queue(batch.cell, batch.number, batch.trials, starts_ns))

    async def _warm_up(self, cell: int) -> None:
        """Each worker with a slot of the cell warms up connections."""
        if (warm_ups := self._plan.cells[cell].warmup) and not self._stopping:
            queue = self._queue(cell, WARM_UP, 0)
            for worker in self._alive:
                if queue.slots.get(worker.number):
                    self._send_trials(worker, queue, [(place, 0) for place in range(warm_ups)])
            await self._drained(queue)

    @property
    def _alive(self) -> list[WorkerHandle]:
        return [worker for worker in self._workers if worker.alive]

    def _queue(self, cell: int, batch: int, trials: int, starts_ns: Sequence[int] | None = None) -> TrialQueue:
        queue = TrialQueue(cell, self._plan.cells[cell], batch, trials, starts_ns, self._run.spend_limit.limited)
        self._queues.append(queue)
        self._share_slots(queue)
        return queue

    def _share_slots(self, queue: TrialQueue) -> None:
        """Share the slots among living workers, and assign trials."""
        if alive := self._alive:
            queue.share([worker.number for worker in alive])
        for worker in alive:
            self._assign(worker, queue)

    def _assign(self, worker: WorkerHandle, queue: TrialQueue, ended: int = 0) -> None:
        if not self._stopping and (trials := queue.take(worker.number, ended)):
            self._send_trials(worker, queue, trials)

    def _send_trials(self, worker: WorkerHandle, queue: TrialQueue, places: list[tuple[int, int]]) -> None:
        resets = queue.plan.acquire == "reset" and queue.batch != WARM_UP
        trials = []
        for place, attempt in places:
            if self._refused(queue.cell):
                break
            number, spare = worker.next_trial(), worker.next_trial() if resets else -1
            trial = AssignedTrial(number, place, queue.due_ns(place), attempt, spare)
            worker.assigned[number] = Assigned(queue, trial)
            self._run.spend_limit.began(number, queue.cell)
            queue.assigned[worker.number] += 1
            trials.append(trial)
        if trials:
            slots = 1 if queue.batch == WARM_UP else queue.slots[worker.number]
            worker.send(Assign(queue.cell, queue.batch, slots, queue.elapsed_ns, trials))

    async def _drained(self, queue: TrialQueue) -> None:
        queue.check()
        await queue.drained.wait()
        self._queues.remove(queue)

    # ------------------------------------------------------------------------------------------- messages

    async def _attend(self, worker: WorkerHandle) -> None:
        """Record a worker's events and answer messages, until the end or loss of the worker."""
        try:
            messages = worker.early
            while messages or (messages := await worker.connection.receive()):
                for message in messages:
                    self._answer(worker, message)
                messages = []
        except Exception as error:  # invalid messages
            self._run.control.crashed(error)
        if not worker.finished:
            self._lost(worker)
        worker.alive = False

    def _record(self, worker: WorkerHandle, batch: list[events.Event]) -> None:
        if worker.clock is not None:
            self._run.journal.pass_on(worker.clock, batch)
        ended: Counter[TrialQueue] = Counter()
        for event in batch:
            if isinstance(event, events.TrialStarted):
                self._run.spend_limit.started(event.trial)
            trial = worker.follow(event)
            if trial is None or not isinstance(event, events.TrialEnded):
                continue
            self._count(trial.started, event)
            self._run.spend_limit.ended(event.trial)
            if (assigned := worker.assigned.pop(event.trial, None)) is not None:
                ended[assigned.queue] += 1
                assigned.queue.end(worker.number)
        progress = self._run.progress
        progress.in_flight = sum(len(handle.running) for handle in self._workers)
        for queue, count in ended.items():
            self._assign(worker, queue, count)
            for idle in self._alive:  # the last trials go to any free worker
                if idle is not worker and queue.waiting:
                    self._assign(idle, queue)
            queue.check()

    def _count(self, started: events.TrialStarted, end: events.TrialEnded) -> None:
        progress = self._run.progress
        if not started.warm_up:
            progress.counts[end.outcome] += 1
            progress.ended += 1
            progress.ok_of[started.cell] += end.outcome == events.OK

    def _answer(self, worker: WorkerHandle, message: FromWorker) -> None:
        if isinstance(message, Recorded):
            self._record(worker, message.events)
        elif isinstance(message, NotStarted):
            if (assigned := worker.assigned.pop(message.trial, None)) is not None:
                self._run.spend_limit.withdrawn(message.trial)
                assigned.queue.end(worker.number)
                self._assign(worker, assigned.queue)
        elif isinstance(message, Finished):
            self._finished(worker, message)

    def _refused(self, cell: int) -> bool:
        """Whether the run's limits refuse one more sandbox. Assigned trials are within the limits, and still run."""
        journal = self._run.journal
        if not self._stopping and (reason := self._run.spend_limit.refuses(cell)):
            journal.emit(events.Notice(journal.now(), "warning", f"stopped: {reason}"))
            self._limit = reason
            for queue in self._queues:
                queue.drop()
        return self._stopping

    def _finished(self, worker: WorkerHandle, message: Finished) -> None:
        worker.finished = True
        self.cleanup_failed |= message.cleanup_failed
        self._take_back(worker)
        if message.crash:
            self._run.control.crashed(RunCrashed(f"worker {worker.number}: {message.crash}"))

    # --------------------------------------------------------------------------------------------- a lost worker

    def _lost(self, worker: WorkerHandle) -> None:
        """End a lost worker's trials, assign the trials again, and remove the sandboxes."""
        worker.alive = False
        journal = self._run.journal
        text = f"worker {worker.number} was lost; {len(worker.running)} trials in flight are interrupted"
        journal.emit(events.Notice(journal.now(), "warning", text))
        ends: list[events.Event] = [*worker.interrupted()]
        if worker.clock is not None:
            journal.pass_on(worker.clock, ends)
        started = worker.running
        counted = sum(not trial.started.warm_up for trial in started.values())
        if counted:
            self._run.progress.counts[events.INTERRUPTED] += counted
        worker.running = {}
        self._take_back(worker, started)

        def is_ours(sandbox: str) -> bool:
            return self._run.entry.covers(sandbox) and worker.share.holds(sandbox)

        self._sweeps.add(asyncio.ensure_future(final_sweep(self._run.substrates, self._run.entry.run_id, is_ours)))
        if not self._alive and not self._stopping:
            fix = "taxtui run --resume measures the missing trials"
            self._run.control.crashed(RunCrashed("every worker was lost", fix=fix))
        for queue in list(self._queues):
            self._share_slots(queue)
            queue.check()

    def _take_back(self, worker: WorkerHandle, started: dict[int, RunningTrial] | None = None) -> None:
        """Queue a worker's assigned trials again, trials in ``started`` at most once.

        ``started`` is of a lost worker, whose other trials may have started unseen: the limits count each of them.
        """
        give_up = self._run.spend_limit.withdrawn if started is None else self._run.spend_limit.ended
        started = started or {}
        back: dict[TrialQueue, list[tuple[int, int]]] = {}
        for number, assigned in worker.assigned.items():
            give_up(number)
            attempt = assigned.trial.attempt + (number in started)
            if attempt < MOST_ATTEMPTS and assigned.queue.batch != WARM_UP and not self._stopping:
                back.setdefault(assigned.queue, []).append((assigned.trial.place, attempt))
        for queue in self._queues:
            queue.take_back(worker.number, back.get(queue, []))
            queue.check()
        worker.assigned.clear()
