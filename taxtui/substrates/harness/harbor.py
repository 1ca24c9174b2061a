"""Sandboxes by Harbor, the harness of Terminal-Bench 2: docker by its compose plugin, and its other environments."""

from __future__ import annotations

import asyncio
import difflib
import logging
import os
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec

from taxtui.errors import UsageError
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.cancellation import with_cleanup
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.harness import HARBOR_FREE, HarborOptions
from taxtui.substrates.harness.compose import HarnessProjects
from taxtui.substrates.harness.failure import not_run, not_started
from taxtui.substrates.harness.harbor_environment import HarborEnvironments, known_environments
from taxtui.substrates.harness.harness import HarnessSubstrate
from taxtui.substrates.harness.harnessed import HarnessedSandbox, Ran
from taxtui.substrates.harness.sites import Site, Sites, Surroundings
from taxtui.workloads.image import DEFAULT_IMAGE

# Before it is imported: it would fetch prices of models.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from harbor.environments.docker.docker import DockerEnvironment
from harbor.models.task.config import EnvironmentConfig
from harbor.models.trial.paths import TrialPaths

_QUIET: Final = logging.getLogger("taxtui.harbor")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False
_PACKAGE: Final = "harbor"
_DOCKER: Final = "docker"
_READABLE = 0o644  # in the sandbox it belongs to root


class HarborSandbox(HarnessedSandbox):
    """One environment that has started."""

    SHELLS: ClassVar[tuple[str, ...]] = ("bash",)

    def __init__(
        self,
        name: str,
        place: Site,
        around: Surroundings,
        shell: str,
        environment: Any,
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
            raise not_run(_PACKAGE, error) from error
        return Ran(answer.stdout or "", answer.return_code, started_ns, ended_ns)

    async def write(self, path: str, text: str) -> None:
        """As ``HarnessedSandbox.write``."""
        try:
            ours = await self._pool.run(lambda: self._kept(text))
            await self._environment.upload_file(ours, path)
        except Exception as error:  # as above
            raise not_run(_PACKAGE, error) from error

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


class RemoteHarborSandbox(HarborSandbox):
    """A sandbox that only Harbor reaches."""

    SHELLS: ClassVar[tuple[str, ...]] = ()  # an environment may give a script to another shell

    async def stop(self) -> None:
        """Nothing: the sandbox's site stops it, and reports a failure."""


async def ended(environment: DockerEnvironment) -> None:
    """End it as Harbor does after a trial; it raises nothing, and logs what goes wrong."""
    try:
        await environment.stop(delete=True)
    except Exception:  # what is left is removed beside it
        return


class HarborSubstrate(HarnessSubstrate):
    """Environments of Harbor's."""

    name: ClassVar[str] = "harbor"
    Options: ClassVar[type[msgspec.Struct]] = HarborOptions
    package: ClassVar[str] = _PACKAGE

    def __init__(self, options: HarborOptions | None = None) -> None:
        """Nothing is looked for yet."""
        self.options = options = options or HarborOptions()
        environment = options.environment
        known = known_environments()
        if environment not in known and ":" not in environment:
            close = difflib.get_close_matches(environment, known, 1)
            fix = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
            raise UsageError(f"harbor has no environment {environment!r}", fix=fix)
        docker = environment == _DOCKER
        super().__init__(
            environment.rpartition(":")[2],
            bash=options.shell == "bash",
            idempotent=docker,
            confirms_gone=docker,
            paid=environment not in HARBOR_FREE,
        )

    def choose(self) -> Sites:
        """As ``HarnessSubstrate.choose``."""
        if self.options.environment != _DOCKER:
            return HarborEnvironments(self.options, _QUIET, self.pool)
        return HarnessProjects(self.name, self._image, "taxtui setup", self.pool)

    @property
    def _image(self) -> str:
        return self.options.image or DEFAULT_IMAGE

    async def begin(self, spec: SandboxSpec, around: Surroundings, marks: Marks) -> HarborSandbox:
        """As ``HarnessSubstrate.begin``."""
        if isinstance(self.places, HarborEnvironments):
            return await self._begin_remote(self.places, spec, around)
        try:
            environment = self._environment(spec, around)
            # In a thread: it asks docker for its version and waits.
            await self.pool.run(
                lambda: asyncio.run(environment.start(force_build=False)),
                dispose=lambda _: asyncio.run(ended(environment)),
            )
        except Exception as error:  # it hands on whatever docker and its compose plugin raise
            raise not_started(_PACKAGE, error) from error
        place = self.places.at(spec.name)
        folder = environment.environment_dir.parent
        return HarborSandbox(spec.name, place, around, self.options.shell, environment, folder, self.pool)

    async def _begin_remote(self, places: HarborEnvironments, spec: SandboxSpec, around: Surroundings) -> HarborSandbox:
        """Start it in this loop, to which the clients of SDKs are bound."""
        environment = places.construct(spec, around)
        try:
            await environment.start(force_build=False)
        except asyncio.CancelledError as cancelled:
            await with_cleanup(places.at(spec.name).remove(), cancelled)
            raise
        except (Exception, SystemExit) as error:  # it hands on whatever an SDK raises
            raise not_started(_PACKAGE, error) from error
        place, folder = places.at(spec.name), places.root / spec.name
        return RemoteHarborSandbox(spec.name, place, around, self.options.shell, environment, folder, self.pool)

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
            task_env_config=EnvironmentConfig(docker_image=self._image),
            logger=_QUIET,
            mounts=[],
            extra_docker_compose=[extra],
        )
