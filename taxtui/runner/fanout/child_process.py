"""Workers in child processes of the run."""

from __future__ import annotations

import asyncio
import contextlib
import io
import sys
from pathlib import Path
from typing import Final

from taxtui.runner.cleanup import ledger
from taxtui.runner.fanout.launcher import ByteConnection, Chunk
from taxtui.runner.fanout.messages import LINE_BYTES, Assignment, Flushed, line

SILENCE_S: Final = 0.25
"""A read of a silent worker returns after this time."""
GATHER_S: Final = 0.005
"""Output within this time is read together. A message that needs an answer or trials is read at once."""
READ_BYTES: Final = 4 << 20
"""Most bytes of a worker's file in one read."""
_FLUSHED: Final = line(Flushed())


class WorkerProcess(ByteConnection):
    """A worker on this machine: process, pipes and file."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        path: Path,
        gather_s: float = GATHER_S,
        read_bytes: int = READ_BYTES,
    ) -> None:
        super().__init__()
        self._process, self._path = process, path
        self._gather_s, self._read_bytes = gather_s, read_bytes
        self._file: io.FileIO | None = None
        self._lines: list[bytes] = []
        self._readable = asyncio.Event()  # set: there is something to read, or there never will be again
        self._urgent = asyncio.Event()  # set: a line other than ``Flushed`` has arrived
        self._ended = self._more = self._closed = False
        self._listening = asyncio.ensure_future(self._listen())

    @classmethod
    async def started(
        cls, assignment: Assignment, gather_s: float = GATHER_S, read_bytes: int = READ_BYTES
    ) -> WorkerProcess:
        """Start a process with an assignment. An old file of the same run id is removed."""
        path = ledger.worker_file(assignment.run_id, assignment.repetition, assignment.share.worker)
        path.unlink(missing_ok=True)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "taxtui.runner.fanout.worker_program"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in the terminal is for the run
            limit=LINE_BYTES,
        )
        worker = cls(process, path, gather_s, read_bytes)
        worker.write(line(assignment))
        return worker

    @property
    def pid(self) -> int:
        return self._process.pid

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        async for text in self._process.stdout:
            self._lines.append(text)
            self._readable.set()
            if text != _FLUSHED:
                self._urgent.set()
        self._ended = True
        self._readable.set()
        self._urgent.set()

    def write(self, lines: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(OSError, RuntimeError):  # the worker has ended
            stdin.write(lines)

    async def read(self) -> Chunk:
        """As ``ByteConnection.read``; returns an empty chunk after ``SILENCE_S``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SILENCE_S):
                await self._readable.wait()
                if not self._more:
                    async with asyncio.timeout(self._gather_s):
                        await self._urgent.wait()
        ended, lines = self._ended, self._lines
        data = self._read_file()
        self._more = len(data) == self._read_bytes
        if self._more:  # the lines refer to data behind this
            return Chunk([], data)
        self._lines = []
        if not ended:
            self._readable.clear()
            self._urgent.clear()
        return Chunk(lines, data, ended)

    def _read_file(self) -> bytes:
        """Return the bytes appended to the worker's file, if any."""
        if self._file is None:
            try:
                self._file = self._path.open("rb", buffering=0)
            except OSError:
                return b""
        return self._file.read(self._read_bytes) or b""

    async def close(self, patience_s: float) -> None:
        if self._closed:
            return
        self._closed = True
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(patience_s):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        self._listening.cancel()
        if self._file is not None:
            self._file.close()
        self._path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the folder has files of other workers, or is missing
            self._path.parent.rmdir()


async def launch(assignment: Assignment) -> WorkerProcess:
    """Start a worker in a child process."""
    return await WorkerProcess.started(assignment)
