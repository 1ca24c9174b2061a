"""The worker: runs assigned trials in this process."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Mapping
from typing import Protocol

from costmodel import events
from taxtui.errors import SubstrateError, WriteFailed
from taxtui.runner import health
from taxtui.runner.arrivals import when_due
from taxtui.runner.fanout.messages import (
    FINISH,
    WARM_UP,
    Assign,
    AssignedTrial,
    Assignment,
    BudgetAnswer,
    BudgetRequest,
    EndOfBatch,
    FromWorker,
    NotStarted,
    SandboxGone,
    Slots,
    ToWorker,
)
from taxtui.runner.journal import FLUSH_S, Journal
from taxtui.runner.preflight import Opened
from taxtui.runner.run_control import (
    CANCEL,
    CANCELLED_WITHIN_S,
    INTERRUPT,
    PAUSE,
    RESUME,
    STOP,
    RunControl,
    run_helpers,
)
from taxtui.runner.trial.cell import CellRun
from taxtui.runner.trial.trial import Trial


class Leader(Protocol):
    """The worker's connection to the run."""

    def report(self, message: FromWorker) -> None:
        """Send a message to the run; never waits."""

    def flushed(self, *, idle: bool) -> None:
        """Write the events so far, and make them readable. ``idle``: no assigned trial waits for a slot."""

    def crashed(self, error: Exception) -> None:
        """Report an unexpected error, once."""


