"""A Ray actor on a node of a cluster: starts one worker and relays the worker's bytes.

The run calls the methods remotely and may repeat a lost call: each poll has a number and acknowledges all earlier
polls. The worker is a separate process, so that the actor's work delays no measurement.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from taxtui.errors import TaxtuiError
from taxtui.runner.fanout.child_process import WorkerProcess
from taxtui.runner.fanout.launcher import Chunk
from taxtui.runner.fanout.messages import Assignment, StartupError
from taxtui.workloads import fixtures

GATHER_S: Final = 0.1
"""Output within this time travels together: a poll costs milliseconds of a measuring core."""
READ_BYTES: Final = 90 << 10
"""Most bytes of one poll. Ray sends up to 100 KiB with the answer, and stores larger answers first."""

decode_chunk = msgspec.msgpack.Decoder(Chunk).decode
encode = msgspec.msgpack.encode


class OrderedInbox:
    """Restores the order of numbered packets, which may arrive out of order or twice."""

    def __init__(self) -> None:
        self._next = 0
        self._early: dict[int, bytes] = {}

    def add(self, number: int, lines: bytes) -> bytes:
        """Add a packet; return the complete lines so far."""
        if number >= self._next:
            self._early[number] = lines
        ready = []
        while self._next in self._early:
            ready.append(self._early.pop(self._next))
            self._next += 1
        return b"".join(ready)


class NodeRelay:
    """The relay of one worker. All methods are remote, ``poll`` and ``write`` concurrent."""

    def __init__(self) -> None:
        self._worker: WorkerProcess | None = None
        self._inbox = OrderedInbox()
        self._one_poll = asyncio.Lock()
        self._number = -1
        self._reply = b""

    async def begin(self, encoded: bytes) -> bytes:
        """Start the worker of an ``Assignment``. Returns b"", or a ``StartupError`` as JSON."""
        if self._worker is None:
            try:
                assignment = msgspec.msgpack.decode(encoded, type=Assignment)
                if fixtures.wanted_here(assignment.plan):
                    await asyncio.to_thread(fixtures.ensure)
                self._worker = await WorkerProcess.started(assignment, gather_s=GATHER_S, read_bytes=READ_BYTES)
            except (TaxtuiError, OSError, msgspec.DecodeError) as error:
                return msgspec.json.encode(StartupError.of(error))
        return b""

    async def write(self, number: int, lines: bytes) -> None:
        assert self._worker is not None
        if ready := self._inbox.add(number, lines):
            self._worker.write(ready)

    async def poll(self, poll: int, number: int, lines: bytes) -> bytes:
        """Pass one packet on, and return the next ``Chunk`` as msgpack; the same chunk for the same poll."""
        await self.write(number, lines)
        assert self._worker is not None
        async with self._one_poll:
            if poll != self._number:
                self._reply = encode(await self._worker.read())
                self._number = poll
            return self._reply

    async def close(self, patience_s: float) -> None:
        if self._worker is not None:
            await self._worker.close(patience_s)
