"""Sandboxes by inspect_ai, the framework for evaluations: its sandbox environments for local processes and docker.

``local`` runs a command in this machine's own processes, ``docker`` by docker's compose plugin in a container.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec
from inspect_ai.util import SandboxEnvironment
from inspect_ai.util._sandbox.docker.docker import DockerSandboxEnvironment
from inspect_ai.util._sandbox.local import LocalSandboxEnvironment

from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit.framed_shell import after
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.harness.compose import HarnessProjects
from taxtui.substrates.harness.folders import HarnessFolders
from taxtui.substrates.harness.harness import HarnessSubstrate
from taxtui.substrates.harness.inspect.failure import not_started
from taxtui.substrates.harness.inspect.options import InspectOptions
from taxtui.substrates.harness.inspect.sandbox import InspectSandbox, ended
from taxtui.substrates.harness.sites import Sites, Surroundings

# It logs what we raise, with logs of containers.
logging.getLogger("inspect_ai").addHandler(logging.NullHandler())

_TASK: Final = "taxtui"  # how Inspect calls its project, with six characters by chance
_IDLE: Final = ["tail", "-f", "/dev/null"]


class InspectSubstrate(HarnessSubstrate):
    """Environments of inspect_ai's."""

    name: ClassVar[str] = "inspect"
    Options: ClassVar[type[msgspec.Struct]] = InspectOptions
    package: ClassVar[str] = "inspect_ai"
    flavours: ClassVar[tuple[Mapping[str, str], ...]] = ({"environment": "local"}, {"environment": "docker"})

    def __init__(self, options: InspectOptions | None = None) -> None:
        """Nothing is looked for yet."""
        self.options = options = options or InspectOptions()
        super().__init__(options.environment, bash=options.shell == "bash", idempotent=True)

    def choose(self) -> Sites:
        """As ``HarnessSubstrate.choose``."""
        if self.options.environment == "local":
            return HarnessFolders(self.name, self.pool)
        return HarnessProjects(self.name, self.options.image, "taxtui setup", self.pool)

    async def begin(self, spec: SandboxSpec, around: Surroundings, marks: Marks) -> InspectSandbox:
        """As ``HarnessSubstrate.begin``: what happens before each sample of a task."""
        starting = asyncio.ensure_future(self._started(spec, around))
        try:
            # Shielded: a compose command that is killed may go on in the daemon.
            environment = await asyncio.shield(starting)
        except asyncio.CancelledError as cancelled:
            await after(self._undone(spec, starting), cancelled)
            raise
        except Exception as error:  # it hands on whatever docker, its compose plugin and its own checks raise
            raise not_started(error) from error
        place = self.places.at(spec.name)
        return InspectSandbox(spec.name, place, around, self.options.shell, environment)

    async def _started(self, spec: SandboxSpec, around: Surroundings) -> SandboxEnvironment:
        if isinstance(self.places, HarnessFolders):
            made = await LocalSandboxEnvironment.sample_init(_TASK, None, {})
            environment = made["default"]
            assert isinstance(environment, LocalSandboxEnvironment)
            environment.directory.cleanup()  # ours is another, which is found when we are killed
            return environment
        made = await DockerSandboxEnvironment.sample_init(_TASK, self._compose_file(spec, around), {})
        return made["default"]

    def _compose_file(self, spec: SandboxSpec, around: Surroundings) -> str:
        """What Inspect itself writes where a task names an image only, with limits and labels."""
        assert isinstance(self.places, HarnessProjects)
        service = {
            "image": self.options.image,
            "pull_policy": "never",
            "command": _IDLE,
            "stop_grace_period": "1s",
            **({} if spec.network else {"network_mode": "none"}),
            **self.places.service(spec, around),
        }
        networks = {"networks": self.places.network(spec)} if spec.network else {}
        return str(self.places.written(spec, {"services": {"default": service}, **networks}))

    async def _undone(self, spec: SandboxSpec, starting: asyncio.Future[SandboxEnvironment]) -> None:
        await asyncio.wait({starting})
        if not starting.cancelled() and starting.exception() is None:
            await ended(starting.result())
        await self.places.at(spec.name).remove()
