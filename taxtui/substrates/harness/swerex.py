"""Sandboxes by SWE-ReX, the layer of SWE-agent and similar projects: its server in a container, reached by HTTP."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import ClassVar

import msgspec

from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit.text_sandbox import TextAnswer
from taxtui.substrates.harness import SwerexOptions
from taxtui.substrates.harness.containers import HarnessContainers
from taxtui.substrates.harness.harness import QUIET, HarnessedSandbox, HarnessSubstrate

# Before the import: SWE-ReX logs to standard output, in colours.
os.environ.setdefault("SWE_REX_LOG_STREAM_LEVEL", str(logging.CRITICAL + 1))

from swerex.deployment.docker import DockerDeployment
from swerex.runtime.abstract import Command


class SwerexSandbox(HarnessedSandbox):
    """A started deployment."""

    def __init__(self, name: str, substrate: SwerexSubstrate, deployment: DockerDeployment) -> None:
        """SWE-ReX's coroutines block: each has a thread and a loop."""
        super().__init__(name, substrate)
        self._deployment = deployment

    async def run(self, script: str) -> TextAnswer:
        """As ``HarnessedSandbox.run``: ``runtime.execute``, without a timeout."""

        async def execute() -> TextAnswer:
            started_ns = time.monotonic_ns()
            answer = await self._deployment.runtime.execute(Command(command=[self.shell, "-c", script]))
            ended_ns = time.monotonic_ns()
            return TextAnswer(answer.stdout, answer.exit_code or 0, started_ns, ended_ns)

        return await self._sites.pool.run(lambda: asyncio.run(execute()))

    async def stop(self) -> None:
        """As ``HarnessedSandbox.stop``."""
        await self._sites.pool.run(lambda: _stop(self._deployment))


class _LeftAlone(DockerDeployment):
    def __del__(self) -> None:
        """SWE-ReX's own stops the sandbox in any running loop; taxtui stops sandboxes by name."""


class SwerexSubstrate(HarnessSubstrate):
    """Deployments of SWE-ReX."""

    name: ClassVar[str] = "swerex"
    Options: ClassVar[type[msgspec.Struct]] = SwerexOptions
    package: ClassVar[str] = "swe-rex"
    options: SwerexOptions
    sites: HarnessContainers

    def __init__(self, options: SwerexOptions | None = None) -> None:
        """Nothing is looked for yet."""
        self.options = options or SwerexOptions()
        fix = "docs/substrates/harnesses.md says how to make one"
        sites = HarnessContainers(self.name, self.options.image, fix, compose=False)
        # SWE-ReX chooses the containers' names.
        super().__init__(sites, "docker", idempotent=False)

    async def begin(self, spec: SandboxSpec, env: dict[str, str]) -> SwerexSandbox:
        """As ``HarnessSubstrate.begin``."""
        deployment = self._deployment(spec, env)
        await self.sites.pool.run(lambda: asyncio.run(_started(deployment)), dispose=lambda _: _stop(deployment))
        return SwerexSandbox(spec.name, self, deployment)

    def _deployment(self, spec: SandboxSpec, env: dict[str, str]) -> DockerDeployment:
        limits = spec.limits
        arguments = [
            *("--init", "--log-driver=none", "--hostname=sandbox"),
            *("--cap-drop=ALL", "--security-opt=no-new-privileges"),
            *(f"--cpus={limits.cpus:g}", f"--memory={limits.memory_mib}m", f"--memory-swap={limits.memory_mib}m"),
            f"--pids-limit={limits.pids}",
            *(f"--label={key}={value}" for key, value in self.sites.labels(spec).items()),
            *(f"--env={key}={value}" for key, value in env.items()),
        ]
        return _LeftAlone(logger=QUIET, image=self.options.image, docker_args=arguments, pull="never")


async def _started(deployment: DockerDeployment) -> None:
    await deployment.start()  # type: ignore[no-untyped-call]


def _stop(deployment: DockerDeployment) -> None:
    """Stop a deployment. Blocks."""
    asyncio.run(deployment.stop())  # type: ignore[no-untyped-call]
