"""One of several processes that measure a run together: ``python -m taxtui.runner.fanout.worker``.

Standard input brings its task and then what to do; standard output takes the answers. Both are
:mod:`~taxtui.runner.fanout.orders`. Events go into a file of its own, at once and whether or not somebody reads them,
so that a slow reader slows no measurement. The end of its input cancels it: it cleans up and does not outlive its run.
"""

from __future__ import annotations

from taxtui import starting

starting.quickly(__name__)

import asyncio
import os
import signal
import time
from collections.abc import Awaitable
from pathlib import Path

import msgspec

from taxtui import __version__
from taxtui.errors import WriteFailed, located
from taxtui.plan.spec import SubstrateRef
from taxtui.recording.writer import Recorder
from taxtui.runner import interpreter
from taxtui.runner.arrivals import when_due
from taxtui.runner.cell import CellRun
from taxtui.runner.cleanup import ledger
from taxtui.runner.cleanup.ledger import LedgerEntry
from taxtui.runner.cleanup.watchdog import Watchdog
from taxtui.runner.engine import Run
from taxtui.runner.fanout import orders
from taxtui.runner.fanout.declined import Declined
from taxtui.runner.fanout.orders import (
    Asks,
    Began,
    Deal,
    DealtTrial,
    Do,
    Drained,
    Gone,
    Lanes,
    Order,
    Over,
    Permit,
    Unstarted,
    WorkerTask,
    Wrote,
)
from taxtui.runner.fanout.worker_pipes import Lines
from taxtui.runner.journal import Journal
from taxtui.runner.opening import Opened
from taxtui.runner.redaction import scrub
from taxtui.runner.resuming import Repetition


class WorkerRun(Run):
    """The part of a run that one worker measures: it is told which trials, and everything else is as in any run."""

    def __init__(self, task: WorkerTask, journal: Path, lines: Lines) -> None:
        """Nothing is opened or written yet."""
        super().__init__(task.plan, journal, task.run_id, part=Repetition(task.repetition))
        self._task = task
        self._lines = lines
        self._limited = task.plan.max_sandboxes is not None or task.plan.max_cost_usd is not None
        self._asked: dict[str, asyncio.Future[bool]] = {}
        self._shares: dict[tuple[int, int], _BlockShare] = {}
        self._spares: list[int] = []
        self._finishing = asyncio.Event()
        self._telling = False

    # ------------------------------------------------------------------------------------------- what it is told

    def obey(self, order: Order) -> None:
        """Do it, or have it done."""
        if isinstance(order, Deal):
            self._share(order.cell, order.block).add(order.work)
        elif isinstance(order, Lanes):
            self._share(order.cell, order.block).widen(order.lanes, order.began_unix_ns)
        elif isinstance(order, Drained):
            self._shares.pop((order.cell, order.block)).close()
        elif isinstance(order, Permit):
            if not (answer := self._asked.pop(order.sandbox)).done():
                answer.set_result(order.granted)
        else:
            self._do(order)

    def _do(self, order: Do) -> None:
        if order.op in ("pause", "resume"):
            self.pause(order.op == "pause")
        elif order.op == "finish":
            self._finishing.set()
        elif order.op == "stop":
            self.stop("interrupted")
        else:
            self.abandon("cancelled" if order.op == "cancel" else "interrupted")

    def stop(self, outcome: str, limit: str = "") -> None:
        """As ``Run.stop``; what it was dealt and has not begun is handed back."""
        super().stop(outcome, limit)
        for share in self._shares.values():
            share.hand_back()
        for answer in self._asked.values():
            if not answer.done():
                answer.set_result(False)

    def lost_run(self) -> None:
        """Whoever it measures for is gone: stop trials where they are, and clean up."""
        self.abandon("cancelled")
        self._finishing.set()

    @property
    def stopped(self) -> asyncio.Event:
        """Set once nothing more is started."""
        return self._stopped

    def _share(self, cell: int, block: int) -> _BlockShare:
        if (cell, block) not in self._shares:
            self._shares[cell, block] = _BlockShare(self, self._cells[cell], block)
        return self._shares[cell, block]

    # --------------------------------------------------------------------------------------- what differs in it

    def _entry(self, substrates: tuple[SubstrateRef, ...]) -> LedgerEntry:
        return LedgerEntry(
            run_id=self.run_id,
            substrates=substrates,
            create_timeout_s=self.plan.create_timeout_s,
            pid=os.getpid(),
            born=ledger.born(os.getpid()),
            share=self._task.share,
        )

    @property
    def _appends(self) -> bool:
        """Its file is its own, in every repetition."""
        return False

    def _journal_of(self, recorder: Recorder) -> Journal:
        self._journal = super()._journal_of(recorder)
        return self._journal

    def _look_back(self, journal: Journal) -> None:
        """Earlier runs are the business of whoever started this one."""

    def _begin(self, journal: Journal, substrates: dict[str, Opened]) -> None:
        self._take_clock(journal, self._task.clock)
        self._lay_out(journal, substrates)
        self._announced = self._described(substrates)

    def _helpers(self, journal: Journal, watchdog: Watchdog) -> list[Awaitable[None]]:
        return [*super()._helpers(journal, watchdog), self._tell_regularly()]

    async def _tell_regularly(self) -> None:
        while True:
            await asyncio.sleep(0.25)
            self.told_more()

    async def _run_cells(self) -> None:
        self._lines.tell(Began(self._announced, __version__))
        await self._finishing.wait()
        for share in self._shares.values():
            share.close()
        await asyncio.gather(*(self._guarded(share.ended()) for share in self._shares.values()))
        for cell in self._cells:
            await self._retire(cell)

    async def deliver(self, cell: CellRun, block: int, work: DealtTrial, scheduled_ns: int) -> None:
        """Run a trial, and say once its end can be read."""
        if work.spare >= 0:
            self._spares.append(work.spare)
        started = False
        with self._guard():
            started = await self._trial(cell, scheduled_ns, block, work.trial, work.attempt)
        if not started:
            self.hand_back(work)
        elif not self._telling:
            self._telling = True
            asyncio.get_running_loop().call_soon(self.told_more)

    def hand_back(self, work: DealtTrial) -> None:
        """It will not be started."""
        self._lines.tell(Unstarted(work.trial))

    def told_more(self) -> None:
        """Have what was measured so far in the file, and say so unless that was said and not yet heard."""
        self._telling = False
        self._journal.flush()
        if not self._lines.behind:
            self._lines.tell(Wrote(idle=any(share.idle for share in self._shares.values())))

    def _next_number(self) -> int:
        return self._spares.pop()

    async def _granted(self, cell: CellRun, sandbox: str) -> bool:
        if not self._limited:
            return True
        answer = self._asked[sandbox] = asyncio.get_running_loop().create_future()
        self._lines.tell(Asks(cell.cell, sandbox))
        return await answer and not self.stopping

    def _gone(self, sandbox: str) -> None:
        if self._limited:
            self._lines.tell(Gone(sandbox))

    def _is_ours(self, sandbox: str) -> bool:
        return self._task.share.holds(sandbox)

    def _crashed(self, error: Exception) -> None:
        super()._crashed(error)
        self._finishing.set()

    def _write_failed(self, error: WriteFailed) -> None:
        super()._write_failed(error)
        self._finishing.set()


