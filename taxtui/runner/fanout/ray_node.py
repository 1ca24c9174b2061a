"""A Ray actor on a node of a cluster: starts one worker and relays the worker's bytes.

The worker is a separate process, so that the actor's work delays no measurement.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from msgspec.structs import replace

from taxtui.errors import TaxtuiError
from taxtui.runner.fanout.child_process import WorkerProcess
from taxtui.runner.fanout.messages import Assignment, StartupError
from taxtui.workloads import fixtures

GATHER_S: Final = 0.1
"""Events within this time travel together: a read costs milliseconds of a measuring core."""


class NodeRelay:
    """The relay of one worker. All methods are remote, ``read`` and ``write`` concurrent."""

    def __init__(self) -> None:
        self._worker: WorkerProcess | None = None

    async def begin(self, encoded: bytes) -> bytes:
        """Start the worker of an ``Assignment``. Returns b"", or a ``StartupError`` as JSON."""
        try:
            assignment = msgspec.msgpack.decode(encoded, type=Assignment)
            if fixtures.wanted_here(assignment.plan):
                await asyncio.to_thread(fixtures.ensure)
            self._worker = await WorkerProcess.started(replace(assignment, gather_s=GATHER_S))
        except (TaxtuiError, OSError, msgspec.DecodeError) as error:
            return msgspec.json.encode(StartupError.of(error))
        return b""

    async def write(self, lines: bytes) -> None:
        assert self._worker is not None
        self._worker.write(lines)

    async def read(self) -> bytes:
        assert self._worker is not None
        return await self._worker.read()

    async def close(self, patience_s: float) -> None:
        if self._worker is not None:
            await self._worker.close(patience_s)
