"""The place where workers run: this process, child processes, or the nodes of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from costmodel import Clock, Event
from taxtui.runner.fanout.messages import Assignment, FromWorker, ToWorker
from taxtui.runner.journal import Journal


class Received(NamedTuple):
    """One read from a worker. Process the events first: messages may refer to the events."""

    events: list[Event]
    messages: list[FromWorker]
    closed: bool = False  # nothing more follows


class WorkerConnection(Protocol):
    """The run's end of a worker."""

    @property
    def clock(self) -> Clock | None:
        """The clock of the worker's events. None: before the first event, or with events already in the recording."""

    def begin(self, journal: Journal, crashed: Callable[[Exception], None]) -> None:
        """The recording exists. A worker of this process begins to write events there."""

    def send(self, message: ToWorker) -> None:
        """Send a message. After the worker's end messages are lost."""

    async def receive(self) -> Received:
        """Return the next events and messages, in order and once; after a short while there may be none.

        Raises:
            RecordingError: the worker's events are damaged or incomplete.
            TaxtuiError: the worker could not start.
        """

    async def close(self, patience_s: float) -> None:
        """Cancel a running worker, with ``patience_s`` to clean up. Idempotent."""


class Launcher(Protocol):
    """Starts workers."""

    async def start(self, assignment: Assignment) -> WorkerConnection:
        """Start a worker. Raises ``TaxtuiError``: no room for the worker."""

    async def close(self) -> None:
        """Release the launcher's resources."""
