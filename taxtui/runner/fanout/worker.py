"""The worker: runs assigned trials in this process."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping

from costmodel import events
from taxtui.errors import SandboxLost, WriteFailed
from taxtui.runner import health
from taxtui.runner.arrivals import wait_until
from taxtui.runner.fanout.messages import (
    FINISH,
    WARM_UP,
    Assign,
    AssignedTrial,
    Assignment,
    FromWorker,
    NotStarted,
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
from taxtui.runner.trial.trial import CLEANUP_TIMEOUT_S, EarlyEnd, Trial


class Worker:
    """Runs assigned trials until the message ``finish``. The caller opens substrates, writes the file and sweeps."""

    def __init__(
        self,
        assignment: Assignment,
        journal: Journal,
        opened: Mapping[str, Opened],
        report: Callable[[FromWorker], None],
        idle: Callable[[], None] = lambda: None,
        crashed: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        """Run nothing yet.

        Args:
            report: sends a message to the run; never waits.
            idle: called when no assigned trial waits for a slot, to send the events so far.
            crashed: called once with an unexpected error.
        """
        plan = assignment.plan
        self.control = RunControl(self._changed, crashed)
        self._assignment, self._journal, self._report, self._idle = assignment, journal, report, idle
        self._cells = []
        for number, cell in enumerate(plan.cells):
            substrate, availability = opened[str(cell.substrate)]
            self._cells.append(CellRun(number, cell, plan, substrate, availability, journal, assignment.repetition))
        self._batches: dict[int, _BatchShare] = {}  # the latest, by cell
        self._tasks: set[asyncio.Task[None]] = set()
        self._trials: set[Trial] = set()
        self._finishing = asyncio.Event()

    # ------------------------------------------------------------------------------------------------- messages

    def receive(self, message: ToWorker) -> None:
        if isinstance(message, Assign):
            self._assign(message)
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

    def _assign(self, message: Assign) -> None:
        share = self._batches.get(message.cell)
        if share is None or share.batch != message.batch:
            share = _BatchShare(message.batch, time.monotonic_ns() - message.elapsed_ns)
            self._batches[message.cell] = share
        share.widen(message.slots)
        for assigned in message.trials:
            share.trials += 1
            work = self._deliver(self._cells[message.cell], share, assigned)
            task = asyncio.ensure_future(self.control.guarded(work))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _changed(self, op: str) -> None:
        if op in (CANCEL, INTERRUPT):
            for trial in list(self._trials):
                trial.abandon(events.CANCELLED if op == CANCEL else events.INTERRUPTED)
        if self.control.crash is not None:
            self._finishing.set()

    # ------------------------------------------------------------------------------------------------- trials

    async def measure(self) -> None:
        """Run trials until the message ``finish``, and return once all have ended. Errors are in ``control`` then."""
        watching = health.watch(self._journal.emit, self._journal.now, lambda: len(self._trials))
        try:
            async with run_helpers(self.control, watching, self._flush_columns()):
                await self.control.guarded(self._until_finished())
        finally:
            await self._cancel_late()

    async def _until_finished(self) -> None:
        await self._finishing.wait()
        await asyncio.gather(*self._tasks)
        for cell in self._cells:
            await _retire(cell)

    async def _cancel_late(self) -> None:
        """Cancel trials in progress, after a cancellation of this worker."""
        if late := list(self._tasks):
            for task in late:
                task.cancel()
            await asyncio.wait(late, timeout=CANCELLED_WITHIN_S)

    async def _flush_columns(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            for trial in self._trials:
                trial.flush_columns()

    async def _deliver(self, cell: CellRun, share: _BatchShare, assigned: AssignedTrial) -> None:
        """Run an assigned trial in the next free slot; hand back a trial not started."""
        started = False
        async with share.gate:
            due_ns = None if assigned.due_ns is None else share.began_ns + assigned.due_ns
            if due_ns is not None:
                await wait_until(due_ns, self.control.stopped)
            with self.control.guard():
                started = await self._assigned(cell, share.batch, assigned, due_ns)
        share.trials -= 1
        if not started:
            self._report(NotStarted(assigned.trial))
        elif all(share.trials <= share.slots for share in self._batches.values()):
            self._idle()

    async def _assigned(self, cell: CellRun, batch: int, assigned: AssignedTrial, due_ns: int | None) -> bool:
        """Run an assigned trial; with acquire=reset after a warm-up, if needed. False: not started."""
        spare = None
        await self.control.unpaused.wait()  # trials meanwhile may take the sandbox to reset
        if cell.plan.acquire == "reset" and batch != WARM_UP and not cell.idle:
            spare = await self._trial(cell, WARM_UP, AssignedTrial(assigned.spare, 0, None), None)
            if spare is None:
                return False
        return await self._trial(cell, batch, assigned, due_ns, spare) is not None

    async def _trial(
        self, cell: CellRun, batch: int, assigned: AssignedTrial, due_ns: int | None, spare: Trial | None = None
    ) -> Trial | None:
        """Run one trial; None: not started. ``due_ns`` None: due at once. ``spare``: the warm-up before a reset."""
        await self.control.unpaused.wait()
        if self.control.stopping:
            return None
        scheduled_ns = time.monotonic_ns() if due_ns is None else due_ns
        resets, sandbox, lacking = cell.plan.acquire == "reset" and batch != WARM_UP, None, None
        if resets and cell.idle:
            spec, sandbox = cell.idle.pop()
        else:
            spec = cell.spec(self._assignment.run_id, self._assignment.parts[0], assigned.trial)
            if resets:
                lost = EarlyEnd(events.RESET, SandboxLost("no sandbox is left to reset"))
                lacking = (spare and spare.failure) or lost
        trial = Trial(
            cell,
            assigned.trial,
            spec,
            warm_up=batch == WARM_UP,
            block=max(0, batch),
            reuse=sandbox,
            attempt=assigned.attempt,
            lacking=lacking,
        )
        self._trials.add(trial)
        try:
            await trial.run(scheduled_ns - cell.anchor_ns)
        except WriteFailed:
            return None  # TrialStarted is not on the disk, so nothing was created
        finally:
            self._trials.discard(trial)
        if trial.reusable is not None:
            cell.idle.append((spec, trial.reusable))
        return trial


async def _retire(cell: CellRun) -> None:
    """Destroy the sandboxes kept for another reset."""
    while cell.idle:
        _, sandbox = cell.idle.pop()
        with contextlib.suppress(Exception):  # also an adapter's bug: the final sweep tries again and reports
            async with asyncio.timeout(CLEANUP_TIMEOUT_S):
                await sandbox.destroy()


class _BatchShare:
    """A worker's slots and unfinished trials of one batch, whose start is an instant of this process's own clock."""

    def __init__(self, batch: int, began_ns: int) -> None:
        self.batch = batch
        self.began_ns = began_ns
        self.trials = 0
        self.gate = asyncio.Semaphore(0)
        self.slots = 0

    def widen(self, slots: int) -> None:
        """Have this many slots."""
        while self.slots < slots:
            self.slots += 1
            self.gate.release()
