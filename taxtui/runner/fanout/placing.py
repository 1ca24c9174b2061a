"""Where the workers of a run live. An engine starts them and moves bytes; it knows nothing of what these say."""

from __future__ import annotations

import asyncio
import contextlib
import io
import sys
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from taxtui.runner.cleanup import ledger
from taxtui.runner.fanout.orders import WorkerTask, Wrote, line
from taxtui.runner.fanout.worker_pipes import LINE_BYTES

HEARD_WITHIN_S: Final = 0.25
"""Who says nothing is looked after this often."""
GATHERED_S: Final = 0.005
"""What is written within it is heard together; what waits for an answer or for work is heard at once."""
MOST_BYTES: Final = 4 << 20
"""Of what a worker measured, at a time."""
LET_GO_S: Final = 10.0
"""A worker that has been told to end, and has cleaned up, may take so long to be gone."""
_WROTE: Final = line(Wrote())


class Heard(NamedTuple):
    """What came of a worker: first read ``data``, then the lines, of which each is true of what was read."""

    lines: list[bytes]
    data: bytes  # the next of its file
    over: bool = False  # nothing more comes of it


class WorkerPlace(Protocol):
    """A worker that was started somewhere."""

    def order(self, lines: bytes) -> None:
        """Tell it. What cannot be told to one that is gone is lost."""
        ...

    async def heard(self) -> Heard:
        """The next of what it says and writes, in order and once; within ``HEARD_WITHIN_S`` nothing may have come."""
        ...

    async def close(self, patience_s: float) -> None:
        """Let go of it: it is cancelled if it still runs, and has ``patience_s`` to clean up."""
        ...


class Placement(Protocol):
    """An engine: somewhere to start workers."""

    async def start(self, task: WorkerTask) -> WorkerPlace:
        """A worker with its task. Raises ``TaxtuiError``: there is no room for it."""
        ...

    async def close(self) -> None:
        """Let go of what the engine itself holds."""
        ...


class WorkerProcess:
    """A worker on this machine: a process, its pipes and its file."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        path: Path,
        gathered_s: float = GATHERED_S,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """As ``started`` makes it."""
        self._process, self._path = process, path
        self._gathered_s, self._most_bytes = gathered_s, most_bytes
        self._file: io.FileIO | None = None
        self._said: list[bytes] = []
        self._silent = asyncio.Event()  # set: there is something to be heard, or there will never be
        self._urgent = asyncio.Event()  # set: that is more than that it wrote
        self._over = self._more = False
        self._listening = asyncio.ensure_future(self._listen())

    @classmethod
    async def started(
        cls, task: WorkerTask, gathered_s: float = GATHERED_S, most_bytes: int = MOST_BYTES
    ) -> WorkerProcess:
        """A process with its task. What an earlier run of the same id has left in its place is removed."""
        path = ledger.worker_file(task.run_id, task.repetition, task.share.worker)
        path.unlink(missing_ok=True)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "taxtui.runner.fanout.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in the terminal is for the run
            limit=LINE_BYTES,
        )
        worker = cls(process, path, gathered_s, most_bytes)
        worker.order(line(task))
        return worker

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        async for said in self._process.stdout:
            self._said.append(said)
            self._silent.set()
            if said != _WROTE:
                self._urgent.set()
        self._over = True
        self._silent.set()
        self._urgent.set()

    def order(self, lines: bytes) -> None:
        """As ``WorkerPlace.order``."""
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(OSError, RuntimeError):  # it has ended, or died
            stdin.write(lines)

    async def heard(self) -> Heard:
        """As ``WorkerPlace.heard``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HEARD_WITHIN_S):
                await self._silent.wait()
                if not self._more:
                    async with asyncio.timeout(self._gathered_s):
                        await self._urgent.wait()
        over, said = self._over, self._said
        data = self._read()
        self._more = len(data) == self._most_bytes
        if self._more:  # what it said is true of what comes behind that
            return Heard([], data)
        self._said = []
        if not over:
            self._silent.clear()
            self._urgent.clear()
        return Heard(said, data, over)

    def _read(self) -> bytes:
        """What was appended to its file since; a worker that has not begun has none."""
        if self._file is None:
            try:
                self._file = self._path.open("rb", buffering=0)
            except OSError:
                return b""
        return self._file.read(self._most_bytes) or b""

    async def close(self, patience_s: float) -> None:
        """As ``WorkerPlace.close``."""
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
        with contextlib.suppress(OSError):  # of the others too; or there was never one
            self._path.parent.rmdir()


class LocalWorkers:
    """Workers are processes of this machine."""

    async def start(self, task: WorkerTask) -> WorkerPlace:
        """As ``Placement.start``."""
        return await WorkerProcess.started(task)

    async def close(self) -> None:
        """Nothing is held."""
