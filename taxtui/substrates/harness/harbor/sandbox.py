"""One environment of Harbor's, and the commands that it executes."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from harbor.environments.docker.docker import DockerEnvironment

from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.substrates.harness.harbor.failure import not_run
from taxtui.substrates.harness.harnessed import HarnessedSandbox, Ran
from taxtui.substrates.harness.sites import Site, Surroundings

_READABLE = 0o644  # in the sandbox it belongs to root


class HarborSandbox(HarnessedSandbox):
    """One environment that has started."""

    SHELLS = ("bash",)

    def __init__(
        self,
        name: str,
        place: Site,
        around: Surroundings,
        shell: str,
        environment: DockerEnvironment,
        folder: Path,
        pool: BlockingPool,
    ) -> None:
        """``environment``: ``start`` has returned; ``folder``: its own here; ``pool``: where files are worked on."""
        super().__init__(name, place, around, shell)
        self._environment = environment
        self._folder = folder
        self._pool = pool

    async def run(self, script: str, env: dict[str, str]) -> Ran:
        """As ``HarnessedSandbox.run``: ``exec``, which gives a script to bash, without a timeout."""
        try:
            started_ns = time.monotonic_ns()
            answer = await self._environment.exec(script, env=env or None)
            ended_ns = time.monotonic_ns()
        except Exception as error:  # it hands on whatever asyncio and docker raise
            raise not_run(error) from error
        return Ran(answer.stdout or "", answer.return_code, started_ns, ended_ns)

    async def write(self, path: str, text: str) -> None:
        """As ``HarnessedSandbox.write``."""
        try:
            ours = (await self._pool.run(lambda: self._kept(text))).value
            await self._environment.upload_file(ours, path)
        except Exception as error:  # as above
            raise not_run(error) from error

    def _kept(self, text: str) -> Path:
        """The text in the sandbox's folder here, which goes with it. Blocking."""
        handle, path = tempfile.mkstemp(dir=self._folder, prefix="script-")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(handle, _READABLE)
        return Path(path)

    async def stop(self) -> None:
        """As ``HarnessedSandbox.stop``."""
        await ended(self._environment)


async def ended(environment: DockerEnvironment) -> None:
    """End it as Harbor does after a trial; it raises nothing, and logs what goes wrong."""
    try:
        await environment.stop(delete=True)
    except Exception:  # what is left is removed beside it
        return
