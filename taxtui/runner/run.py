"""A run: opens substrates, writes the recording, has workers measure each repetition, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from costmodel import Prices, events
from taxtui.errors import RunCrashed
from taxtui.plan.spec import Plan
from taxtui.recording.writer import Recorder
from taxtui.runner import identity, preflight
from taxtui.runner.arrivals import Block
from taxtui.runner.cleanup import ledger
from taxtui.runner.cleanup.ledger import LedgerEntry, TrialShare
from taxtui.runner.cleanup.reaping import conclude_cleanup, record_crash
from taxtui.runner.cleanup.watchdog import Watchdog
from taxtui.runner.fanout.child_process import WorkerProcess
from taxtui.runner.fanout.dispatcher import Dispatcher, DispatchState
from taxtui.runner.fanout.launcher import WorkerConnection
from taxtui.runner.fanout.messages import Assignment
from taxtui.runner.fanout.ray_launcher import RayLauncher
from taxtui.runner.fanout.resume import ResumeState
from taxtui.runner.fanout.this_process import DirectConnection
from taxtui.runner.fanout.worker_handle import WorkerHandle, await_ready
from taxtui.runner.journal import Journal
from taxtui.runner.preflight import Opened
from taxtui.runner.run_control import CANCELLED_WITHIN_S, CLEANUP_WITHIN_S, Progress, RunControl, run_helpers
from taxtui.runner.spend_limit import SpendLimit

BUDGET: Final = "budget"
LEFT_BEHIND: Final = "{} earlier runs of this machine were not cleaned; taxtui clean lists the leftovers"


class Run:
    """One run, from its preconditions to its last frame. ``execute`` is called once.

    A single worker without repetitions is this process. Workers of a repeated run, and several workers, are child
    processes on this machine or on the nodes of a Ray cluster.
    """

    def __init__(
        self,
        plan: Plan,
        path: Path,
        run_id: str,
        *,
        prices: Prices | None = None,
        software: dict[str, str] | None = None,
        ray: str | None = None,
        resumed: ResumeState | None = None,
    ) -> None:
        """Open and write nothing yet.

        Args:
            prices: the sheet for the plan's limit in dollars.
            software: facts for the header, added to the facts of this machine.
            ray: the address of the Ray cluster of the workers.
            resumed: the recording to continue, under the same run id.

        Raises:
            TaxtuiError: Ray is not installed.
        """
        self.plan, self.path, self.run_id = plan, path, run_id
        planned = plan.repeat * sum(cell.trials for cell in plan.cells)
        self.progress = Progress(planned=planned, repetitions=plan.repeat)
        self.control = RunControl(self._changed)
        self.cleanup_failed = False  # something may be left, after the final sweep
        self.unmeasured: list[str] = []  # cells without one successful trial, once the run has ended
        self.outcome = "finished"
        self.clean = True  # nothing was made, or nothing is left
        self.left_behind: list[str] = []  # earlier unswept runs
        self._software, self._resumed = software or {}, resumed
        self._ray = None if ray is None else RayLauncher(ray, plan.workers)
        self._here = ray is None and plan.workers == 1 and plan.repeat == 1
        self._spend_limit = SpendLimit(plan, prices, created=resumed.sandboxes if resumed else 0)
        self._repetition = self._next_trial = self._clock = 0
        self._parts: tuple[str, ...] = ("",)
        self._opened: dict[str, Opened] = {}
        self._dispatcher: Dispatcher | None = None
        self._workers: list[WorkerHandle] = []
        if resumed:
            self._continue(resumed)
        self._next_clock = self._clock + 1

    def _continue(self, resumed: ResumeState) -> None:
        self.progress.counts, self.progress.ok_of = resumed.counts, resumed.ok_of
        self.progress.ended = self.progress.before = resumed.ended
        self._repetition, self._next_trial = resumed.repetition, resumed.first_trial
        self._clock = resumed.worker
        # A copy of the file may be continued elsewhere: sandboxes get different names.
        self._parts = (secrets.token_hex(2), *ledger.recorded_parts(self.run_id))

    async def _launch(self, assignment: Assignment) -> WorkerConnection:
        """Start a worker. Raises ``TaxtuiError``: no room for the worker."""
        if self._here:
            return DirectConnection(assignment, self._opened)
        return await (WorkerProcess.started if self._ray is None else self._ray.start)(assignment)

    def _changed(self, op: str) -> None:
        if self.control.limit:
            self.progress.limit = self.control.limit
        if self._dispatcher is not None:
            self._dispatcher.relay(op)

    # ----------------------------------------------------------------------------------------------------- the run

    async def execute(self) -> None:
        """Measure the whole plan. After any end follow: end of all trials, sweep, last frame.

        The watchdog is dismissed last, and only if nothing is left and nothing has crashed. An unexpected error is in
        ``control.crash`` afterwards.

        Raises:
            SubstrateUnavailable: a precondition fails; nothing was created or written.
            UsageError: the recording's file exists, or the plan asks for what a substrate cannot do.
            TaxtuiError: the watchdog or a worker cannot start; nothing was created.
        """
        async with contextlib.AsyncExitStack() as stack:
            await self._open(stack)
            if self._ray is not None:
                stack.push_async_callback(self._ray.close)
            stack.push_async_callback(self._close_workers, CLEANUP_WITHIN_S)
            cells = await self._start_workers()
            if self._resumed:
                self._resumed.prepare_append(cells)
            recorder = stack.enter_context(Recorder(self.path, append=self._resumed is not None))
            journal = Journal(recorder, self.control.write_failed)
            self._begin(journal, cells)  # first, so that any later error leaves a readable file
            entry = ledger.entry_of_this_process(self.plan, self.run_id, self._parts)
            watchdog = Watchdog(entry)
            try:
                await watchdog.wait_ready()
                if left_behind := ledger.unswept_runs(self.run_id):
                    self.left_behind = left_behind
                    journal.emit(events.Notice(journal.now(), "warning", LEFT_BEHIND.format(len(left_behind))))
                if self._here:  # worker processes prepare their own substrates
                    await preflight.prepare(self.plan, self.run_id, self._opened.values(), journal)
                helpers = journal.flush_regularly(), watchdog.keep(journal)
                async with run_helpers(self.control, *helpers):
                    await self._repeat(journal, entry)
                self._finish(journal)
            finally:
                watchdog.release(clean=self.clean)

    async def _open(self, stack: contextlib.AsyncExitStack) -> None:
        self._opened = await preflight.open_all(self.plan, stack)
        for number, cell in enumerate(self.plan.cells):
            substrate, availability = self._opened[str(cell.substrate)]
            if substrate.capabilities.paid:
                self._spend_limit.price(number, substrate, availability.effective.limits(self.plan.limits))

    def _begin(self, journal: Journal, cells: Sequence[events.Cell]) -> None:
        if self._resumed is None:
            software = identity.client_facts() | preflight.facts(self._opened.values()) | self._software
            journal.emit(
                events.Header(events.MAGIC, events.FORMAT_VERSION, self.run_id, identity.describe(self.plan), software)
            )
        journal.emit(events.Clock(self._clock, journal.anchor_ns, time.time_ns(), identity.host_digest()))
        for cell in cells:
            journal.emit(cell)

    # --------------------------------------------------------------------------------------------- repetitions

    async def _start_workers(self) -> list[events.Cell]:
        """Start the workers of a repetition, and return their cells. Raises ``TaxtuiError``."""
        self._workers = []
        for number in range(self.plan.workers):
            assignment = Assignment(
                plan=repetition_of(self.plan, self._repetition),
                run_id=self.run_id,
                share=TrialShare(number, self.plan.workers),
                clock=self._next_clock + number,
                repetition=self._repetition,
                parts=self._parts,
            )
            self._workers.append(WorkerHandle(assignment.share, await self._launch(assignment), self._next_trial))
        return await await_ready(self._workers)

    async def _close_workers(self, patience_s: float) -> None:
        """Close every worker, with ``patience_s`` to clean up. Idempotent."""
        await asyncio.gather(*(worker.connection.close(patience_s) for worker in self._workers))

    async def _repeat(self, journal: Journal, entry: LedgerEntry) -> None:
        """Repeat until the plan is done, a limit is reached, or the run is stopped."""
        began, plan = time.monotonic(), self.plan
        substrates = [item.substrate for item in self._opened.values()]
        state = DispatchState(entry, self.control, self.progress, self._spend_limit, journal, substrates)
        while True:
            share_s = None  # of the remaining budget, equal for each repetition
            if plan.budget_s is not None:
                share_s = (plan.budget_s - (time.monotonic() - began)) / (plan.repeat - self._repetition)
            if share_s is not None and share_s <= 0:
                self.control.stop(BUDGET, self._budget_text())
            await self._measure(state, share_s)
            if self.control.crash or self.control.stopping or self._repetition + 1 >= plan.repeat:
                return
            self._repetition += 1
            try:
                cells = await self._start_workers()
            except Exception as error:  # also without room for a process
                text = f"repetition {self._repetition + 1} could not begin: {getattr(error, 'problem', error)}"
                self.control.crashed(RunCrashed(text, fix=getattr(error, "fix", "")))
                return
            for cell in cells:
                journal.emit(cell)

    async def _measure(self, state: DispatchState, budget_s: float | None) -> None:
        """Measure one repetition, sweep, and close the workers."""
        plan = repetition_of(self.plan, self._repetition)
        self.progress.repetition = self._repetition + 1
        remaining = self._resumed.remaining if self._resumed else list[Block]
        dispatcher = self._dispatcher = Dispatcher(plan, state, self._workers, remaining)
        self.clean = False
        for worker in self._workers:
            worker.connection.begin(state.journal, self.control.crashed)
        helpers = [] if budget_s is None else [self._keep_budget(dispatcher, budget_s)]
        async with run_helpers(self.control, *helpers):
            measuring = asyncio.ensure_future(dispatcher.measure())
            await self.control.awaited(measuring, lambda: self._close_workers(CANCELLED_WITHIN_S))
        self._dispatcher = None
        swept = await conclude_cleanup(state.substrates, state.entry, state.journal)
        self.cleanup_failed |= dispatcher.cleanup_failed or not swept
        self.clean = swept and self.control.crash is None
        self._next_trial = max(self._next_trial, dispatcher.first_free)
        self._next_clock += len(self._workers)
        with self.control.guard():
            state.journal.flush()
        self._resumed = None  # the next repetition is complete
        await self._close_workers(CLEANUP_WITHIN_S)

    async def _keep_budget(self, dispatcher: Dispatcher, budget_s: float) -> None:
        await asyncio.sleep(budget_s)
        if self.plan.repeat == 1:
            self.control.stop(BUDGET, self._budget_text())
        elif not self.control.stopping:
            dispatcher.end_early()
            self.progress.limit = self._budget_text()

    def _budget_text(self) -> str:
        return f"--budget {self.plan.budget_s:g}s is used up"

    def _finish(self, journal: Journal) -> None:
        record_crash(self.control.crash, journal)
        self.outcome = (
            events.CRASHED
            if self.control.crash is not None
            else self.control.reason or (BUDGET if self.progress.limit else "finished")
        )
        self.clean = self.clean and self.control.crash is None
        self.unmeasured = [
            f"{cell.substrate} {cell.tier.name} x {cell.actions} {cell.mode}"
            for number, cell in enumerate(self.plan.cells)
            if not self.progress.ok_of[number]
        ]
        journal.emit(events.RunFinished(self.outcome, dict(sorted(self.progress.counts.items()))))


def repetition_of(plan: Plan, repetition: int) -> Plan:
    """Return the plan of one repetition, with the repetition's seed: the plan's own for the first."""
    seed = random.Random(f"{plan.seed}:{repetition}").getrandbits(32) if repetition else plan.seed
    return msgspec.structs.replace(plan, seed=seed)
