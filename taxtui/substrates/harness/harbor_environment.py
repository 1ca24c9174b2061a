"""Every environment of Harbor except docker: taxtui reaches these sandboxes only through Harbor's ``BaseEnvironment``.

Harbor has no call to list sandboxes, so only the creating process can remove a sandbox. A folder of this machine
stands for each sandbox until Harbor has stopped the sandbox: ``taxtui clean`` lists the folders.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from taxtui.errors import CleanupFailed, ExecFailed, UsageError
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit import private_folder
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.kit.kill import LEFT, kill_script
from taxtui.sandboxes.protocol import Availability
from taxtui.substrates.harness import HARBOR_PRICE_SHEETS, HarborOptions
from taxtui.substrates.harness.failure import one_line
from taxtui.substrates.harness.harness import QUIET, Sites

_STOP_S: Final = 120.0
_PROBE_S: Final = 10.0


_WITH_DOCKERFILE: Final = ("ack", "gke")
"""Environments with a mandatory Dockerfile, even for an image."""
_UNCHECKED: Final[Mapping[str, tuple[str, ...]]] = {
    "ack": ("KUBECONFIG", "~/.kube/config"),
    "cwsandbox": ("CWSANDBOX_API_KEY", "WANDB_API_KEY"),
    "islo": ("ISLO_API_KEY",),
    "langsmith": (
        *("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY", "LANGSMITH_PROFILE", "LANGSMITH_CONFIG_FILE"),
        "~/.langsmith/config.json",
    ),
    "prime": ("PRIME_API_KEY", "~/.prime/config.json"),
    "sbx": ("SBX_TOKEN", "SBX_TOKEN_FILE", "SBX_DOCKER_PAT"),
    "singularity": ("singularity", "apptainer"),
}
"""Variables and files with credentials, or programs, where Harbor's preflight does not check any. Any is enough."""


class HarborEnvironments(Sites):
    """The sandboxes of an environment, by a name in Harbor's registry or an import path ``module:Class``."""

    ends_starts: ClassVar[bool] = True  # a start costs money

    def __init__(self, options: HarborOptions) -> None:
        """Raises ``UsageError``: the settings cannot be read."""
        super().__init__("harbor")
        self.options = options
        self.live: dict[str, Any] = {}  # Harbor's object of each sandbox of this process; None before construction
        self._settings = _settings(options.settings)

    async def open(self) -> None:
        """As ``Sites.open``."""
        self.root = private_folder.private_folder("harbor", f"harbor-{re.sub(r'[^a-z0-9]+', '-', self.label)}")

    @property
    def label(self) -> str:
        """The environment without the module of an import path, in lower case."""
        return self.options.environment.rpartition(":")[2].lower()

    async def check(self) -> Availability:
        """As ``Sites.check``: run Harbor's preflight, and construct the environment without starting a sandbox."""
        return await self.pool.run(self._checked)

    def _checked(self) -> Availability:
        from harbor.environments.factory import EnvironmentFactory

        name, image = self.options.environment, self.options.image
        try:
            EnvironmentFactory.run_preflight(_kind(name), import_path=name if ":" in name else None)
        except (Exception, SystemExit) as error:
            return _refused(name, error)
        needs = None if self._settings.get("target") == "local" else _UNCHECKED.get(name)  # sbx on this machine
        if needs and (refused := _unmet(name, needs)):
            return refused
        if not image:
            fix = f"harbor:environment={name},image=REGISTRY/IMAGE, an image with bash in a registry"
            return Availability(ok=False, detail="no image is given", fix=fix)
        try:
            with tempfile.TemporaryDirectory() as folder:
                environment = self._construct("taxtui-check", Path(folder), Limits(), {})
        except (Exception, SystemExit) as error:
            return _refused(name, error)
        return Availability(
            ok=True,
            detail=f"{self.label}, credentials not tried",
            image=hashlib.sha256(image.encode()).hexdigest(),
            limits=_enforcement(environment.resource_capabilities()),
            prices=name if name in HARBOR_PRICE_SHEETS else "",
        )

    def construct(self, spec: SandboxSpec, env: dict[str, str]) -> Any:
        """Construct Harbor's object for a sandbox, without starting the sandbox. Raises any exception of Harbor."""
        self.live[spec.name] = None
        self.live[spec.name] = environment = self._construct(spec.name, self.root / spec.name, spec.limits, env)
        return environment

    def _construct(self, name: str, folder: Path, limits: Limits, env: Mapping[str, str]) -> Any:
        from harbor.environments.factory import EnvironmentFactory
        from harbor.models.task.config import EnvironmentConfig as TaskEnvironment
        from harbor.models.trial.config import EnvironmentConfig
        from harbor.models.trial.paths import TrialPaths

        environment = self.options.environment
        inside, trial = folder / "environment", TrialPaths(trial_dir=folder / "trial")
        inside.mkdir()
        if environment in _WITH_DOCKERFILE:
            (inside / "Dockerfile").write_text(f"FROM {self.options.image}\n")
        trial.mkdir()
        return EnvironmentFactory.create_environment_from_config(
            EnvironmentConfig(
                type=_kind(environment),
                import_path=environment if ":" in environment else None,
                env=dict(env),
                kwargs=self._settings,
            ),
            environment_dir=inside,
            environment_name="taxtui",
            session_id=name,
            trial_paths=trial,
            task_env_config=TaskEnvironment(
                docker_image=self.options.image, cpus=max(1, math.ceil(limits.cpus)), memory_mb=limits.memory_mib
            ),
            logger=QUIET,
        )

    async def kill(self, name: str, mark: str) -> None:
        try:
            await self.live[name].exec(kill_script(mark))
        except Exception as error:  # any exception of the SDK
            if not await self.ended(name):
                raise ExecFailed(f"{LEFT}: {one_line(error)}") from error

    async def ended(self, name: str) -> bool:
        """Whether ``true`` does not run within ten seconds: Harbor reports no state."""
        environment = self.live.get(name)
        if environment is None:
            return True
        try:
            async with asyncio.timeout(_PROBE_S):
                await environment.exec("true")
        except Exception:  # any exception of the SDK
            return True
        return False

    async def remove(self, name: str) -> None:
        folder = self.root / name
        if name not in self.live:
            if not folder.exists():
                return
            raise CleanupFailed(
                f"{name}: Harbor cannot stop a sandbox of another process; remove the sandbox of this "
                f"name in {self.label}, then delete {folder}"
            )
        if (environment := self.live[name]) is not None:
            try:
                await finish_despite_cancel(environment.stop(delete=True), _STOP_S)
            except Exception as error:  # any exception of the SDK
                reason = one_line(error)
                raise CleanupFailed(f"{name}: {self.label} did not stop the sandbox: {reason}") from error
        await private_folder.remove(folder, self.pool)
        self.live.pop(name, None)


