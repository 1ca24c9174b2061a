"""A worker in its own process: ``python -m taxtui.runner.fanout.worker_program``.

Standard input brings the assignment and then messages of the run; standard output takes messages and events of the
worker. Both are :mod:`~taxtui.runner.fanout.messages`. A slow reader delays no measurement. The end of the input
cancels the worker: it cleans up and does not outlive its run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time

import msgspec

from costmodel import events
from taxtui import __version__, gc_tuning
from taxtui.errors import located
from taxtui.recording.writer import bounded
from taxtui.runner import identity, preflight
from taxtui.runner.cleanup import ledger
from taxtui.runner.cleanup.reaping import conclude_cleanup, record_crash
from taxtui.runner.cleanup.watchdog import Watchdog
from taxtui.runner.fanout.messages import (
    LINE_BYTES,
    Assignment,
    Finished,
    FromWorker,
    Ready,
    Recorded,
    StartupError,
    decode_to_worker,
    line,
)
from taxtui.runner.fanout.worker import Worker
from taxtui.runner.journal import Journal
from taxtui.runner.redaction import scrub
from taxtui.runner.run_control import run_helpers


class WorkerPipes:
    """The worker's end of the pipes to the run, and the place of its journal's events."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.gather_s = 0.0  # from the assignment
        self._writer = writer
        self._events: list[events.Event] = []
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    async def opened(cls) -> WorkerPipes:
        """Open the pipes of this process. Other writes to standard output go to standard error from now on."""
        loop = asyncio.get_running_loop()
        out = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        reader = asyncio.StreamReader(limit=LINE_BYTES)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, out)
        return cls(reader, asyncio.StreamWriter(transport, protocol, None, loop))

    def add(self, event: events.Event) -> None:
        """Queue an event, and send the queue within ``gather_s``; a start at once: a create request follows."""
        event = bounded(event)
        msgspec.msgpack.encode(event)  # a value that no recording can contain is an error of the caller
        self._events.append(event)
        if isinstance(event, events.TrialStarted):
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.gather_s, self.flush)

    def flush(self) -> None:
        """Send the queued events."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._events:
            events, self._events = self._events, []
            self.write(Recorded(events))

    def send(self, message: FromWorker) -> None:
        """Send a message after the queued events; never waits for the reader."""
        self.flush()
        self.write(message)

    def write(self, message: FromWorker) -> None:
        if not self._writer.transport.is_closing():
            self._writer.write(line(message))

    async def close(self) -> None:
        """Return once everything has been read, or the reader is gone."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


class WorkerProgram:
    """A worker with separate substrates and watchdog."""

    def __init__(self, assignment: Assignment, pipes: WorkerPipes) -> None:
        self.assignment = assignment
        self.worker: Worker  # once the substrates are open
        self.clean = True  # nothing was made, or nothing is left
        self._pipes = pipes
        self._lost_run = asyncio.Event()
        pipes.gather_s = assignment.gather_s

    async def execute(self) -> None:
        """Measure, sweep and send ``Finished``. Raises errors of the start."""
        assignment, pipes = self.assignment, self._pipes
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self._lost_run.set)
        async with contextlib.AsyncExitStack() as stack:
            opened = await preflight.open_all(assignment.plan, stack)
            journal = Journal(pipes, lambda _: None)  # a pipe to a run that has ended never fails
            clock = events.Clock(assignment.clock, journal.anchor_ns, time.time_ns(), identity.host_digest())
            worker = self.worker = Worker(assignment, journal, opened, pipes.send, pipes.flush)
            control = worker.control
            entry = ledger.entry_of_this_process(assignment.plan, assignment.run_id, assignment.parts, assignment.share)
            watchdog = Watchdog(entry)
            try:
                await watchdog.wait_ready()
                await preflight.prepare(assignment.plan, assignment.run_id, opened.values(), journal)
                self.clean = False
                pipes.send(Ready(preflight.describe_cells(assignment.plan, opened), __version__, clock))
                helpers = self._listen(worker), self._end_with_run(worker), watchdog.keep(journal)
                async with run_helpers(control, *helpers):
                    await control.awaited(asyncio.ensure_future(worker.measure()))
                substrates = [substrate.substrate for substrate in opened.values()]
                swept = await conclude_cleanup(substrates, entry, journal)
                record_crash(control.crash, journal)
                self.clean = swept and control.crash is None
            finally:
                watchdog.release(clean=self.clean)
        crash = "" if control.crash is None else f"{located(control.crash)} {scrub(str(control.crash))}".rstrip()
        pipes.send(Finished(crash=crash, cleanup_failed=not swept))

    async def _listen(self, worker: Worker) -> None:
        """Pass messages of the run on to the worker. The run sends none before ``Ready``."""
        while text := await self._pipes.reader.readline():
            worker.receive(decode_to_worker(text))
        self._lost_run.set()

    async def _end_with_run(self, worker: Worker) -> None:
        """Clean up and end once the run is gone."""
        await self._lost_run.wait()
        worker.abandoned_by_run()


async def serve(pipes: WorkerPipes) -> None:
    """Be one worker, from the assignment on the first line to the last message."""
    first = await pipes.reader.readline()
    if not first:
        return  # the run died first
    try:
        await WorkerProgram(msgspec.json.decode(first, type=Assignment), pipes).execute()
    except Exception as error:
        pipes.send(StartupError.of(error))
    await pipes.close()


async def _main() -> None:
    await serve(await WorkerPipes.opened())


if __name__ == "__main__":
    gc_tuning.settle()
    asyncio.run(_main())