class _BlockShare:
    """What a worker runs of one block: lanes that each take the next of what it was dealt."""

    def __init__(self, run: WorkerRun, cell: CellRun, block: int) -> None:
        self._run, self._cell, self._block = run, cell, block
        self._dealt: asyncio.Queue[DealtTrial | None] = asyncio.Queue()
        self._lanes: list[asyncio.Task[None]] = []
        self._began_ns = 0

    def widen(self, lanes: int, began_unix_ns: int) -> None:
        """Have so many lanes; a block that has begun elsewhere began then here too."""
        if not self._lanes:
            self._began_ns = time.monotonic_ns() - (time.time_ns() - began_unix_ns)
        while len(self._lanes) < lanes:
            self._lanes.append(asyncio.ensure_future(self._lane()))

    @property
    def idle(self) -> bool:
        """Whether a lane that is done would have to wait."""
        return self._dealt.empty()

    def add(self, work: list[DealtTrial]) -> None:
        """What is to be run, in this order."""
        for each in work:
            if self._run.stopping:
                self._run.hand_back(each)
            else:
                self._dealt.put_nowait(each)

    def hand_back(self) -> None:
        """What nobody has taken yet."""
        while not self._dealt.empty():
            if (work := self._dealt.get_nowait()) is not None:
                self._run.hand_back(work)

    def close(self) -> None:
        """Nothing more comes."""
        for _ in self._lanes:
            self._dealt.put_nowait(None)

    async def ended(self) -> None:
        """Once every lane is done."""
        await asyncio.gather(*self._lanes)

    async def _lane(self) -> None:
        while (work := await self._dealt.get()) is not None:
            scheduled_ns = await when_due(work.due_ns, self._began_ns, self._run.stopped)
            if scheduled_ns is None:
                self._run.hand_back(work)
            else:
                await self._run.deliver(self._cell, self._block, work, scheduled_ns)


async def _main() -> None:
    lines = await Lines.opened()
    first = await lines.reader.readline()
    if not first:
        return  # whoever started it died first
    task = msgspec.json.decode(first, type=WorkerTask)
    path = ledger.worker_file(task.run_id, task.repetition, task.share.worker)
    run = WorkerRun(task, path, lines)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, run.lost_run)

    async def listen() -> None:
        while order := await lines.reader.readline():
            run.obey(orders.decode_order(order))
        run.lost_run()

    listening = asyncio.ensure_future(listen())
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        await run.execute()
    except Exception as error:
        lines.tell(Declined.of(error))
    else:
        crash = "" if run.crash is None else f"{located(run.crash)} {scrub(str(run.crash))}".rstrip()
        write_error = "" if run.write_error is None else str(run.write_error)
        lines.tell(Over(crash=crash, write_error=write_error, cleanup_failed=run.cleanup_failed))
    finally:
        listening.cancel()
    await lines.close()


if __name__ == "__main__":
    interpreter.settle()
    asyncio.run(_main())
