"""Sandboxes by inspect_ai, the framework for evaluations: its environment for docker, by docker's compose plugin."""

from __future__ import annotations

import logging
import time
from typing import ClassVar, Final

import msgspec
from inspect_ai.util import SandboxEnvironment, SandboxEnvironmentLimits
from inspect_ai.util._sandbox.docker.docker import DockerSandboxEnvironment

from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit.text_sandbox import TextAnswer
from taxtui.substrates.harness import InspectOptions
from taxtui.substrates.harness.containers import HarnessContainers
from taxtui.substrates.harness.harness import HarnessedSandbox, HarnessSubstrate

# Inspect logs our exceptions with logs of containers.
logging.getLogger("inspect_ai").addHandler(logging.NullHandler())

_TASK: Final = "taxtui"  # Inspect's project name, before six random characters
_IDLE: Final = ["tail", "-f", "/dev/null"]

# Both streams of an answer arrive as a single text, in base64 if needed; by default Inspect keeps the last 10 MiB.
SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE = 64 * 2**20


class InspectSandbox(HarnessedSandbox):
    """A started environment."""

    def __init__(self, name: str, substrate: InspectSubstrate, environment: SandboxEnvironment) -> None:
        """``environment``: the sample's default."""
        super().__init__(name, substrate)
        self._environment = environment

    async def run(self, script: str) -> TextAnswer:
        """As ``HarnessedSandbox.run``: ``exec`` without a timeout and without Inspect's queue."""
        started_ns = time.monotonic_ns()
        answer = await self._environment.exec([self.shell, "-c", script], concurrency=False)
        return TextAnswer(answer.stdout, answer.returncode, started_ns, time.monotonic_ns())

    async def stop(self) -> None:
        """As ``HarnessedSandbox.stop``: as Inspect does after a sample."""
        await type(self._environment).sample_cleanup(_TASK, None, {"default": self._environment}, False)


class InspectSubstrate(HarnessSubstrate):
    """Environments of inspect_ai's."""

    name: ClassVar[str] = "inspect"
    Options: ClassVar[type[msgspec.Struct]] = InspectOptions
    package: ClassVar[str] = "inspect_ai"
    options: InspectOptions
    sites: HarnessContainers

    def __init__(self, options: InspectOptions | None = None) -> None:
        """Nothing is looked for yet."""
        self.options = options or InspectOptions()
        sites = HarnessContainers(self.name, self.options.image, "taxtui setup")
        super().__init__(sites, "docker", idempotent=True)

    async def begin(self, spec: SandboxSpec, env: dict[str, str]) -> InspectSandbox:
        """As ``HarnessSubstrate.begin``: as before each sample of a task with an image only."""
        service = {"image": self.options.image, "command": _IDLE, "stop_grace_period": "1s"}
        path = self.sites.compose_file(spec, env, "default", service, network=spec.network)
        environments = await DockerSandboxEnvironment.sample_init(_TASK, str(path), {})
        return InspectSandbox(spec.name, self, environments["default"])
