"""Connection to a worker in another process: messages are lines, events are bytes of the worker's file."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from costmodel import Clock, Event, framing
from taxtui.runner.fanout.launcher import Received
from taxtui.runner.fanout.messages import ToWorker, decode_from_worker, line
from taxtui.runner.journal import Journal


class Chunk(NamedTuple):
    """The bytes of one read. Process ``data`` before ``lines``: lines may refer to the data."""

    lines: list[bytes]
    data: bytes  # the next part of the worker's file
    closed: bool = False  # nothing more follows


class ByteTransport(Protocol):
    """Moves the bytes of one worker."""

    def write(self, lines: bytes) -> None:
        """Send lines to the worker. After the worker's end lines are lost."""

    async def read(self) -> Chunk:
        """Return the next bytes, in order and once; after a short while there may be none."""

    async def close(self, patience_s: float) -> None:
        """Cancel a running worker, with ``patience_s`` to clean up. Idempotent."""


class ByteConnection:
    """A :class:`~taxtui.runner.fanout.launcher.WorkerConnection` over a transport of bytes."""

    def __init__(self, transport: ByteTransport) -> None:
        self.clock: Clock | None = None
        self.transport = transport
        self._parser, self._chain = framing.FrameParser(), framing.Chain()

    def begin(self, journal: Journal, crashed: Callable[[Exception], None]) -> None:
        """Nothing to do: the worker has a separate file."""

    def send(self, message: ToWorker) -> None:
        self.transport.write(line(message))

    async def receive(self) -> Received:
        chunk = await self.transport.read()
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

    async def close(self, patience_s: float) -> None:
        await self.transport.close(patience_s)
