"""A run on this machine: opens substrates, writes the recording, starts trials, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Final

from costmodel.pricing.sheet import Prices
from taxtui.errors import CleanupFailed, SubstrateError, WriteFailed, located
from taxtui.plan.spec import Plan, SubstrateRef
from taxtui.recording.events import (
    CANCELLED,
    CRASHED,
    FORMAT_VERSION,
    MAGIC,
    OK,
    Cell,
    Clock,
    Header,
    Notice,
    RunFinished,
)
from taxtui.recording.writer import Recorder
from taxtui.runner import health, identity, ledger, opening
from taxtui.runner.arrivals import Block, blocks, run_block, schedule
from taxtui.runner.cell import CellRun
from taxtui.runner.journal import Journal
from taxtui.runner.ledger import LedgerEntry
from taxtui.runner.opening import Opened
from taxtui.runner.progress import Progress
from taxtui.runner.reaping import last_look
from taxtui.runner.redaction import redact, vocabulary
from taxtui.runner.remaining import left_s
from taxtui.runner.resuming import Repetition, Unfinished
from taxtui.runner.spend_limit import SpendLimit, Used
from taxtui.runner.steered import Steered
from taxtui.runner.trial import Trial
from taxtui.runner.watchdog import Watchdog
from taxtui.sandboxes.kit.kept_output import KEPT_BYTES
from taxtui.sandboxes.protocol import Substrate

END_TIMEOUT_S: Final = 240.0
"""How long abandoned trials have to clean up after themselves; the sweep takes what they have not removed by then."""
LET_GO_S: Final = 5.0
"""How long a trial that has passed that deadline, and is cancelled in its clean-up, is waited for."""


LEFT_BEHIND: Final = "{} earlier runs of this machine were not cleaned; taxtui clean looks what is left of them"


class Run(Steered):
    """One run, from its preconditions to its last frame. ``execute`` is called once."""

    def __init__(
        self,
        plan: Plan,
        path: Path,
        run_id: str,
        *,
        prices: Prices | None = None,
        software: dict[str, str] | None = None,
        part: Repetition | None = None,
        resumed: Unfinished | None = None,
    ) -> None:
        """Nothing is opened or written yet. ``prices`` serve the plan's limit; ``software`` adds to the header.

        With ``part`` it is a repetition: only the first writes a header, and whoever repeats ends the recording. With
        ``resumed`` it, or its last repetition, goes on where that was cut short, under its id and in its file.
        """
        super().__init__(Progress(planned=sum(cell.trials for cell in plan.cells)))
        self.plan = plan
        self.path = path
        self.run_id = run_id
        if resumed:
            self.progress.ended, self.progress.ok = resumed.ended, resumed.ok
        self.write_error: WriteFailed | None = None
        self.crash: Exception | None = None  # what nobody expected, and ended the run
        self.cleanup_failed = False  # at its end: something may be left, after the last look
        self._failed_removals = 0  # of trials; the last look tries again
        self.unmeasured: list[str] = []  # cells without one ok trial, once the run has ended
        self.outcome = "finished"
        self.out_of_time = False  # its budget has stopped the launching
        self.clean = True  # nothing was made, or nothing is left
        self.left_behind: list[str] = []  # earlier runs that were not cleaned
        self._part = part
        self._resumed = resumed
        self._software = software or {}
        used = Used(resumed.sandboxes) if resumed else part and part.used
        self._spend_limit = SpendLimit(plan, prices, used=used)
        self.counts: dict[str, int] = dict(resumed.counts) if resumed else {}  # counted trials by outcome
        self._next_trial = resumed.first_trial if resumed else part.first_trial if part else 0
        self._cells: list[CellRun] = []

    @property
    def going_on(self) -> Repetition:
        """What a repetition after this one begins with."""
        repetition = self._part.repetition if self._part else 0
        return Repetition(repetition + 1, self._next_trial, self._spend_limit.used, self._clock + 1)

    # ---------------------------------------------------------------------------------------------------- the run

    async def execute(self) -> None:
        """Measure the whole plan. However it ends: trials are awaited, then comes the sweep, then the last frame.

        Only then is the watchdog dismissed, and only if nothing is left and nothing has crashed. What nobody expected
        is in ``crash`` afterwards.

        Raises:
            SubstrateUnavailable: a precondition fails; nothing was created or written.
            UsageError: the recording's file exists, or the plan asks for what a substrate cannot do.
            TaxtuiError: nobody could clean up after a crash, so nothing was created.
        """
        KEPT_BYTES.set(self.plan.limits.output_mib << 20)
        vocabulary()
        async with contextlib.AsyncExitStack() as stack:
            substrates = await self._open(stack)
            if self._resumed:
                self._resumed.take_up(self._described(substrates))
            recorder = stack.enter_context(contextlib.closing(Recorder(self.path, append=self._appends)))
            journal = self._journal_of(recorder)
            self._begin(journal, substrates)  # first of all, so that whatever follows leaves a readable file
            watchdog = Watchdog(self._entry(tuple(opened.ref for opened in substrates.values())))
            try:
                await watchdog.wait_ready()
                self.clean = False
                self._look_back(journal)
                await self._awaited(asyncio.ensure_future(self._measure(journal, watchdog)))
                swept = await self._sweep(journal, [opened.substrate for opened in substrates.values()])
                self._finish(journal)
                self.clean = swept and self.crash is None
            finally:
                watchdog.release(clean=self.clean)

    @property
    def _repetition(self) -> int:
        return self._part.repetition if self._part else 0

    @property
    def _appends(self) -> bool:
        """Whether its file is there already."""
        return self._resumed is not None or self._repetition > 0

    @property
    def _clock(self) -> int:
        """Which of the recording's workers writes."""
        return self._resumed.worker if self._resumed else self._part.worker if self._part else 0

    def _entry(self, substrates: tuple[SubstrateRef, ...]) -> LedgerEntry:
        """What a clean-up needs once this process has died."""
        return LedgerEntry(
            run_id=self.run_id,
            substrates=substrates,
            create_timeout_s=self.plan.create_timeout_s,
            pid=os.getpid(),
            born=ledger.born(os.getpid()),
        )

    def _journal_of(self, recorder: Recorder) -> Journal:
        return Journal(recorder, self._write_failed)

    def _look_back(self, journal: Journal) -> None:
        self.left_behind = ledger.left_behind(self.run_id)
        if self.left_behind:
            journal.emit(Notice(journal.now(), "warning", LEFT_BEHIND.format(len(self.left_behind))))

    async def _awaited(self, measuring: asyncio.Task[None]) -> None:
        """Return once every trial has ended; abandoned ones, and they alone, have a deadline."""
        abandoned = asyncio.ensure_future(self._abandoned.wait())
        try:
            await asyncio.wait({measuring, abandoned}, return_when=asyncio.FIRST_COMPLETED)
        finally:  # also where this task is cancelled: the trials are not, their clean-ups have to run
            abandoned.cancel()
            if not (measuring.done() or self._abandoned.is_set()):
                self.abandon(CANCELLED)
            _, late = await asyncio.wait({measuring}, timeout=END_TIMEOUT_S)
            if late:
                self._crashed(CleanupFailed(f"trials did not end within {END_TIMEOUT_S:g} s of being abandoned"))
                measuring.cancel()
                await asyncio.wait({measuring}, timeout=LET_GO_S)

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        """What nobody expected ends the run as everything else does: trials are abandoned, and clean up."""
        try:
            yield
        except Exception as error:
            self._crashed(error)

    def _crashed(self, error: Exception) -> None:
        self.crash = self.crash or error
        self.abandon(CRASHED)

    async def _open(self, stack: contextlib.AsyncExitStack) -> dict[str, Opened]:
        opened = await opening.open_all(self.plan, stack)
        for number, cell in enumerate(self.plan.cells):
            substrate = opened[str(cell.substrate)].substrate
            if substrate.capabilities.paid:
                self._spend_limit.price(number, substrate, self.plan.limits)
        return opened

    def _begin(self, journal: Journal, substrates: dict[str, Opened]) -> None:
        """Say what the file is, whose clock follows and what is measured."""
        client = identity.client_facts()
        software = client | opening.facts(substrates.values()) | self._software
        if self._repetition == 0 and self._resumed is None:
            journal.emit(Header(MAGIC, FORMAT_VERSION, self.run_id, identity.describe(self.plan), software))
        self._take_clock(journal, self._clock)
        self._lay_out(journal, substrates)
        for cell, described in zip(self._cells, self._described(substrates), strict=True):
            cell.ok = self._resumed.ok_of[cell.cell] if self._resumed else 0
            journal.emit(described)

    def _described(self, substrates: dict[str, Opened]) -> list[Cell]:
        return opening.described_cells(self.plan, substrates)

    def _take_clock(self, journal: Journal, worker: int) -> None:
        journal.emit(Clock(worker, journal.anchor_ns, time.time_ns(), identity.host_digest()))

    def _lay_out(self, journal: Journal, substrates: dict[str, Opened]) -> None:
        for number, plan in enumerate(self.plan.cells):
            _, substrate, found = substrates[str(plan.substrate)]
            self._cells.append(CellRun(number, plan, self.plan, substrate, found, journal, self._repetition))

    def _helpers(self, journal: Journal, watchdog: Watchdog) -> list[Awaitable[None]]:
        """What goes on beside the trials."""

        def replaced() -> None:
            journal.emit(Notice(journal.now(), "warning", "the watchdog has died; another has taken its place"))

        work: list[Awaitable[None]] = [journal.flush_regularly(self._trials), watchdog.keep(replaced)]
        if self.plan.budget_s is not None:
            work.append(self._keep_budget(self.plan.budget_s))
        return work

    def _health(self, journal: Journal) -> list[Awaitable[None]]:
        return [health.watch(journal.emit, journal.now, lambda: self.progress.in_flight)]

    async def _measure(self, journal: Journal, watchdog: Watchdog) -> None:
        work = [*self._health(journal), *self._helpers(journal, watchdog)]
        helpers = [asyncio.ensure_future(self._guarded(helper)) for helper in work]
        try:
            await self._guarded(self._run_cells())
        finally:
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)

    async def _guarded(self, work: Awaitable[object]) -> None:
        with self._guard():
            await work

    async def _run_cells(self) -> None:
        for cell in self._cells:
            if self._left(blocks(self.plan, [cell.cell])):
                await self._warm_up(cell)
        groups: dict[str, list[int]] = {}
        for number in range(len(self._cells)):
            side = str(self.plan.cells[number].substrate) if self.plan.side_by_side else ""
            groups.setdefault(side, []).append(number)
        await asyncio.gather(*(self._guarded(self._run_blocks(blocks(self.plan, group))) for group in groups.values()))
        for cell in self._cells:
            cell.tell_start_delays()
            await self._retire(cell)

    async def _warm_up(self, cell: CellRun) -> None:
        for _ in range(cell.plan.warmup):
            await self._trial(cell, time.monotonic_ns(), block=-1)

    def _left(self, order: list[Block]) -> list[Block]:
        return self._resumed.left(order) if self._resumed else order

    async def _run_blocks(self, order: list[Block]) -> None:
        for block in self._left(order):
            if self._stopping:
                return
            await self._run_block(self._cells[block.cell], block)

    async def _run_block(self, cell: CellRun, block: Block) -> None:
        async def launch(scheduled_ns: int) -> None:
            await self._guarded(self._trial(cell, scheduled_ns, block=block.number))

        starts_ns = schedule(self.plan, block)
        await run_block(block.trials, starts_ns, cell.plan.concurrency, launch, self._stopped)

    def _next_number(self) -> int:
        number, self._next_trial = self._next_trial, self._next_trial + 1
        return number

    async def _trial(
        self, cell: CellRun, scheduled_ns: int, block: int, number: int | None = None, attempt: int = 0
    ) -> bool:
        """One trial; ``block`` −1 is a warm-up. With acquire=reset the sandbox before it is made by a warm-up too.

        ``number`` where it was given one, ``attempt`` at its work. False: it was not started.
        """
        await self._unpaused.wait()
        warm_up = block < 0
        resets = cell.plan.acquire == "reset"
        if resets and not warm_up and not cell.idle:
            await self._trial(cell, time.monotonic_ns(), block=-1)
            if not cell.idle:
                return False  # its failure is in the recording; there is nothing to reset
        if self._stopping:
            return False
        reuse = None
        if resets and not warm_up:
            spec, reuse = cell.idle.pop()
        number = self._next_number() if number is None else number
        if reuse is None:
            spec = cell.spec(self.run_id, number)
            if not await self._granted(cell, spec.name):
                return False
        trial = Trial(cell, number, spec, warm_up=warm_up, block=max(0, block), reuse=reuse, attempt=attempt)
        self._trials.add(trial)
        self.progress.in_flight += 1
        began = time.monotonic()
        try:
            await trial.run(scheduled_ns - cell.anchor_ns)
        except WriteFailed:
            return False  # TrialStarted is not on the disk, so nothing was created
        finally:
            self._trials.discard(trial)
            self.progress.in_flight -= 1
        if trial.reusable and trial.sandbox is not None:
            cell.idle.append((spec, trial.sandbox))
        else:
            self._gone(spec.name)
        self._failed_removals += trial.cleanup_failed
        cell.lasted(time.monotonic() - began)
        if not warm_up:
            self._count(cell, trial.outcome)
            cell.start_delays_ns.append(trial.start_delay_ns)
        self.progress.left_s = left_s(self._cells, side_by_side=self.plan.side_by_side)
        return True

    def _count(self, cell: CellRun, outcome: str) -> None:
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        self.progress.ended += 1
        self.progress.ok += outcome == OK
        cell.ended += 1
        cell.ok += outcome == OK

    async def _granted(self, cell: CellRun, sandbox: str) -> bool:
        """Whether this sandbox may be made; one that would pass a limit ends the launching."""
        if reason := self._spend_limit.refuses(cell.cell):
            self._used_up(cell, reason)
            return False
        self._spend_limit.began(sandbox, cell.cell)
        return True

    def _gone(self, sandbox: str) -> None:
        self._spend_limit.ended(sandbox)

    def _used_up(self, cell: CellRun, reason: str) -> None:
        cell.emit(Notice(cell.now(), "warning", f"stopped: {reason}"))
        self.stop("budget", reason)

    async def _retire(self, cell: CellRun) -> None:
        """Destroy the sandboxes that were kept for another reset."""
        while cell.idle:
            _, sandbox = cell.idle.pop()
            with contextlib.suppress(SubstrateError):  # the sweep that follows tries again and reports
                await sandbox.destroy()

    async def _sweep(self, journal: Journal, substrates: list[Substrate]) -> bool:
        """A last look by label at every substrate; True when nothing of this run is left anywhere."""
        left = await last_look(substrates, self.run_id, self._is_ours)
        for text in left:
            journal.emit(Notice(journal.now(), "error", f"{text}; taxtui clean --run {self.run_id} --force"))
        if not left and (failed := self._failed_removals):
            text = f"the last look found nothing left; {failed} clean-up{'s' if failed > 1 else ''} had failed before"
            journal.emit(Notice(journal.now(), "info", text))
        self.cleanup_failed |= bool(left)
        return not left

    def _is_ours(self, sandbox: str) -> bool:
        return True

    def _finish(self, journal: Journal) -> None:
        with self._guard():
            journal.flush()
        if self.crash is not None:
            text = f"crashed: {located(self.crash)} {redact(self.crash)[1]}"
            journal.emit(Notice(journal.now(), "error", text.rstrip()))
        self.outcome = CRASHED if self.crash is not None else self._stopping or "finished"
        self.unmeasured = [str(cell) for cell in self._cells if not cell.ok]
        if self._part is None:
            journal.emit(RunFinished(self.outcome, dict(sorted(self.counts.items()))))
        else:
            journal.flush()

    def _write_failed(self, error: WriteFailed) -> None:
        self.write_error = error
        self.abandon("write_failed")

    async def _keep_budget(self, budget_s: float) -> None:
        await asyncio.sleep(budget_s)
        self.out_of_time = not self._stopping
        self.stop("budget", f"--budget {budget_s:g}s is used up")
