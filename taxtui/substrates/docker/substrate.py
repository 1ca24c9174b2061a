"""Sandboxes in Docker containers, by any OCI runtime: ``docker:runtime=runsc`` is the same adapter with gVisor.

The SDK finds the daemon (endpoint.py: DOCKER_HOST, contexts). Every request goes to the daemon directly (http.py):
the SDK's own path is slower than an exec.

A container is a ``sleep`` of the sandbox's time to live under docker's init, removed by the daemon afterwards: the
deadline without taxtui. After an outage at the deadline the daemon removes the container late.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, Self

import msgspec

from taxtui.errors import SubstrateUnavailable
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit.cancellation import undo_if_cancelled
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.limits import SANDBOX_ENV
from taxtui.sandboxes.lifecycle import reference_of
from taxtui.sandboxes.protocol import Availability, Capabilities, Effective, Found, Marks
from taxtui.substrates.docker import DockerOptions
from taxtui.substrates.docker.containers import Containers, Image
from taxtui.substrates.docker.sandbox import DockerSandbox
from taxtui.workloads.image import DIGEST, FIXTURES_LABEL

_LIMITS: Final = {"memory": "MemoryLimit", "cpu": "CpuCfsQuota", "pids": "PidsLimit"}  # ours → the daemon's flag


class DockerSubstrate:
    """Containers of a daemon and a runtime."""

    name: ClassVar[str] = "docker"
    Options: ClassVar[type[msgspec.Struct]] = DockerOptions
    provenance: Literal["measured", "stand_in"] = "measured"
    capabilities = Capabilities(
        deadline="guest", acquire=("create", "reset"), lifecycle=("suspend", "snapshot", "build")
    )

    def __init__(self, options: DockerOptions | None = None) -> None:
        self.options = options or DockerOptions()
        self.variant: str = self.options.runtime
        self.containers = Containers(self.options)

    async def __aenter__(self) -> Self:
        await self.containers.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.containers.daemon.close()

    async def check(self) -> Availability:
        try:
            async with type(self)(self.options) as opened:
                return await opened._look()
        except SubstrateUnavailable as error:
            return Availability(ok=False, detail=error.problem.removeprefix("docker: "), fix=error.fix)

    async def _look(self) -> Availability:
        containers, runtime = self.containers, self.options.runtime
        asked_ns = time.monotonic_ns()
        await containers.facts("/_ping")
        latency_ns = time.monotonic_ns() - asked_ns
        info, version = await containers.facts("/info"), await containers.facts("/version")
        if runtime not in info.get("Runtimes", {}):
            runtimes = ", ".join(sorted(info.get("Runtimes", {})))
            fix = f"add it to the daemon's runtimes, or use one of: {runtimes}"
            return Availability(ok=False, detail=f"docker has no runtime {runtime!r}", fix=fix)
        image = await containers.inspected(self.options.image)
        components = {part["Name"]: part["Version"] for part in version.get("Components", [])}
        server = version["Version"]
        network: Literal["none", "full"] = "none" if self.options.network == "none" else "full"
        lacking = [limit for limit, key in _LIMITS.items() if not info.get(key, True)]
        return Availability(
            ok=True,
            detail=f"ready, {server}, {runtime}",
            version=" ".join(filter(None, (server, runtime, components.get(runtime)))),
            image=image["Id"],
            image_bytes=image.get("Size", -1),
            cache="node",
            holds_fixtures=((image.get("Config") or {}).get("Labels") or {}).get(FIXTURES_LABEL) == DIGEST,
            limits=f"cgroup v{info.get('CgroupVersion', '1')}" + (f" without {', '.join(lacking)}" if lacking else ""),
            effective=Effective(network=network if self.options.network else None),
            latency_ns=latency_ns,
            facts={
                "server": server,
                "api": containers.daemon.api_version,
                "storage": info.get("Driver", ""),
                "cgroup_driver": info.get("CgroupDriver", ""),
                "kernel": info.get("KernelVersion", ""),
                **{f"component.{name}": value for name, value in components.items()},
            },
        )

    async def create(self, spec: SandboxSpec, marks: Marks) -> DockerSandbox:
        """As ``Substrate.create``: made and started. A cancelled create ends, and the container is removed."""
        return await undo_if_cancelled(
            self._make(spec, marks), lambda sandbox: self.containers.discard(sandbox.container)
        )

    async def _make(self, spec: SandboxSpec, marks: Marks) -> DockerSandbox:
        containers = self.containers
        image = await containers.image(reference_of(spec.acquire))
        container = await containers.create(self._config(spec, image), spec.name)
        marks("created")
        await containers.start(container)
        marks("started")
        return DockerSandbox(containers, spec, container, image)

    def _config(self, spec: SandboxSpec, image: Image) -> dict[str, Any]:
        """A container, as the Engine API takes it.

        The environment has no proxies of the client's configuration: proxies contain passwords.
        """
        memory = spec.limits.memory_mib << 20
        env = {"LANG": "C.UTF-8", "HOME": image.home or image.folder, **spec.env, SANDBOX_ENV: spec.name}
        return {
            "Image": image.name,
            "Hostname": "sandbox",
            "Entrypoint": ["sleep", str(math.ceil(spec.ttl_s))],
            "Cmd": [],
            "Labels": spec.labels,
            "Env": [f"{key}={value}" for key, value in env.items()],
            "User": self.options.user,
            "WorkingDir": image.folder,
            "HostConfig": {
                "AutoRemove": True,
                "CapDrop": ["ALL"],
                "Init": True,
                "LogConfig": {"Type": "none"},
                "Memory": memory,
                "MemorySwap": memory,
                "NanoCpus": round(spec.limits.cpus * 1e9),
                "NetworkMode": self.options.network or ("bridge" if spec.network else "none"),
                "PidsLimit": spec.limits.pids,
                "Runtime": self.options.runtime,
                "SecurityOpt": ["no-new-privileges"],
            },
        }

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        label = LABEL_RUN if run_id is None else f"{LABEL_RUN}={run_id}"
        return [*await self.containers.labelled("containers", label), *await self.containers.labelled("images", label)]

    async def reap(self, entry: Found) -> None:
        await self.containers.remove(entry.handle)

    async def build(self, name: str, dockerfile: str, labels: Mapping[str, str], marks: Marks) -> str:
        """Build an image with the daemon's own builder. A cancelled build ends."""
        return await self.containers.build(name, dockerfile, labels)

    def dockerfile(self) -> str:
        return f"FROM {self.options.image}\nRUN echo built > /tmp/taxtui-built\n"
