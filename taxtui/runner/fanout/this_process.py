"""A worker in the run's process: events go straight into the recording."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from costmodel import events
from taxtui import __version__
from taxtui.runner import preflight
from taxtui.runner.fanout.launcher import WorkerConnection
from taxtui.runner.fanout.messages import Assignment, Finished, FromWorker, Ready, Recorded, ToWorker
from taxtui.runner.fanout.worker import Worker
from taxtui.runner.journal import Journal
from taxtui.runner.preflight import Opened
from taxtui.runner.run_control import CANCELLED_WITHIN_S


class DirectConnection(WorkerConnection):
    """Both ends of the connection between a run and a worker in one process."""

    def __init__(self, assignment: Assignment, opened: Mapping[str, Opened]) -> None:
        """``opened``: the run's substrates, which the worker uses too."""
        self._assignment, self._opened = assignment, opened
        self._events: list[events.Event] = []
        self._messages: list[FromWorker] = [Ready(preflight.describe_cells(assignment.plan, opened), __version__)]
        self._readable = asyncio.Event()
        self._readable.set()
        self._worker: Worker | None = None
        self._measuring: asyncio.Task[None] | None = None
        self._ended = False

    def begin(self, journal: Journal, crashed: Callable[[Exception], None]) -> None:
        journal.follow = self._follow  # only a lost worker's commands matter to the run
        self._worker = Worker(self._assignment, journal, self._opened, self._report, crashed=crashed)
        self._measuring = asyncio.ensure_future(self._measure(self._worker))

    async def _measure(self, worker: Worker) -> None:
        try:
            await worker.measure()
        finally:
            self._ended = True
            self._report(Finished())

    def _follow(self, event: events.Event) -> None:
        self._events.append(event)
        self._readable.set()

    def _report(self, message: FromWorker) -> None:
        self._messages.append(message)
        self._readable.set()

    def send(self, message: ToWorker) -> None:
        if self._worker is not None:
            self._worker.receive(message)

    async def receive(self) -> list[FromWorker]:
        await self._readable.wait()
        events, self._events = self._events, []
        messages, self._messages = self._messages, []
        if not self._ended:
            self._readable.clear()
        return [Recorded(events), *messages] if events else messages

    async def close(self, patience_s: float) -> None:
        """As ``WorkerConnection.close``. A running worker is cancelled: the time to clean up is over."""
        if self._measuring is not None and not self._measuring.done():
            self._measuring.cancel()
            await asyncio.wait({self._measuring}, timeout=min(patience_s, CANCELLED_WITHIN_S))
