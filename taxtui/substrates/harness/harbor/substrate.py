"""Sandboxes by Harbor, the harness of Terminal-Bench 2: its environment for docker, by docker's compose plugin."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import ClassVar, Final

import msgspec

# Before it is imported: it would fetch prices of models.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from harbor.environments.docker.docker import DockerEnvironment
from harbor.models.task.config import EnvironmentConfig
from harbor.models.trial.paths import TrialPaths

from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.harness.compose import HarnessProjects
from taxtui.substrates.harness.harbor.failure import not_started
from taxtui.substrates.harness.harbor.options import HarborOptions
from taxtui.substrates.harness.harbor.sandbox import HarborSandbox, ended
from taxtui.substrates.harness.harness import HarnessSubstrate
from taxtui.substrates.harness.sites import Sites, Surroundings

_QUIET: Final = logging.getLogger("taxtui.harbor")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


class HarborSubstrate(HarnessSubstrate):
    """Environments of Harbor's."""

    name: ClassVar[str] = "harbor"
    Options: ClassVar[type[msgspec.Struct]] = HarborOptions
    package: ClassVar[str] = "harbor"

    def __init__(self, options: HarborOptions | None = None) -> None:
        """Nothing is looked for yet."""
        self.options = options = options or HarborOptions()
        super().__init__(options.environment, bash=options.shell == "bash", idempotent=True)

    def choose(self) -> Sites:
        """As ``HarnessSubstrate.choose``."""
        return HarnessProjects(self.name, self.options.image, "taxtui setup", self.pool)

    async def begin(self, spec: SandboxSpec, around: Surroundings, marks: Marks) -> HarborSandbox:
        """As ``HarnessSubstrate.begin``."""
        try:
            environment = self._environment(spec, around)
            # In a thread: it asks docker for its version and waits.
            await self.pool.run(
                lambda: asyncio.run(environment.start(force_build=False)),
                dispose=lambda _: asyncio.run(ended(environment)),
            )
        except Exception as error:  # it hands on whatever docker and its compose plugin raise
            raise not_started(error) from error
        place = self.places.at(spec.name)
        folder = environment.environment_dir.parent
        return HarborSandbox(spec.name, place, around, self.options.shell, environment, folder, self.pool)

    def _environment(self, spec: SandboxSpec, around: Surroundings) -> DockerEnvironment:
        """As for a task of an image alone; limits and labels come by a compose file behind Harbor's own."""
        assert isinstance(self.places, HarnessProjects)
        service = self.places.service(spec, around)
        networks = {"networks": self.places.network(spec)}
        if self.options.network == "none":
            service, networks = {**service, "network_mode": "none"}, {}
        extra = self.places.written(spec, {"services": {"main": {**service, "pull_policy": "never"}}, **networks})
        folder = extra.parent / "environment"
        folder.mkdir()
        return DockerEnvironment(
            environment_dir=folder,
            environment_name="taxtui",
            session_id=spec.name,
            trial_paths=TrialPaths(trial_dir=extra.parent / "trial"),
            task_env_config=EnvironmentConfig(docker_image=self.options.image),
            logger=_QUIET,
            mounts=[],
            extra_docker_compose=[extra],
        )