def _kind(name: str) -> Any:
    from harbor.models.environment_type import EnvironmentType

    return None if ":" in name else EnvironmentType(name)


def _settings(path: str) -> dict[str, Any]:
    """Keyword arguments of the environment, from a JSON file. Raises ``UsageError``."""
    if not path:
        return {}
    try:
        settings = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"harbor: settings cannot be read from {path}: {one_line(error)}") from error
    if not isinstance(settings, dict):
        raise UsageError(f"harbor: {path} holds no JSON object", fix='write {"keyword": value}')
    return settings


def _refused(name: str, error: BaseException) -> Availability:
    """Harbor's own message: the first sentence is the problem, the rest is the fix."""
    message = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, ImportError):
        extra = re.search(r"harbor\[[\w-]+\]", message)
        fix = f"install the Python package {extra[0]}" if extra else f"install the Python package {error.name!r}"
        return Availability(ok=False, detail=f"the SDK of {name} is not installed", fix=fix)
    if isinstance(error, TypeError) and (lacks := re.search(r"missing \d+ required .*?: (.*)", message)):
        fix = f"harbor:environment={name},settings=FILE.json, a JSON object of settings"
        return Availability(ok=False, detail=f"{name} requires the settings {lacks[1]}", fix=fix)
    problem, _, fix = message.partition(". ")
    return Availability(ok=False, detail=problem.removesuffix("."), fix=fix.removesuffix("."))


def _enforcement(capabilities: Any) -> str:
    """Limits in force, by the environment's declaration for CPUs and memory."""
    if capabilities is None:
        return "unknown"
    if capabilities.cpu_limit and capabilities.memory_limit:
        return "as asked"
    return "requested" if capabilities.cpu_request and capabilities.memory_request else "none"


def _unmet(name: str, needs: tuple[str, ...]) -> Availability | None:
    files = [os.path.expanduser(need) for need in needs if need.startswith("~")]  # noqa: PTH111 - never raises
    if any(os.environ.get(need) or shutil.which(need) for need in needs) or any(map(os.path.exists, files)):
        return None
    variables = " or ".join(need for need in needs if need.isupper())
    if not variables:
        return Availability(ok=False, detail=f"{name} needs a program", fix=f"install {' or '.join(needs)}")
    or_file = "".join(f", or write {need}" for need in needs if need.startswith("~"))
    return Availability(ok=False, detail=f"{name} requires {variables}", fix=f"set {variables}{or_file}")
