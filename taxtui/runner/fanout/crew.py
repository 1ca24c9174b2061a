"""The workers of one repetition: started together, and refused where they would measure different things."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self

from taxtui import __version__
from taxtui.errors import TaxtuiError, UsageError
from taxtui.runner.fanout.launcher import Launcher, Received
from taxtui.runner.fanout.messages import Assignment, Ready
from taxtui.runner.fanout.startup_error import StartupError
from taxtui.runner.fanout.worker_handle import WorkerHandle
from taxtui.runner.run_control import CLEANUP_WITHIN_S


class Crew:
    """The workers of one repetition at a time. The end of the context closes them."""

    def __init__(self, launcher: Launcher) -> None:
        """Start nothing yet."""
        self.workers: list[WorkerHandle] = []
        self._launcher = launcher

    async def launch(self, assignments: Sequence[Assignment], first_trial: int) -> list[WorkerHandle]:
        """Start a worker for each assignment, in place of earlier ones, and return once all are ready.

        Raises:
            TaxtuiError: a worker cannot start, or it is of another version or environment.
        """
        self.workers = []
        for assignment in assignments:
            connection = await self._launcher.start(assignment)
            self.workers.append(WorkerHandle(assignment.share, connection, first_trial))
        await asyncio.gather(*map(_ready, self.workers))
        first, *others = self.workers
        for worker in others:  # trials of one cell are measured in one environment
            if worker.cells != first.cells:
                raise UsageError(
                    f"workers 0 and {worker.number} measure in different environments",
                    fix="place them on machines of one kind",
                )
        return self.workers

    async def close(self, patience_s: float) -> None:
        """Close every worker; one that still runs has ``patience_s`` to clean up. Idempotent."""
        await asyncio.gather(*(worker.connection.close(patience_s) for worker in self.workers))

    async def __aenter__(self) -> Self:
        """Return the crew itself."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close every worker."""
        await self.close(CLEANUP_WITHIN_S)


async def _ready(worker: WorkerHandle) -> None:
    """Return once a worker is ready. Raises the error that prevents it."""
    while True:
        received = await worker.connection.receive()
        rest = list(received.messages)
        while rest:
            message = rest.pop(0)
            if isinstance(message, StartupError):
                raise message.exception()
            if isinstance(message, Ready):
                if message.version != __version__:
                    raise UsageError(
                        f"worker {worker.number} has taxtui {message.version}, and this is {__version__}",
                        fix="install the same version everywhere",
                    )
                worker.cells = message.cells
                worker.early.append(Received(received.events, rest, received.closed))
                return
        worker.early.append(Received(received.events, []))
        if received.closed:
            raise TaxtuiError(f"worker {worker.number} ended before it had begun")
