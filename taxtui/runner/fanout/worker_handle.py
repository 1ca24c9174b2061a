"""A worker of a repetition, with assigned and running trials."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from costmodel import InCourse, events
from taxtui import __version__
from taxtui.errors import TaxtuiError, UsageError
from taxtui.runner.cleanup.ledger import TrialShare
from taxtui.runner.fanout.launcher import WorkerConnection
from taxtui.runner.fanout.messages import AssignedTrial, FromWorker, Ready, StartupError, ToWorker
from taxtui.runner.fanout.trial_queue import TrialQueue

LOST: Final[tuple[str, str]] = ("WorkerLost", "the trial's worker was lost")
"""Class and message of the error of a lost worker's trial."""


class Assigned(NamedTuple):
    """An assigned trial and the batch's queue."""

    queue: TrialQueue
    trial: AssignedTrial


class RunningTrial(NamedTuple):
    """A trial in progress."""

    started: events.TrialStarted
    course: InCourse


class WorkerHandle:
    """One worker of a run."""

    def __init__(self, share: TrialShare, connection: WorkerConnection, first_trial: int) -> None:
        """``first_trial``: the lowest possible trial number of the worker."""
        self.share = share
        self.connection = connection
        self.alive = True
        self.finished = False  # the last message has arrived
        self.cells: list[events.Cell] = []  # as recorded by this worker
        self.clock: events.Clock | None = None  # of the events; None: the events are in the recording
        self.early: list[FromWorker] = []  # from before there was a recording
        self.assigned: dict[int, Assigned] = {}  # by trial
        self.running: dict[int, RunningTrial] = {}  # by trial
        self._turn = -(-(first_trial - share.worker) // share.workers)

    @property
    def number(self) -> int:
        return self.share.worker

    def next_trial(self) -> int:
        self._turn += 1
        return self.share.number(self._turn - 1)

    @property
    def first_free(self) -> int:
        """The worker's lowest unused trial number."""
        return self.share.number(self._turn)

    def send(self, message: ToWorker) -> None:
        if self.alive:
            self.connection.send(message)

    def follow(self, event: events.Event) -> RunningTrial | None:
        """Add the worker's next event; return the trial after its end."""
        if isinstance(event, events.TrialStarted):
            self.running[event.trial] = RunningTrial(event, InCourse(event.start_ns))
        elif isinstance(event, events.Actions):
            self.running[event.trial].course.took(event)
        elif isinstance(event, events.PhaseEnded):
            if event.phase != events.CLEANUP:
                self.running[event.trial].course.passed(event)
        elif isinstance(event, events.TrialEnded):
            return self.running.pop(event.trial)
        return None

    def interrupted(self) -> list[events.TrialEnded]:
        """Return the ends of a lost worker's running trials, as early as possible."""
        error, message = LOST
        return [
            events.TrialEnded(number, events.INTERRUPTED, "", error, message, trial.course.earliest_end_ns, 0, "warm")
            for number, trial in self.running.items()
        ]


async def await_ready(workers: Sequence[WorkerHandle]) -> list[events.Cell]:
    """Return the cells of new workers, once all are ready.

    Raises:
        TaxtuiError: a worker cannot start, or has another version or environment.
    """
    await asyncio.gather(*map(_ready, workers))
    first, *rest = workers
    for worker in rest:  # a cell has one environment
        if worker.cells != first.cells:
            raise UsageError(
                f"workers 0 and {worker.number} measure in different environments",
                fix="use machines of one kind",
            )
    return first.cells


async def _ready(worker: WorkerHandle) -> None:
    """Return once a worker is ready. Raises the worker's error."""
    ready: Ready | None = None
    while ready is None:
        messages = await worker.connection.receive()
        if not messages:
            raise TaxtuiError(f"worker {worker.number} ended before it had begun")
        for message in messages:
            if isinstance(message, StartupError):
                raise message.exception()
            if isinstance(message, Ready):
                ready = message
            else:
                worker.early.append(message)
    if ready.version != __version__:
        raise UsageError(
            f"worker {worker.number} has taxtui {ready.version}, and this is {__version__}",
            fix="install the same version everywhere",
        )
    worker.cells, worker.clock = ready.cells, ready.clock