class Worker:
    """Runs assigned trials until the message ``finish``. The caller opens substrates, writes the file and sweeps."""

    def __init__(self, assignment: Assignment, journal: Journal, opened: Mapping[str, Opened], leader: Leader) -> None:
        plan = assignment.plan
        self.control = RunControl(self._changed, leader.crashed)
        self.failed_removals = 0  # failed clean-ups of trials; the final sweep tries again
        self._assignment, self._journal, self._leader = assignment, journal, leader
        self._cells = []
        for number, cell in enumerate(plan.cells):
            _, substrate, availability = opened[str(cell.substrate)]
            self._cells.append(CellRun(number, cell, plan, substrate, availability, journal, assignment.repetition))
        self._limited = plan.max_sandboxes is not None or plan.max_cost_usd is not None
        self._requests: dict[str, asyncio.Future[bool]] = {}
        self._batches: dict[tuple[int, int], _BatchShare] = {}
        self._trials: set[Trial] = set()
        self._finishing = asyncio.Event()
        self._flushing = False

    # ------------------------------------------------------------------------------------------------- messages

    def receive(self, message: ToWorker) -> None:
        if isinstance(message, Assign):
            self._batch(message.cell, message.batch).add(message.trials)
        elif isinstance(message, Slots):
            self._batch(message.cell, message.batch).widen(message.slots, message.elapsed_ns)
        elif isinstance(message, EndOfBatch):
            self._batches.pop((message.cell, message.batch)).close()
        elif isinstance(message, BudgetAnswer):
            if not (answer := self._requests.pop(message.sandbox)).done():
                answer.set_result(message.granted)
        elif message.op in (PAUSE, RESUME):
            self.control.pause(message.op == PAUSE)
        elif message.op == FINISH:
            self._finishing.set()
        elif message.op == STOP:
            self.control.stop(events.INTERRUPTED)
        else:
            self.control.abandon(events.CANCELLED if message.op == CANCEL else events.INTERRUPTED)

    def abandoned_by_run(self) -> None:
        """The run is gone: stop trials where they are, and clean up."""
        self.control.abandon(events.CANCELLED)
        self._finishing.set()

    def _batch(self, cell: int, batch: int) -> _BatchShare:
        if (cell, batch) not in self._batches:
            self._batches[cell, batch] = _BatchShare(self, self._cells[cell], batch)
        return self._batches[cell, batch]

    def _changed(self, op: str) -> None:
        if op == STOP:  # unstarted trials go back
            for batch in self._batches.values():
                batch.hand_back()
            for answer in self._requests.values():
                if not answer.done():
                    answer.set_result(False)
        elif op in (CANCEL, INTERRUPT):
            for trial in list(self._trials):
                trial.abandon(events.CANCELLED if op == CANCEL else events.INTERRUPTED)
        if self.control.crash is not None or self.control.write_error is not None:
            self._finishing.set()

    # ------------------------------------------------------------------------------------------------- trials

    async def measure(self) -> None:
        """Run trials until the message ``finish``, and return once all have ended. Errors are in ``control`` then."""
        watching = health.watch(self._journal.emit, self._journal.now, lambda: len(self._trials))
        try:
            async with run_helpers(self.control, watching, self._flush_regularly()):
                await self.control.guarded(self._until_finished())
        finally:
            await self._cancel_late()

    async def _until_finished(self) -> None:
        await self._finishing.wait()
        for batch in self._batches.values():
            batch.close()
        await asyncio.gather(*(self.control.guarded(batch.ended()) for batch in self._batches.values()))
        for cell in self._cells:
            await _retire(cell)

    async def _cancel_late(self) -> None:
        """Cancel the slots with trials in progress, after a cancellation of this worker."""
        if late := [slot for batch in self._batches.values() for slot in batch.slots if not slot.done()]:
            for slot in late:
                slot.cancel()
            await asyncio.wait(late, timeout=CANCELLED_WITHIN_S)

    async def _flush_regularly(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            for trial in self._trials:
                trial.flush_columns()
            self._flush()

    def _flush(self) -> None:
        self._flushing = False
        self._leader.flushed(idle=any(batch.idle for batch in self._batches.values()))

    async def deliver(self, cell: CellRun, batch: int, assigned: AssignedTrial, scheduled_ns: int) -> None:
        """Run an assigned trial, and flush after the end."""
        started = False
        with self.control.guard():
            started = await self._assigned(cell, batch, assigned, scheduled_ns)
        if not started:
            self.hand_back([assigned])
        elif not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def hand_back(self, trials: Iterable[AssignedTrial]) -> None:
        for assigned in trials:
            self._leader.report(NotStarted(assigned.trial))

    async def _assigned(self, cell: CellRun, batch: int, assigned: AssignedTrial, scheduled_ns: int) -> bool:
        """Run an assigned trial; with acquire=reset after a warm-up, if needed. False: not started."""
        if cell.plan.acquire != "reset" or batch == WARM_UP:
            return await self._trial(cell, scheduled_ns, batch, assigned.trial, assigned.attempt)
        if not cell.idle:
            await self._trial(cell, time.monotonic_ns(), WARM_UP, assigned.spare)
            if not cell.idle:
                return False  # the failure is recorded; there is nothing to reset
        return await self._trial(cell, scheduled_ns, batch, assigned.trial, assigned.attempt, reuse=True)

    async def _trial(
        self, cell: CellRun, scheduled_ns: int, batch: int, number: int, attempt: int = 0, *, reuse: bool = False
    ) -> bool:
        """Run one trial; False: not started."""
        await self.control.unpaused.wait()
        if self.control.stopping:
            return False
        if reuse:
            spec, sandbox = cell.idle.pop()
        else:
            spec, sandbox = cell.spec(self._assignment.run_id, self._assignment.parts[0], number), None
            if not await self._granted(cell, spec.name):
                return False
        warm_up = batch == WARM_UP
        trial = Trial(cell, number, spec, warm_up=warm_up, block=max(0, batch), reuse=sandbox, attempt=attempt)
        self._trials.add(trial)
        try:
            await trial.run(scheduled_ns - cell.anchor_ns)
        except WriteFailed:
            return False  # TrialStarted is not on the disk, so nothing was created
        finally:
            self._trials.discard(trial)
        if trial.reusable is not None:
            cell.idle.append((spec, trial.reusable))
        elif self._limited:
            self._leader.report(SandboxGone(spec.name))
        self.failed_removals += trial.cleanup_failed
        return True

    async def _granted(self, cell: CellRun, sandbox: str) -> bool:
        """Whether the run's limits allow this sandbox."""
        if not self._limited:
            return True
        answer = self._requests[sandbox] = asyncio.get_running_loop().create_future()
        self._leader.report(BudgetRequest(cell.cell, sandbox))
        return await answer and not self.control.stopping


async def _retire(cell: CellRun) -> None:
    """Destroy the sandboxes kept for another reset."""
    while cell.idle:
        _, sandbox = cell.idle.pop()
        with contextlib.suppress(SubstrateError):  # the final sweep tries again and reports
            await sandbox.destroy()


class _BatchShare:
    """A worker's share of one batch: each slot takes the next assigned trial."""

    def __init__(self, worker: Worker, cell: CellRun, batch: int) -> None:
        self._worker, self._cell, self._batch = worker, cell, batch
        self._waiting: asyncio.Queue[AssignedTrial | None] = asyncio.Queue()
        self.slots: list[asyncio.Task[None]] = []
        self._began_ns = 0

    def widen(self, slots: int, elapsed_ns: int) -> None:
        """Have this many slots. The start of the batch is an instant of this process's own clock."""
        if not self.slots:
            self._began_ns = time.monotonic_ns() - elapsed_ns
        while len(self.slots) < slots:
            self.slots.append(asyncio.ensure_future(self._slot()))

    @property
    def idle(self) -> bool:
        """Whether a free slot would have to wait for a trial."""
        return self._waiting.empty()

    def add(self, trials: list[AssignedTrial]) -> None:
        if self._worker.control.stopping:
            self._worker.hand_back(trials)
        else:
            for assigned in trials:
                self._waiting.put_nowait(assigned)

    def hand_back(self) -> None:
        """Return the trials not taken by a slot."""
        while not self._waiting.empty():
            if (assigned := self._waiting.get_nowait()) is not None:
                self._worker.hand_back([assigned])

    def close(self) -> None:
        for _ in self.slots:
            self._waiting.put_nowait(None)

    async def ended(self) -> None:
        await asyncio.gather(*self.slots)

    async def _slot(self) -> None:
        while (assigned := await self._waiting.get()) is not None:
            scheduled_ns = await when_due(assigned.due_ns, self._began_ns, self._worker.control.stopped)
            if scheduled_ns is None:
                self._worker.hand_back([assigned])
            else:
                await self._worker.deliver(self._cell, self._batch, assigned, scheduled_ns)
