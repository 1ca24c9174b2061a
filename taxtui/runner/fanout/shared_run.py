"""A run that several workers measure: it plans, deals out, limits and sweeps; they measure; it writes what they say."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from costmodel.measures import start_delay_ns
from taxtui import __version__
from taxtui.errors import RunCrashed, TaxtuiError, UsageError, WriteFailed
from taxtui.plan.spec import Plan
from taxtui.recording.events import CANCELLED, INTERRUPTED, Cell, Event, Notice, TrialEnded
from taxtui.recording.writer import Recorder
from taxtui.runner.arrivals import Block, schedule
from taxtui.runner.cell import CellRun
from taxtui.runner.cleanup.ledger import TrialShare
from taxtui.runner.cleanup.reaping import last_look
from taxtui.runner.engine import END_TIMEOUT_S, Run
from taxtui.runner.fanout.declined import Declined
from taxtui.runner.fanout.member import Dealt, Member, Unended
from taxtui.runner.fanout.orders import (
    Asks,
    Began,
    Deal,
    DealtTrial,
    Do,
    Drained,
    Gone,
    Lanes,
    Over,
    Permit,
    Telling,
    Unstarted,
    WorkerTask,
    decode_telling,
)
from taxtui.runner.fanout.placing import Placement
from taxtui.runner.fanout.sharing import SharedBlock
from taxtui.runner.journal import Journal, SharedJournal
from taxtui.runner.opening import Opened
from taxtui.runner.remaining import left_s
from taxtui.runner.resuming import Repetition
from taxtui.sandboxes.protocol import Substrate

WARM_UP: Final = -1
"""The number of a block of warm-ups."""
MOST_ATTEMPTS: Final = 2
"""A trial whose worker was lost is run once more."""


class SharedRun(Run):
    """As ``Run``, and the same from outside; its trials are run by ``plan.workers`` processes."""

    def __init__(self, plan: Plan, path: Path, run_id: str, *, placement: Placement, **more: Any) -> None:
        """As ``Run``; ``placement`` is where the workers are to live."""
        super().__init__(plan, path, run_id, **more)
        self._placement = placement
        self._members: list[Member] = []
        self._blocks: list[SharedBlock] = []
        self._substrates: list[Substrate] = []
        self._reaping: set[asyncio.Task[list[str]]] = set()
        self._early: dict[int, list[bytes]] = {}  # what was written before there was a recording

    # ------------------------------------------------------------------------------------- what a person can ask for

    def stop(self, outcome: str, limit: str = "") -> None:
        """As ``Run.stop``."""
        super().stop(outcome, limit)
        for block in self._blocks:
            block.drop()
        self._relay("stop")

    def abandon(self, outcome: str) -> None:
        """As ``Run.abandon``."""
        super().abandon(outcome)
        self._relay("cancel" if outcome == CANCELLED else "interrupt")

    def pause(self, paused: bool) -> None:
        """As ``Run.pause``."""
        super().pause(paused)
        self._relay("resume" if self._unpaused.is_set() else "pause")

    def _relay(self, op: str) -> None:
        for member in self._members:
            member.tell(Do(op))

    @property
    def going_on(self) -> Repetition:
        """As ``Run.going_on``."""
        after = super().going_on
        first_trial = max((m.first_free for m in self._members), default=after.first_trial)
        return after._replace(first_trial=first_trial, worker=after.worker + self.plan.workers)

    # ------------------------------------------------------------------------------------------------ how they begin

    async def _open(self, stack: contextlib.AsyncExitStack) -> dict[str, Opened]:
        """The substrates here, which sweep; and the workers, which have their own."""
        opened = await super()._open(stack)
        self._substrates = [each.substrate for each in opened.values()]
        stack.push_async_callback(self._placement.close)
        plan = msgspec.structs.replace(self.plan, budget_s=None, repeat=1, gap_s=0.0, until=None)
        for number in range(self.plan.workers):
            share = TrialShare(number, self.plan.workers)
            task = WorkerTask(
                plan=plan, run_id=self.run_id, share=share, clock=self._clock + 1 + number, repetition=self._repetition
            )
            place = await self._placement.start(task)
            stack.push_async_callback(place.close, END_TIMEOUT_S)
            self._members.append(Member(share, place, self._next_trial))
        await asyncio.gather(*map(self._welcome, self._members))
        self._require_alike()
        return opened

    async def _welcome(self, member: Member) -> None:
        """Return once it is ready. Raises what keeps it from that."""
        early = self._early[member.number] = []
        while True:
            heard = await member.place.heard()
            early.append(heard.data)
            for told in map(decode_telling, heard.lines):
                if isinstance(told, Declined):
                    raise told.raised()
                if isinstance(told, Began):
                    if told.version != __version__:
                        raise UsageError(
                            f"worker {member.number} has taxtui {told.version}, and this is {__version__}",
                            fix="install the same version everywhere",
                        )
                    member.cells = told.cells
                    return
            if heard.over:
                raise TaxtuiError(f"worker {member.number} ended before it had begun")

    def _require_alike(self) -> None:
        """Trials of one cell are measured in one environment."""
        first, *others = self._members
        for member in others:
            if member.cells != first.cells:
                raise UsageError(
                    f"workers 0 and {member.number} measure in different environments",
                    fix="place them on machines of one kind",
                )

    def _described(self, substrates: dict[str, Opened]) -> list[Cell]:
        return self._members[0].cells

    def _journal_of(self, recorder: Recorder) -> Journal:
        self._shared = SharedJournal(recorder, self._write_failed)
        return self._shared

    def _health(self, journal: Journal) -> list[Awaitable[None]]:
        """Of those who measure."""
        return []

    # ----------------------------------------------------------------------------------------------- what they do

    async def _run_cells(self) -> None:
        attending = [asyncio.ensure_future(self._attend(member)) for member in self._members]
        try:
            if self.stopping:
                self._relay("stop")
            if not self._unpaused.is_set():
                self._relay("pause")
            await super()._run_cells()
        finally:
            self._relay("finish")
            await asyncio.gather(*attending)
            await asyncio.gather(*self._reaping)

    async def _warm_up(self, cell: CellRun) -> None:
        """Each worker that has a part in the cell warms up what is its own."""
        if cell.plan.warmup and not self.stopping:
            block = self._shared_block(cell, WARM_UP, 0)
            for member in self._alive:
                if block.lanes.get(member.number):
                    self._deal_out(member, block, [(place, 0) for place in range(cell.plan.warmup)])
            await self._settled(block)

    async def _run_block(self, cell: CellRun, block: Block) -> None:
        starts_ns = schedule(self.plan, block)
        await self._settled(self._shared_block(cell, block.number, block.trials, starts_ns))

    @property
    def _alive(self) -> list[Member]:
        return [member for member in self._members if member.alive]

    def _shared_block(
        self, cell: CellRun, number: int, trials: int, starts_ns: Sequence[int] | None = None
    ) -> SharedBlock:
        block = SharedBlock(cell.cell, cell.plan, number, trials, time.time_ns(), starts_ns)
        self._blocks.append(block)
        self._spread(block)
        return block

    def _spread(self, block: SharedBlock) -> None:
        """Share out the lanes among those that there are, and fill them."""
        alive = self._alive
        wider = block.widen([member.number for member in alive]) if alive else {}
        for member in alive:
            if member.number in wider:
                lanes = 1 if block.number == WARM_UP else wider[member.number]
                member.tell(Lanes(block.cell, block.number, lanes, block.began_unix_ns))
            self._deal(member, block)

    def _deal(self, member: Member, block: SharedBlock, ended: int = 0) -> None:
        if not self.stopping and (taken := block.take(member.number, ended)):
            self._deal_out(member, block, taken)

    def _deal_out(self, member: Member, block: SharedBlock, taken: list[tuple[int, int]]) -> None:
        resets = block.plan.acquire == "reset" and block.number != WARM_UP
        dealt = []
        for place, attempt in taken:
            number, spare = member.next_trial(), member.next_trial() if resets else -1
            work = DealtTrial(number, place, block.due_ns(place), attempt, spare)
            member.dealt[work.trial] = Dealt(block, work)
            dealt.append(work)
        block.dealt(member.number, len(dealt))
        member.tell(Deal(block.cell, block.number, dealt))

    async def _settled(self, block: SharedBlock) -> None:
        block.look()
        await block.settled.wait()
        self._blocks.remove(block)
        for member in self._alive:
            if member.number in block.lanes:
                member.tell(Drained(block.cell, block.number))

    # ---------------------------------------------------------------------------------------- what is heard of them

    async def _attend(self, member: Member) -> None:
        """Write down what it measured and answer what it asks, until it has ended or is lost."""
        try:
            await self._listen(member)
        except Exception as error:  # what it says cannot be understood
            self._crashed(error)
        if not member.over:
            self._lost(member)
        member.alive = False

    async def _listen(self, member: Member) -> None:
        for data in self._early.pop(member.number):
            self._take(member, data)
        while True:
            heard = await member.place.heard()
            self._take(member, heard.data)
            for told in heard.lines:
                self._hear(member, decode_telling(told))
            if heard.over:
                return

    def _take(self, member: Member, data: bytes) -> None:
        events = member.read(data)
        if not events or member.clock is None:
            return
        self._shared.pass_on(member.clock, events)
        ended: dict[int, int] = {}
        blocks: dict[int, SharedBlock] = {}
        for event in events:
            trial = member.follow(event)
            if trial is None or not isinstance(event, TrialEnded):
                continue
            self._ended(trial, event)
            if (dealt := member.dealt.pop(event.trial, None)) is not None:
                key = id(dealt.block)
                blocks[key], ended[key] = dealt.block, ended.get(key, 0) + 1
                dealt.block.ended(member.number)
        self.progress.in_flight = sum(len(each.unended) for each in self._members)
        for key, block in blocks.items():
            self._deal(member, block, ended[key])
            for other in self._alive:  # the last ones go to whoever is free
                if other is not member and block.left:
                    self._deal(other, block)
            block.look()

    def _ended(self, trial: Unended, end: TrialEnded) -> None:
        cell = self._cells[trial.started.cell]
        cell.lasted(trial.lasted_s(end))
        if not trial.started.warm_up:
            self._count(cell, end.outcome)
            cell.start_delays_ns.append(start_delay_ns(trial.started.scheduled_ns, trial.started.start_ns))
        self.progress.left_s = left_s(self._cells, side_by_side=self.plan.side_by_side)

    def _hear(self, member: Member, told: Telling) -> None:
        if isinstance(told, Asks):
            member.tell(Permit(told.sandbox, self._permitted(member, told)))
        elif isinstance(told, Gone):
            member.permitted.discard(told.sandbox)
            self._spend_limit.ended(told.sandbox)
        elif isinstance(told, Unstarted):
            if (dealt := member.dealt.pop(told.trial, None)) is not None:
                dealt.block.ended(member.number)
                self._deal(member, dealt.block)
        elif isinstance(told, Over):
            self._last_word(member, told)

    def _permitted(self, member: Member, asks: Asks) -> bool:
        if self.stopping:
            return False
        cell = self._cells[asks.cell]
        if reason := self._spend_limit.refuses(asks.cell):
            self._used_up(cell, reason)
            return False
        self._spend_limit.began(asks.sandbox, asks.cell)
        member.permitted.add(asks.sandbox)
        return True

    def _last_word(self, member: Member, over: Over) -> None:
        member.over = True
        self.cleanup_failed |= over.cleanup_failed
        self._forget(member)
        if over.write_error:
            self._write_failed(WriteFailed(f"worker {member.number}: {over.write_error}"))
        if over.crash:
            self._crashed(RunCrashed(f"worker {member.number}: {over.crash}"))

    # -------------------------------------------------------------------------------------------- one that is lost

    def _lost(self, member: Member) -> None:
        """End its trials, have others run them again, and remove what it has left behind."""
        member.alive = False
        cell = self._cells[0]
        text = f"worker {member.number} was lost; {len(member.unended)} trials in flight are interrupted"
        cell.emit(Notice(cell.now(), "warning", text))
        ends = member.interrupted()
        if member.clock is not None:
            events: list[Event] = [*ends]
            self._shared.pass_on(member.clock, events)
        begun = member.unended
        counted = sum(not trial.started.warm_up for trial in begun.values())
        if counted:
            self.counts[INTERRUPTED] = self.counts.get(INTERRUPTED, 0) + counted
        member.unended = {}
        self._forget(member, begun)
        self._reaping.add(asyncio.ensure_future(last_look(self._substrates, self.run_id, member.share.holds)))
        if not self._alive and not self.stopping:
            self._crashed(RunCrashed("every worker was lost", fix="taxtui run --resume goes on with what is left"))
        for block in list(self._blocks):
            self._spread(block)
            block.look()

    def _forget(self, member: Member, begun: dict[int, Unended] | None = None) -> None:
        """What it was dealt goes back; what it had begun, once."""
        begun = begun or {}
        back: dict[int, list[tuple[int, int]]] = {}
        for number, dealt in member.dealt.items():
            attempt = dealt.work.attempt + (number in begun)
            if attempt < MOST_ATTEMPTS and dealt.block.number != WARM_UP and not self.stopping:
                back.setdefault(id(dealt.block), []).append((dealt.work.place, attempt))
        for block in self._blocks:
            block.again(member.number, back.get(id(block), []))
            block.look()
        member.dealt.clear()
        for sandbox in member.permitted:
            self._spend_limit.ended(sandbox)
        member.permitted.clear()
