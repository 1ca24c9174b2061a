"""One environment of inspect_ai's, and the commands that it executes."""

from __future__ import annotations

import asyncio
import os
import re
import time
from typing import Final

from inspect_ai.util import SandboxEnvironment, SandboxEnvironmentLimits

from taxtui.substrates.harness.harnessed import HarnessedSandbox, Ran
from taxtui.substrates.harness.inspect.failure import not_run
from taxtui.substrates.harness.sites import Site, Surroundings

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHELLS_OWN: Final = frozenset({"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"})
"""Names that a shell does not let go of: it would end."""

# Both streams of an answer arrive as one text, in base64 where that is needed; Inspect keeps the last 10 MiB.
SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE = 64 * 2**20


class InspectSandbox(HarnessedSandbox):
    """One environment that has started."""

    def __init__(
        self, name: str, place: Site, around: Surroundings, shell: str, environment: SandboxEnvironment
    ) -> None:
        """``environment``: the default one of its sample."""
        super().__init__(name, place, around, shell)
        self._environment = environment

    async def run(self, script: str, env: dict[str, str]) -> Ran:
        """As ``HarnessedSandbox.run``: ``exec`` without a timeout and without Inspect's queue."""
        if env:  # Inspect adds to what this process has around it: nothing of that is for a sandbox
            script = f"{_forgotten(env)}{script}"
        try:
            started_ns = time.monotonic_ns()
            answer = await self._environment.exec(
                [self._shell, "-c", script], cwd=self.around.folder or None, env=env or None, concurrency=False
            )
            ended_ns = time.monotonic_ns()
        except Exception as error:  # it hands on whatever asyncio, docker and its own checks raise
            raise not_run(error) from error
        return Ran(answer.stdout, answer.returncode, started_ns, ended_ns)

    async def write(self, path: str, text: str) -> None:
        """As ``HarnessedSandbox.write``."""
        try:
            await self._environment.write_file(path, text)
        except Exception as error:  # as above
            raise not_run(error) from error

    async def stop(self) -> None:
        """As ``HarnessedSandbox.stop``."""
        await ended(self._environment)


async def ended(environment: SandboxEnvironment) -> None:
    """End it as Inspect does after a sample; it raises nothing."""
    try:
        await type(environment).sample_cleanup("taxtui", None, {"default": environment}, False)
    except asyncio.CancelledError:
        raise
    except Exception:  # what is left is removed beside it
        return


def _forgotten(env: dict[str, str]) -> str:
    """The beginning of a script that has only ``env`` around it."""
    names = [name for name in os.environ if name not in env and name not in _SHELLS_OWN and _NAME.fullmatch(name)]
    return f"unset {' '.join(names)}\n" if names else ""
