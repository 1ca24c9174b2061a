"""Sandboxes in Docker containers, by any OCI runtime: ``docker:runtime=runsc`` is the same adapter with gVisor.

The SDK makes, lists and removes containers, in threads of its own. Every action goes to the daemon directly
(http.py), because the SDK's own path costs more than the exec it asks for allows.

A container is a ``sleep`` of the sandbox's time to live under docker's init, started to be removed when it ends:
that is the deadline, held by the daemon's host without us. A daemon that is down while it ends removes it late.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Literal, Self

import docker
import msgspec
import requests
from docker.errors import DockerException, ImageNotFound
from docker.types import LogConfig

from taxtui.errors import SubstrateUnavailable
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit import labels
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.protocol import Availability, Capabilities, Found, Marks
from taxtui.substrates.docker.containers import SANDBOX_ENV, Containers, Image, connect
from taxtui.substrates.docker.endpoint import endpoint
from taxtui.substrates.docker.failure import NONSENSE, not_made, said, silent
from taxtui.substrates.docker.options import DockerOptions
from taxtui.substrates.docker.sandbox import DockerSandbox
from taxtui.workloads.image import DEFAULT_IMAGE, DIGEST, FIXTURES_LABEL

_LIMITS: Final = {"memory": "MemoryLimit", "cpu": "CpuCfsQuota", "pids": "PidsLimit"}  # ours → the daemon's flag


class DockerSubstrate:
    """Containers of one daemon and one runtime."""

    name: ClassVar[str] = "docker"
    Options: ClassVar[type[msgspec.Struct]] = DockerOptions
    provenance: Literal["measured", "stand_in"] = "measured"
    capabilities = Capabilities(acquire=("create", "reset"))

    def __init__(self, options: DockerOptions | None = None) -> None:
        """Nothing is opened yet."""
        self.options = options or DockerOptions()
        self.variant: str = self.options.runtime
        self.containers = Containers(self.options)

    async def __aenter__(self) -> Self:
        """Connect. Raises ``SubstrateUnavailable``."""
        await self.containers.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Wait for calls under way, then disconnect."""
        await self.containers.close()

    async def check(self) -> Availability:
        """As ``Substrate.check``."""
        pool, ours = self.containers.pool, self.containers.client if self.containers.is_open else None
        try:
            where = endpoint(self.options.host)
            client = ours or (await pool.run(lambda: connect(where))).value
        except SubstrateUnavailable as error:
            return Availability(ok=False, detail=error.problem.removeprefix("docker: "), fix=error.fix)
        try:
            return (await pool.run(lambda: self._look(client))).value
        except (DockerException, requests.RequestException) as error:
            return Availability(ok=False, detail=f"the docker daemon does not answer: {said(error)}", fix="restart it")
        except NONSENSE as error:
            return Availability(ok=False, detail=silent(error).problem.removeprefix("docker: "), fix="restart it")
        finally:
            if client is not ours:
                client.close()

    def _look(self, client: docker.APIClient) -> Availability:
        asked_ns = time.monotonic_ns()
        client.ping()
        latency_ns = time.monotonic_ns() - asked_ns
        info, version = client.info(), client.version()
        runtime = self.options.runtime
        if runtime not in info.get("Runtimes", {}):
            known = ", ".join(sorted(info.get("Runtimes", {})))
            fix = f"add it to the daemon's runtimes, or use one of: {known}"
            return Availability(ok=False, detail=f"docker has no runtime {runtime!r}", fix=fix)
        try:
            image = client.inspect_image(self.options.image)  # type: ignore[no-untyped-call]
        except ImageNotFound:
            detail = f"there is no image {self.options.image} here"
            return Availability(ok=False, detail=detail, fix=self._image_fix())
        components = {part["Name"]: part["Version"] for part in version.get("Components", [])}
        server = version["Version"]
        runtime_version = components.get(runtime, "")
        lacking = [limit for limit, key in _LIMITS.items() if not info.get(key, True)]
        return Availability(
            ok=True,
            detail=f"ready, {server}, {runtime}",
            version=" ".join(filter(None, (server, runtime, runtime_version))),
            image=image["Id"],
            image_bytes=image.get("Size", -1),
            cache="node",
            holds_fixtures=((image.get("Config") or {}).get("Labels") or {}).get(FIXTURES_LABEL) == DIGEST,
            limits=f"cgroup v{info.get('CgroupVersion', '1')}" + (f" without {', '.join(lacking)}" if lacking else ""),
            latency_ns=latency_ns,
            facts={
                "server": server,
                "api": client.api_version,
                "sdk": docker.__version__,
                "storage": info.get("Driver", ""),
                "cgroup_driver": info.get("CgroupDriver", ""),
                "kernel": info.get("KernelVersion", ""),
                **{f"component.{name}": value for name, value in components.items()},
            },
        )

    async def create(self, spec: SandboxSpec, marks: Marks) -> DockerSandbox:
        """As ``Substrate.create``: made and started."""
        containers, client = self.containers, self.containers.client

        def make() -> DockerSandbox:
            image = containers.image()
            container: str = client.create_container(**self._container(spec, image))["Id"]
            marks("created")
            try:
                client.start(container)
            except BaseException:
                containers.discard(container)
                raise
            marks("started")
            return DockerSandbox(containers, spec, container, image)

        try:
            return (await containers.pool.run(make, dispose=lambda made: containers.discard(made.container))).value
        except (DockerException, requests.RequestException, *NONSENSE) as error:
            raise not_made(error, self.options.image, self._image_fix()) from error

    def _image_fix(self) -> str:
        return "taxtui setup" if self.options.image == DEFAULT_IMAGE else f"docker pull {self.options.image}"

    def _container(self, spec: SandboxSpec, image: Image) -> dict[str, Any]:
        """Arguments for ``create_container``. Raises ``requests`` and ``docker`` errors in the caller's thread.

        The environment is the image's and this one alone: proxies in the client's own configuration hold passwords.
        """
        memory = spec.limits.memory_mib << 20
        env = {"LANG": "C.UTF-8", "HOME": image.home or image.folder, **spec.env}
        host_config = self.containers.client.create_host_config(
            auto_remove=True,
            cap_drop=["ALL"],
            init=True,
            log_config=LogConfig(type="none"),
            mem_limit=memory,
            memswap_limit=memory,
            nano_cpus=round(spec.limits.cpus * 1e9),
            network_mode=self.options.network or ("bridge" if spec.network else "none"),
            pids_limit=spec.limits.pids,
            runtime=self.options.runtime,
            security_opt=["no-new-privileges"],
        )
        return {
            "image": self.options.image,
            "name": spec.name,
            "hostname": "sandbox",
            "entrypoint": ["sleep", str(math.ceil(spec.ttl_s))],
            "command": [],
            "labels": spec.labels,
            "environment": {**env, SANDBOX_ENV: spec.name},
            "user": self.options.user or None,
            "working_dir": image.folder,
            "host_config": host_config,
            "use_config_proxy": False,
        }

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``."""
        label = LABEL_RUN if run_id is None else f"{LABEL_RUN}={run_id}"
        client, pool = self.containers.client, self.containers.pool
        try:
            rows = (await pool.run(lambda: client.containers(all=True, filters={"label": [label]}))).value
            return [_found(row) for row in rows]
        except (DockerException, requests.RequestException, *NONSENSE) as error:
            raise silent(error) from error

    async def reap(self, found: Found) -> None:
        """As ``Substrate.reap``."""
        await self.containers.remove(found.handle)


def _found(row: dict[str, Any]) -> Found:
    age_s = time.time() - row["Created"]
    return labels.found(row.get("Labels") or {}, name=row["Names"][0].lstrip("/"), handle=row["Id"], age_s=age_s)
