"""Sandboxes by Harbor, the harness of Terminal-Bench 2: docker by the compose plugin, and further environments."""

from __future__ import annotations

import asyncio
import difflib
import logging
import os
import time
from typing import Any, ClassVar, Final

import msgspec

from taxtui.errors import UsageError
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit.text_sandbox import TextAnswer
from taxtui.substrates.harness import HARBOR_FREE, HarborOptions
from taxtui.substrates.harness.containers import HarnessContainers
from taxtui.substrates.harness.harbor_environment import HarborEnvironments, environment_names
from taxtui.substrates.harness.harness import HarnessedSandbox, HarnessSubstrate, Sites
from taxtui.workloads.image import DEFAULT_IMAGE

# Before the import: Harbor would fetch prices of models.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from harbor.environments.docker.docker import DockerEnvironment
from harbor.models.task.config import EnvironmentConfig
from harbor.models.trial.paths import TrialPaths

_QUIET: Final = logging.getLogger("taxtui.harbor")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False
_DOCKER: Final = "docker"


class HarborSandbox(HarnessedSandbox):
    """A started environment."""

    SHELLS: ClassVar[tuple[str, ...]] = ("bash",)

    def __init__(self, name: str, substrate: HarborSubstrate, environment: Any) -> None:
        """``environment``: started."""
        super().__init__(name, substrate)
        self._environment = environment

    async def run(self, script: str) -> TextAnswer:
        """As ``HarnessedSandbox.run``: ``exec`` without a timeout, by bash."""
        started_ns = time.monotonic_ns()
        answer = await self._environment.exec(script)
        ended_ns = time.monotonic_ns()
        text = (answer.stdout or "").replace("\r\n", "\n")  # podman-compose runs commands in a terminal
        return TextAnswer(text, answer.return_code, started_ns, ended_ns)

    async def stop(self) -> None:
        """As ``HarnessedSandbox.stop``: as Harbor does after a trial."""
        await self._environment.stop(delete=True)


class RemoteHarborSandbox(HarborSandbox):
    """A sandbox behind Harbor alone."""

    SHELLS: ClassVar[tuple[str, ...]] = ()  # an environment may give a script to another shell

    async def stop(self) -> None:
        """Do nothing: the sandbox's site stops the sandbox and reports failures."""


class HarborSubstrate(HarnessSubstrate):
    """Environments of Harbor's."""

    name: ClassVar[str] = "harbor"
    Options: ClassVar[type[msgspec.Struct]] = HarborOptions
    package: ClassVar[str] = "harbor"
    options: HarborOptions

    def __init__(self, options: HarborOptions | None = None) -> None:
        """Nothing is looked for yet."""
        self.options = options = options or HarborOptions()
        environment = options.environment
        names = environment_names()
        if environment not in names and ":" not in environment:
            close = difflib.get_close_matches(environment, names, 1)
            fix = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
            raise UsageError(f"harbor has no environment {environment!r}", fix=fix)
        docker = environment == _DOCKER
        super().__init__(
            environment.rpartition(":")[2],
            idempotent=docker,
            confirms_gone=docker,
            paid=environment not in HARBOR_FREE,
        )

    def choose(self) -> Sites:
        """As ``HarnessSubstrate.choose``."""
        if self.options.environment != _DOCKER:
            return HarborEnvironments(self.options, _QUIET, self.pool)
        return HarnessContainers(self.name, self._image, "taxtui setup", self.pool)

    @property
    def _image(self) -> str:
        return self.options.image or DEFAULT_IMAGE

    async def begin(self, spec: SandboxSpec, env: dict[str, str]) -> HarborSandbox:
        """As ``HarnessSubstrate.begin``: docker in a thread, because Harbor asks docker for the version and blocks.

        Any other environment in this event loop: SDK clients are bound to a loop.
        """
        if isinstance(self.sites, HarborEnvironments):
            environment = self.sites.construct(spec, env)
            await environment.start(force_build=False)
            return RemoteHarborSandbox(spec.name, self, environment)
        environment = self._environment(spec, env)
        await self.pool.run(
            lambda: asyncio.run(environment.start(force_build=False)),
            dispose=lambda _: asyncio.run(environment.stop(delete=True)),
        )
        return HarborSandbox(spec.name, self, environment)

    def _environment(self, spec: SandboxSpec, env: dict[str, str]) -> DockerEnvironment:
        """As for a task of an image alone; limits and labels come by a compose file behind Harbor's own."""
        assert isinstance(self.sites, HarnessContainers)
        service = self.sites.service(spec, env)
        networks = {"networks": self.sites.network(spec)}
        if self.options.network == "none":
            service, networks = {**service, "network_mode": "none"}, {}
        extra = self.sites.written(spec, {"services": {"main": {**service, "pull_policy": "never"}}, **networks})
        folder = extra.parent / "environment"
        folder.mkdir()
        return DockerEnvironment(
            environment_dir=folder,
            environment_name="taxtui",
            session_id=spec.name,
            trial_paths=TrialPaths(trial_dir=extra.parent / "trial"),
            task_env_config=EnvironmentConfig(docker_image=self._image),
            logger=_QUIET,
            mounts=[],
            extra_docker_compose=[extra],
        )
