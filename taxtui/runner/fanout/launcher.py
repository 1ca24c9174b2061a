"""A run's connection to each worker: direct, or by bytes to another process.

Between processes messages are lines, and events are bytes of the worker's file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from costmodel import Clock, Event, framing
from taxtui.runner.fanout.messages import Assignment, FromWorker, ToWorker, decode_from_worker, line
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


Launch = Callable[[Assignment], Awaitable[WorkerConnection]]
"""Starts a worker. Raises ``TaxtuiError``: no room for the worker."""


class Chunk(NamedTuple):
    """The bytes of one read. Process ``data`` before ``lines``: lines may refer to the data."""

    lines: list[bytes]
    data: bytes  # the next part of the worker's file
    closed: bool = False  # nothing more follows


class ByteConnection(ABC):
    """A ``WorkerConnection`` by bytes to another process, which writes a separate file."""

    def __init__(self) -> None:
        self.clock: Clock | None = None
        self._parser, self._chain = framing.FrameParser(), framing.Chain()

    @abstractmethod
    def write(self, lines: bytes) -> None:
        """Send lines to the worker. After the worker's end lines are lost."""

    @abstractmethod
    async def read(self) -> Chunk:
        """Return the next bytes, in order and once; after a short while there may be none."""

    @abstractmethod
    async def close(self, patience_s: float) -> None:
        """Cancel a running worker, with ``patience_s`` to clean up. Idempotent."""

    def begin(self, journal: Journal, crashed: Callable[[Exception], None]) -> None:  # noqa: B027
        """Nothing to do."""

    def send(self, message: ToWorker) -> None:
        self.write(line(message))

    async def receive(self) -> Received:
        chunk = await self.read()
        return Received(self._decode(chunk.data), [decode_from_worker(text) for text in chunk.lines], chunk.closed)

    def _decode(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        for offset, payload in self._parser.feed(data):
            batch = framing.decode(payload, offset)
            self._chain.add(batch, payload, offset)
            events += batch.events
        if self.clock is None and events:
            first = events.pop(0)
            assert isinstance(first, Clock)
            self.clock = first
        return events
