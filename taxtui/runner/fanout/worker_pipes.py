"""The worker's end of the pipes between it and its run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from typing import Final

from taxtui.runner.fanout.messages import FromWorker, line

LINE_BYTES: Final = 64 << 20
"""The longest line that is read: a plan of many cells, each with its tier."""


class WorkerPipes:
    """The two pipes of a worker."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Called by ``opened``."""
        self.reader = reader
        self._writer = writer

    @classmethod
    async def opened(cls) -> WorkerPipes:
        """Open those of this process. Other writes to standard output are discarded from now on."""
        loop = asyncio.get_running_loop()
        out = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        reader = asyncio.StreamReader(limit=LINE_BYTES)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, out)
        return cls(reader, asyncio.StreamWriter(transport, protocol, None, loop))

    @property
    def behind(self) -> bool:
        """Whether earlier messages have not been read yet."""
        return self._writer.transport.get_write_buffer_size() > 0

    def send(self, message: FromWorker) -> None:
        """Send a message; never waits for the reader."""
        if not self._writer.transport.is_closing():
            self._writer.write(line(message))

    async def close(self) -> None:
        """Return once everything has been read, or the reader is gone."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
