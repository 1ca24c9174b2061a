"""Sandboxes by Harbor, the harness of Terminal-Bench 2: docker by the compose plugin, and further environments."""

from __future__ import annotations

import asyncio
import difflib
import os
import time
from typing import Any, ClassVar

import msgspec

from taxtui.errors import UsageError
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit.text_sandbox import TextAnswer
from taxtui.substrates.harness import HARBOR_FREE, HarborOptions
from taxtui.substrates.harness.containers import HarnessContainers
from taxtui.substrates.harness.harbor_environment import HarborEnvironments
from taxtui.substrates.harness.harness import QUIET, HarnessedSandbox, HarnessSubstrate
from taxtui.workloads.image import DEFAULT_IMAGE

# Before the import: Harbor would fetch prices of models.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from harbor.environments.docker.docker import DockerEnvironment
from harbor.models.environment_type import EnvironmentType
from harbor.models.task.config import EnvironmentConfig
from harbor.models.trial.paths import TrialPaths


class HarborSandbox(HarnessedSandbox):
    """A started environment."""

    def __init__(self, name: str, substrate: HarborSubstrate, environment: Any) -> None:
        """``environment``: started. Only docker's gives a script to bash for certain."""
        self._docker = substrate.docker
        super().__init__(name, substrate, inside=self._docker and substrate.options.shell == "bash")
        self._environment = environment

    async def run(self, script: str) -> TextAnswer:
        """As ``HarnessedSandbox.run``: ``exec`` without a timeout, by bash."""
        started_ns = time.monotonic_ns()
        answer = await self._environment.exec(script)
        ended_ns = time.monotonic_ns()
        text = (answer.stdout or "").replace("\r\n", "\n")  # podman-compose runs commands in a terminal
        return TextAnswer(text, answer.return_code, started_ns, ended_ns)

    async def stop(self) -> None:
        """As ``HarnessedSandbox.stop``: as Harbor does after a trial. A remote site does so itself, and reports."""
        if self._docker:
            await self._environment.stop(delete=True)


class HarborSubstrate(HarnessSubstrate):
    """Environments of Harbor's."""

    name: ClassVar[str] = "harbor"
    Options: ClassVar[type[msgspec.Struct]] = HarborOptions
    package: ClassVar[str] = "harbor"
    options: HarborOptions
    sites: HarnessContainers | HarborEnvironments

    def __init__(self, options: HarborOptions | None = None) -> None:
        """Nothing is looked for yet."""
        self.options = options = options or HarborOptions()
        environment = options.environment
        names = [member.value for member in EnvironmentType]
        if environment not in names and ":" not in environment:
            close = difflib.get_close_matches(environment, names, 1)
            fix = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
            raise UsageError(f"harbor has no environment {environment!r}", fix=fix)
        self.docker = docker = environment == "docker"
        self._image = options.image or DEFAULT_IMAGE
        super().__init__(
            HarnessContainers(self.name, self._image, "taxtui setup") if docker else HarborEnvironments(options),
            environment.rpartition(":")[2],
            idempotent=docker,
            confirms_gone=docker,
            paid=environment not in HARBOR_FREE,
        )

    async def begin(self, spec: SandboxSpec, env: dict[str, str]) -> HarborSandbox:
        """As ``HarnessSubstrate.begin``: docker in a thread, because Harbor asks docker for the version and blocks.

        Any other environment in this event loop: SDK clients are bound to a loop.
        """
        if isinstance(self.sites, HarborEnvironments):
            environment = self.sites.construct(spec, env)
            await environment.start(force_build=False)
        else:
            environment = self._environment(self.sites, spec, env)
            await self.sites.pool.run(
                lambda: asyncio.run(environment.start(force_build=False)),
                dispose=lambda _: asyncio.run(environment.stop(delete=True)),
            )
        return HarborSandbox(spec.name, self, environment)

    def _environment(self, sites: HarnessContainers, spec: SandboxSpec, env: dict[str, str]) -> DockerEnvironment:
        """As for a task of an image alone; limits and labels come by a compose file behind Harbor's own."""
        extra = sites.compose_file(spec, env, "main", {}, network=self.options.network == "own")
        folder = extra.parent / "environment"
        folder.mkdir()
        return DockerEnvironment(
            environment_dir=folder,
            environment_name="taxtui",
            session_id=spec.name,
            trial_paths=TrialPaths(trial_dir=extra.parent / "trial"),
            task_env_config=EnvironmentConfig(docker_image=self._image),
            logger=QUIET,
            mounts=[],
            extra_docker_compose=[extra],
        )
