"""One deployment of SWE-ReX's, and the commands that its runtime executes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from swerex.deployment.abstract import AbstractDeployment
from swerex.runtime.abstract import Command, WriteFileRequest

from taxtui.errors import ExecFailed
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.substrates.harness.harnessed import HarnessedSandbox, Ran
from taxtui.substrates.harness.sites import Site, Surroundings
from taxtui.substrates.harness.swerex.failure import not_run

_T = TypeVar("_T")


class SwerexSandbox(HarnessedSandbox):
    """One deployment that has started."""

    def __init__(
        self,
        name: str,
        place: Site,
        around: Surroundings,
        shell: str,
        deployment: AbstractDeployment,
        pool: BlockingPool,
    ) -> None:
        """``pool``: its calls are coroutines that block, each has a thread and a loop of its own."""
        super().__init__(name, place, around, shell)
        self._deployment = deployment
        self._pool = pool

    async def run(self, script: str, env: dict[str, str]) -> Ran:
        """As ``HarnessedSandbox.run``: ``runtime.execute``, which has no timeout of its own then."""
        wanted = Command(command=[self._shell, "-c", script], env=env or None, cwd=self.around.folder or None)

        async def execute() -> Ran:
            started_ns = time.monotonic_ns()
            answer = await self._deployment.runtime.execute(wanted)
            ended_ns = time.monotonic_ns()
            return Ran(answer.stdout, answer.exit_code or 0, started_ns, ended_ns)

        return await self._call(execute)

    async def write(self, path: str, text: str) -> None:
        """As ``HarnessedSandbox.write``."""
        await self._call(lambda: self._deployment.runtime.write_file(WriteFileRequest(path=path, content=text)))

    async def _call(self, call: Callable[[], Awaitable[_T]]) -> _T:
        async def awaited() -> _T:
            return await call()

        try:
            return (await self._pool.run(lambda: asyncio.run(awaited()))).value
        except Exception as error:  # it hands on whatever its HTTP client and the other side raise
            raise not_run(error) from error

    async def stop(self) -> None:
        """As ``HarnessedSandbox.stop``."""
        with contextlib.suppress(ExecFailed):
            await self._call(self._deployment.stop)
