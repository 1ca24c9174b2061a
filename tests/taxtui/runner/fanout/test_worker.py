"""A worker in this process, with somebody at the other end of its pipes; tests/taxtui/commands has real ones."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest

from costmodel.recording.events import Event, TrialEnded, TrialStarted
from taxtui.errors import RecordingError
from taxtui.plan.spec import Plan
from taxtui.runner.cleanup.ledger import TrialShare
from taxtui.runner.fanout import messages
from taxtui.runner.fanout.messages import Assign, AssignedTrial, Assignment, Recorded, StartupError, WorkerCommand, line
from taxtui.runner.fanout.worker_program import WorkerPipes, WorkerProgram, serve
from taxtui.sandboxes.fake import FakeSubstrate
from taxtui.sandboxes.protocol import Availability
from tests.support.waiting import until
from tests.taxtui.runner.test_engine import creates, fake, plan

__all__ = ["fake"]

RUN_ID = "20260101t000000z-00000000"


class RecordedPipes(WorkerPipes):
    """Keeps the messages of a worker; its own messages come from the test."""

    def __init__(self) -> None:
        super().__init__(asyncio.StreamReader(), cast(Any, None))
        self.heard: list[messages.FromWorker] = []

    def write(self, message: messages.FromWorker) -> None:
        self.heard.append(message)

    def of(self, kind: type) -> list[Any]:
        return [told for told in self.heard if isinstance(told, kind)]


class Seat:
    """A worker, begun, at one end; the test is at the other."""

    def __init__(self, what: Plan) -> None:
        assignment = Assignment(plan=what, run_id=RUN_ID, share=TrialShare(1, 2), clock=2)
        self.lines = RecordedPipes()
        self.program = WorkerProgram(assignment, self.lines)
        self.running = asyncio.ensure_future(self.program.execute())

    async def begun(self) -> None:
        await until(lambda: bool(self.lines.of(messages.Ready)) or self.running.done(), "it has begun")

    def order(self, message: messages.ToWorker) -> None:
        self.lines.reader.feed_data(line(message))

    def deal(self, *trials: int, slots: int = 1, due_ns: int | None = None) -> None:
        assigned = [AssignedTrial(trial, place, due_ns) for place, trial in enumerate(trials)]
        self.order(Assign(0, 0, slots, 0, assigned))

    def events(self) -> list[Event]:
        return [event for message in self.lines.of(Recorded) for event in message.events]

    def ends(self) -> dict[int, str]:
        return {event.trial: event.outcome for event in self.events() if isinstance(event, TrialEnded)}

    async def ended(self, trials: int) -> None:
        await until(lambda: len(self.ends()) >= trials or self.running.done(), f"{trials} ended")

    async def finish(self) -> None:
        self.order(WorkerCommand("finish"))
        await self.running


async def for_ever(*_: Any) -> None:
    """A hook of the fake that never returns."""
    await asyncio.Event().wait()


async def test_a_start_is_handed_over_before_the_create_request(fake: FakeSubstrate) -> None:
    seat = Seat(plan(trials=8))
    started: list[int] = []

    async def look() -> None:
        started.extend(event.trial for event in seat.events() if isinstance(event, TrialStarted))

    fake.create_hook = look
    await seat.begun()
    seat.lines.gather_s = 3600.0
    seat.deal(1)
    await seat.ended(1)
    assert started == [1]
    await seat.finish()


@pytest.mark.parametrize("image_bytes", [10**30, -(10**30)])
async def test_a_value_that_no_recording_can_hold_is_named(fake: FakeSubstrate, image_bytes: int) -> None:
    seat = Seat(plan(trials=8))
    await seat.begun()
    seat.program.worker._cells[0].image_bytes = image_bytes
    seat.deal(1)
    await seat.running
    [end] = seat.lines.of(messages.Finished)
    assert end.crash.startswith("OverflowError")
    assert (fake.alive, creates(fake)) == ({}, 0)
    assert not [event for event in seat.events() if isinstance(event, TrialStarted | TrialEnded)]


async def test_what_it_has_not_begun_when_it_is_stopped_is_handed_back(fake: FakeSubstrate) -> None:
    seat = Seat(plan(trials=40))
    await seat.begun()
    seat.order(WorkerCommand("pause"))
    seat.deal(1, 3, 5, 7, due_ns=3_600_000_000_000)
    await until(lambda: len(seat.program.worker._batches) == 1, "it was dealt them")
    seat.order(WorkerCommand("resume"))
    seat.order(WorkerCommand("stop"))
    seat.order(Assign(0, 0, 1, 0, [AssignedTrial(9, 4, None)]))
    await seat.finish()
    assert sorted(told.trial for told in seat.lines.of(messages.NotStarted)) == [1, 3, 5, 7, 9]
    assert creates(fake) == 0


@pytest.mark.parametrize("op", ["cancel", "interrupt", ""])
async def test_cut_short_it_cleans_up_and_does_not_outlive_its_run(fake: FakeSubstrate, op: str) -> None:
    fake.ready_hook = for_ever
    seat = Seat(plan(trials=8))
    await seat.begun()
    seat.deal(1, 3, slots=2)
    await until(lambda: len(fake.alive) == 2, "both are there")
    if op:
        seat.order(WorkerCommand(op))
        await seat.finish()
    else:
        seat.lines.reader.feed_eof()
        await seat.running
    assert fake.alive == {}
    assert set(seat.ends().values()) == {"interrupted" if op == "interrupt" else "cancelled"}


async def test_a_bug_of_it_is_told_and_ends_it(fake: FakeSubstrate, monkeypatch: pytest.MonkeyPatch) -> None:
    for method in ("_trial", "_deliver"):
        seat = Seat(plan(trials=8))
        await seat.begun()
        monkeypatch.setattr(seat.program.worker, method, AsyncMock(side_effect=RuntimeError("boom")))
        seat.deal(1)
        await seat.running
        assert str(seat.program.worker.control.crash) == "boom"
        assert not seat.program.clean


async def served(*lines: bytes) -> list[messages.FromWorker]:
    """The messages of a worker program that reads a line, after the answer the others, and the end of its input."""
    (reader, writer), (theirs, mouth) = [await asyncio.open_connection(sock=end) for end in socket.socketpair()]
    serving = asyncio.ensure_future(serve(WorkerPipes(theirs, mouth)))
    heard = []
    for text in lines[:1]:
        writer.write(text)
        heard.append(messages.decode_from_worker(await reader.readline()))
    writer.writelines(lines[1:])
    writer.write_eof()
    await serving
    mouth.close()
    heard += [messages.decode_from_worker(text) async for text in reader]
    writer.close()
    return heard


async def test_a_program_cleans_up_at_the_end_of_its_input(fake: FakeSubstrate) -> None:
    fake.ready_hook = for_ever
    assignment = Assignment(plan=plan(trials=8), run_id=RUN_ID, share=TrialShare(1, 2), clock=2)
    deal = Assign(0, 0, 1, 0, [AssignedTrial(1, 0, None)])
    ready, *_, finished = await served(line(assignment), line(deal))
    assert isinstance(ready, messages.Ready)
    assert finished == messages.Finished()
    assert fake.alive == {}
    assert await served() == []


async def test_a_program_reports_the_error_of_its_start_with_how_to_fix_it(fake: FakeSubstrate) -> None:
    fake.availability = Availability(ok=False, detail="no daemon", fix="start it")
    assignment = Assignment(plan=plan(), run_id=RUN_ID, share=TrialShare(0, 1), clock=1)
    [error] = await served(line(assignment))
    assert error == StartupError("SubstrateUnavailable", "fake: no daemon", "start it")
    again = StartupError.of(RecordingError("run.msgpack is cut short", fix="recover it")).exception()
    assert type(again) is RecordingError
    assert (again.problem, again.fix) == ("run.msgpack is cut short", "recover it")


async def test_a_batch_begins_by_the_clock_of_the_worker_alone(
    fake: FakeSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    seat = Seat(plan(trials=8, warmup=0))
    await seat.begun()
    wall = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: wall() + 3_600_000_000_000)  # another machine's, an hour apart
    seat.deal(1, slots=1, due_ns=0)
    await seat.ended(1)
    [start] = [event for event in seat.events() if isinstance(event, TrialStarted)]
    assert 0 <= start.scheduled_ns <= start.start_ns
    await seat.finish()
