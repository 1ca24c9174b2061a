"""Workers in child processes of the run."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import Final

from taxtui.runner.fanout.launcher import ByteConnection
from taxtui.runner.fanout.messages import LINE_BYTES, Assignment, line

READ_BYTES: Final = 90 << 10
"""Most bytes of one read. Ray sends up to 100 KiB with the answer, and stores larger answers first."""


class WorkerProcess(ByteConnection):
    """A worker on this machine: process and pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        super().__init__()
        self._process = process

    @classmethod
    async def started(cls, assignment: Assignment) -> WorkerProcess:
        """Start a process with an assignment."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "taxtui.runner.fanout.worker_program"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in the terminal is for the run
            limit=LINE_BYTES,
        )
        worker = cls(process)
        worker.write(line(assignment))
        return worker

    @property
    def pid(self) -> int:
        return self._process.pid

    def write(self, lines: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(OSError, RuntimeError):  # the worker has ended
            stdin.write(lines)

    async def read(self) -> bytes:
        assert self._process.stdout is not None
        return await self._process.stdout.read(READ_BYTES)

    async def close(self, patience_s: float) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(patience_s):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
