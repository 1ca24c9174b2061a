"""The pipes between a run and one of its workers, as the worker has them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from typing import Final

from taxtui.runner.fanout import orders
from taxtui.runner.fanout.orders import Telling

LINE_BYTES: Final = 64 << 20
"""The longest line that is read: a plan of many cells, each with its tier."""


class Lines:
    """The two pipes of a worker."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """As ``opened`` makes them."""
        self.reader = reader
        self._writer = writer

    @classmethod
    async def opened(cls) -> Lines:
        """Of this process. What else writes to standard output goes nowhere from now on."""
        loop = asyncio.get_running_loop()
        out = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        reader = asyncio.StreamReader(limit=LINE_BYTES)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, out)
        return cls(reader, asyncio.StreamWriter(transport, protocol, None, loop))

    @property
    def behind(self) -> bool:
        """Whether what was said before has not been read yet."""
        return self._writer.transport.get_write_buffer_size() > 0

    def tell(self, told: Telling) -> None:
        """Say it; never waits for whoever reads."""
        if not self._writer.transport.is_closing():
            self._writer.write(orders.line(told))

    async def close(self) -> None:
        """Once everything has been read, or nobody reads any more."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
