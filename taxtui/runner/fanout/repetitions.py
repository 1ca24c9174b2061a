"""A run that is repeated: one recording, whose repetitions are complete runs in processes of their own, in turn."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec

from costmodel.demand import Demand
from costmodel.errors import CostModelError
from costmodel.projection import project
from costmodel.recording import read_recording
from taxtui.errors import RunCrashed, TaxtuiError, WriteFailed
from taxtui.plan.repeating import MIN_RUNS
from taxtui.plan.spec import Plan
from taxtui.recording.events import CANCELLED, CRASHED, OK, RunFinished
from taxtui.recording.writer import Recorder
from taxtui.runner.fanout.declined import Declined
from taxtui.runner.fanout.ray_engine import RayChoice
from taxtui.runner.fanout.repetition import Assignment, Counted, Ended, Told
from taxtui.runner.progress import Progress
from taxtui.runner.resuming import AGAIN, Unfinished

BUDGET: Final = "budget"
_decode = msgspec.json.Decoder(Told).decode


class Repetitions:
    """Asked and told like :class:`~taxtui.runner.engine.Run`. ``execute`` is called once."""

    def __init__(
        self,
        plan: Plan,
        path: Path,
        run_id: str,
        *,
        prices: Path | None,
        software: dict[str, str],
        ray: RayChoice | None = None,
        resumed: Unfinished | None = None,
    ) -> None:
        """Nothing is started yet; ``prices`` is the sheet that the plan's limit is counted by.

        With ``resumed`` the last repetition goes on where it was cut short, and those that are to come follow.
        """
        self.plan = plan
        self.path = path
        self.run_id = run_id
        self._per_run = sum(cell.trials for cell in plan.cells)
        self.progress = Progress(planned=self._per_run, repetitions=plan.repeat)
        self.write_error: WriteFailed | None = None
        self.crash: Exception | None = None
        self.cleanup_failed = False
        self.unmeasured: list[str] = []
        self.outcome = "finished"
        self.settled: float | None = None  # with ``until``: what the slowest cell has come down to
        self._prices, self._software, self._ray, self._resumed = prices, software, ray, resumed
        before: Counter[str] = resumed.before if resumed else Counter()
        self._counts = dict(before)
        ended = sum(count for outcome, count in before.items() if outcome not in AGAIN)
        self._before = Progress(planned=0, ended=ended, ok=before[OK])  # of the repetitions that have ended
        self._taken = 0  # repetitions that have told how they ended
        self._began = 0.0  # the repetition that goes on, by the monotonic clock
        self._stopping = ""
        self._stopped = asyncio.Event()
        self._child: asyncio.subprocess.Process | None = None
        self._orders: list[str] = []  # given while no repetition goes on

    def stop(self, outcome: str, limit: str = "") -> None:
        """Launch nothing more; trials in flight come to their end."""
        self._stop(outcome, limit)
        self._order("stop")

    def abandon(self, outcome: str) -> None:
        """Launch nothing more and stop trials where they are; every clean-up still runs."""
        self._stop(outcome)
        self._order("cancel" if outcome == CANCELLED else "interrupt")

    def pause(self, paused: bool) -> None:
        """Hold back launches, or go on."""
        self._order("pause" if paused else "resume")

    @property
    def stopping(self) -> bool:
        """Whether launching has been stopped for good."""
        return bool(self._stopping)

    def _stop(self, outcome: str, limit: str = "") -> None:
        if not self._stopping:
            self._stopping, self.progress.limit = outcome, limit
        self._stopped.set()

    def _order(self, op: str) -> None:
        if self._child is None or self._child.stdin is None:
            self._orders = [] if op == "resume" else [op]
            return
        with contextlib.suppress(OSError, RuntimeError):  # it has ended meanwhile
            self._child.stdin.write(msgspec.json.encode({"op": op}) + b"\n")

    async def execute(self) -> None:
        """Repeat until the plan is done, its intervals are narrow, a limit is reached or somebody stops it.

        Raises:
            TaxtuiError, costmodel.errors.CostModelError: as ``Run.execute`` before anything was made.
        """
        began = time.monotonic()
        part = Assignment(
            plan=self.plan,
            path=str(self.path),
            run_id=self.run_id,
            software=self._software,
            prices=None if self._prices is None else str(self._prices),
            repetition=0,
            first_trial=0,
            sandboxes=0,
            usd="0",
            worker=0,
            ray=self._ray,
        )
        if (resumed := self._resumed) is not None:
            part = msgspec.structs.replace(
                part,
                repetition=resumed.repetition,
                first_trial=resumed.first_trial,
                sandboxes=resumed.sandboxes,
                resumed=True,
            )
        whole = True
        while whole and not self.stopping and part.repetition < self.plan.repeat:
            share_s = self._share_s(part.repetition, began)
            if share_s is not None and share_s <= 0:
                self._out_of_time()
                break
            ended = await self._one(msgspec.structs.replace(part, plan=self._with_budget(share_s)))
            whole = ended is not None and ended.clean and not ended.crash
            if ended is None:
                return  # what is at the end of the recording is not known, so nothing is written behind it
            self._take(ended)
            part = msgspec.structs.replace(
                part,
                repetition=part.repetition + 1,
                first_trial=ended.first_trial,
                sandboxes=ended.sandboxes,
                usd=ended.usd,
                worker=ended.worker,
                resumed=False,
            )
            if not whole or self.stopping or self._is_settled(part.repetition):
                break
            if part.repetition < self.plan.repeat and self.plan.gap_s:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self.plan.gap_s):
                        await self._stopped.wait()
        if self.write_error is None:
            self._finish()

    def _with_budget(self, share_s: float | None) -> Plan:
        return msgspec.structs.replace(self.plan, budget_s=share_s)

    def _share_s(self, repetition: int, began: float) -> float | None:
        """What this repetition may take of the budget: as much as each of those that are to come."""
        if self.plan.budget_s is None:
            return None
        to_come = (MIN_RUNS if self.plan.until is not None else self.plan.repeat) - repetition
        left_s = self.plan.budget_s - (time.monotonic() - began) - max(0, to_come - 1) * self.plan.gap_s
        return left_s / max(1, to_come)

    async def _one(self, task: Assignment) -> Ended | None:
        """One repetition; None where it died without a word. Raises what it refused to begin with."""
        self.progress.repetition = task.repetition + 1
        self._began = time.monotonic()
        self.progress.planned = self._per_run * (self.plan.repeat if self.plan.until is None else task.repetition + 1)
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "taxtui.runner.fanout.repetition"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in the terminal is for the one that repeats
            limit=1 << 20,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(msgspec.json.encode(task) + b"\n")
        self._child, waiting, self._orders = child, self._orders, []
        for op in waiting:
            self._order(op)
        told: Told | None = None
        try:
            async for line in child.stdout:
                told = _decode(line)
                if isinstance(told, Counted):
                    self._show(told.progress)
        finally:
            self._child = None
            child.stdin.close()  # which cancels it, should it go on
            code = await child.wait()
        if isinstance(told, Declined):
            if task.repetition == 0 or task.resumed:
                raise told.raised()
            self.crash = RunCrashed(f"repetition {task.repetition + 1} could not begin: {told.problem}", fix=told.fix)
            return _nothing(task)
        if isinstance(told, Ended):
            return told
        self.crash = RunCrashed(f"the process of repetition {task.repetition + 1} ended with code {code}")
        self.outcome = CRASHED
        return None

    def _show(self, progress: Progress) -> None:
        before = self._before
        self.progress.in_flight = progress.in_flight
        self.progress.ended = before.ended + progress.ended
        self.progress.ok = before.ok + progress.ok
        self.progress.left_s = self._left_s(progress.left_s)

    def _left_s(self, this_s: float | None) -> float | None:
        """Of this repetition, and as long as it takes in all for each that is to come; with ``until`` of this alone."""
        if this_s is None or self.plan.until is not None:
            return this_s
        to_come = self.plan.repeat - self.progress.repetition
        return this_s + to_come * (time.monotonic() - self._began + this_s + self.plan.gap_s)

    def _take(self, ended: Ended) -> None:
        self._show(ended.progress)
        self._before = msgspec.structs.replace(self.progress)
        for outcome, count in ended.counts.items():
            self._counts[outcome] = self._counts.get(outcome, 0) + count
        self.unmeasured = [c for c in ended.unmeasured if not self._taken or c in self.unmeasured]
        self._taken += 1
        self.cleanup_failed |= ended.cleanup_failed
        if ended.crash:
            self.crash = RunCrashed(ended.crash)
        if ended.write_error:
            self.write_error = WriteFailed(ended.write_error)
        if ended.outcome == BUDGET and not ended.out_of_time:
            self._stop(BUDGET, ended.progress.limit)
        elif ended.outcome == BUDGET and self.plan.until is None:
            self.progress.limit = self._budget_words()

    def _out_of_time(self) -> None:
        self._stop(BUDGET, self._budget_words())

    def _budget_words(self) -> str:
        return f"--budget {self.plan.budget_s:g}s is used up"

    def _is_settled(self, runs: int) -> bool:
        """Whether every cell's interval is narrow enough: that of held per success, how much runs differ included."""
        if self.plan.until is None or runs < MIN_RUNS:
            return False
        self.settled = half_width(self.path)
        return self.settled is not None and self.settled <= self.plan.until

    def _finish(self) -> None:
        self.outcome = CRASHED if self.crash is not None else self._stopping or "finished"
        if self.outcome == "finished" and self.progress.limit:
            self.outcome = BUDGET
        try:
            with Recorder(self.path, append=True) as recorder:
                recorder.add(RunFinished(self.outcome, dict(sorted(self._counts.items()))))
        except WriteFailed as error:
            self.write_error = error
        except TaxtuiError:  # the first repetition was stopped before there was a file
            return


def half_width(path: Path) -> float | None:
    """Half of the 95 % interval of held per success, relative to it, of the cell where that is widest.

    How much runs differ is part of it. None where a cell has no interval yet.
    """
    try:
        rows = project([read_recording(path)], Demand(trajectories=1, workers=1), each_level=True)
    except CostModelError:
        return None
    widths = []
    for row in rows:
        held = row.held_per_success_s
        if held is None or held.low is None or held.high is None or not held.value:
            return None
        widths.append((held.high - held.low) / 2 / held.value)
    return max(widths, default=None)


def _nothing(task: Assignment) -> Ended:
    """Of a repetition that could not begin."""
    return Ended(
        progress=Progress(planned=0),
        counts={},
        outcome=CRASHED,
        crash="",
        write_error="",
        cleanup_failed=False,
        clean=False,
        out_of_time=False,
        unmeasured=[],
        first_trial=task.first_trial,
        sandboxes=task.sandboxes,
        usd=task.usd,
        worker=task.worker,
    )
