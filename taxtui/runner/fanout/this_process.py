"""A worker in the run's process: events go straight into the recording."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from costmodel import Actions, Clock, Event, Health, Mark
from taxtui import __version__
from taxtui.runner import preflight
from taxtui.runner.fanout.launcher import Received, WorkerConnection
from taxtui.runner.fanout.messages import Assignment, Finished, FromWorker, Ready, ToWorker
from taxtui.runner.fanout.worker import Worker
from taxtui.runner.journal import Journal
from taxtui.runner.preflight import Opened
from taxtui.runner.run_control import CANCELLED_WITHIN_S


class ThisProcess:
    """The launcher of one worker in this process, with the run's open substrates."""

    def __init__(self, opened: Mapping[str, Opened]) -> None:
        self._opened = opened

    async def start(self, assignment: Assignment) -> WorkerConnection:
        return DirectConnection(assignment, self._opened)

    async def close(self) -> None:
        """Nothing to release."""


class DirectConnection:
    """Both ends of the connection between a run and a worker in one process."""

    def __init__(self, assignment: Assignment, opened: Mapping[str, Opened]) -> None:
        self.clock: Clock | None = None
        self._assignment, self._opened = assignment, opened
        self._events: list[Event] = []
        self._messages: list[FromWorker] = [Ready(preflight.describe_cells(assignment.plan, opened), __version__)]
        self._readable = asyncio.Event()
        self._readable.set()
        self._worker: Worker | None = None
        self._measuring: asyncio.Task[None] | None = None
        self._ended = False

    def begin(self, journal: Journal, crashed: Callable[[Exception], None]) -> None:
        self._worker = Worker(self._assignment, _FollowedJournal(journal, self._follow), self._opened, self)
        self._crashed = crashed
        self._measuring = asyncio.ensure_future(self._measure(self._worker))

    async def _measure(self, worker: Worker) -> None:
        try:
            await worker.measure()
        finally:
            self._ended = True
            self.report(Finished(failed_removals=worker.failed_removals))

    def _follow(self, event: Event) -> None:
        self._events.append(event)
        self._readable.set()

    def report(self, message: FromWorker) -> None:
        self._messages.append(message)
        self._readable.set()

    def flushed(self, *, idle: bool) -> None:
        """As ``Leader.flushed``; every event has reached the run already."""

    def crashed(self, error: Exception) -> None:
        self._crashed(error)

    def send(self, message: ToWorker) -> None:
        if self._worker is not None:
            self._worker.receive(message)

    async def receive(self) -> Received:
        await self._readable.wait()
        events, self._events = self._events, []
        messages, self._messages = self._messages, []
        if not self._ended:
            self._readable.clear()
        return Received(events, messages, self._ended)

    async def close(self, patience_s: float) -> None:
        """As ``WorkerConnection.close``. A running worker is cancelled: the time to clean up is over."""
        if self._measuring is not None and not self._measuring.done():
            self._measuring.cancel()
            await asyncio.wait({self._measuring}, timeout=min(patience_s, CANCELLED_WITHIN_S))


class _FollowedJournal:
    """Writes a worker's events into the recording, and passes starts and ends of trials to the run.

    Only a lost worker's commands matter to the run, and this worker is never lost alone.
    """

    def __init__(self, journal: Journal, follow: Callable[[Event], None]) -> None:
        self.anchor_ns = journal.anchor_ns
        self.now, self.flush = journal.now, journal.flush
        self._emit, self._follow = journal.emit, follow

    def emit(self, event: Event) -> None:
        self._emit(event)
        if not isinstance(event, Actions | Mark | Health):
            self._follow(event)
