"""Sandboxes of a harness as compose projects: a container, a folder with a compose file, possibly a network.

The folder is made first and removed last: a name is used once, and the remains of a killed run are found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from taxtui.errors import SubstrateUnavailable
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit import private_folder
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.protocol import Availability, Found
from taxtui.substrates.harness.containers import DockerRefused, HarnessContainers, docker, remove_all

_FIX: Final = "install docker's compose plugin, 2.21 or newer"
_FILE: Final = "compose.json"


class HarnessProjects(HarnessContainers):
    """Compose projects of the daemon of docker's command line."""

    def __init__(self, kind: str, image: str, image_fix: str, pool: BlockingPool) -> None:
        """``pool``: for file operations."""
        super().__init__(kind, image, image_fix)
        self.pool = pool
        self.root: Path

    async def open(self) -> None:
        """As ``Sites.open``."""
        await super().open()
        self.root = private_folder.private_folder(self.kind, f"{self.kind}-compose")

    async def check(self) -> Availability:
        """As ``Sites.check``: docker, its compose plugin, the image."""
        availability = await super().check()
        if not availability.ok:
            return availability
        try:
            compose_version = (await docker("compose", "version", "--short")).strip()
        except DockerRefused as error:
            return Availability(ok=False, detail=f"docker has no compose: {error}", fix=_FIX)
        return msgspec.structs.replace(
            availability,
            detail=f"{availability.detail}, compose {compose_version}",
            facts={**availability.facts, "compose": compose_version},
        )

    async def add(self, spec: SandboxSpec) -> dict[str, str]:
        """As ``Sites.add``: the sandbox's folder."""
        env = await super().add(spec)
        private_folder.make(self.root, spec)
        return env

    def service(self, spec: SandboxSpec, env: dict[str, str]) -> dict[str, Any]:
        """Settings of the container besides the harness's own: limits, labels, environment, as in docker's cells."""
        limits = spec.limits
        return {
            "labels": _plain(self.labels(spec)),
            "environment": _plain(env),
            "hostname": "sandbox",
            "init": True,
            "logging": {"driver": "none"},
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "cpus": limits.cpus,
            "mem_limit": f"{limits.memory_mib}m",
            "memswap_limit": f"{limits.memory_mib}m",
            "pids_limit": limits.pids,
        }

    def network(self, spec: SandboxSpec) -> dict[str, Any]:
        """The compose network of a project, with labels for the search."""
        return {"default": {"labels": _plain(self.labels(spec))}}

    def written(self, spec: SandboxSpec, project: dict[str, Any]) -> Path:
        """Write the compose file. Raises ``OSError``."""
        path = self.root / spec.name / _FILE
        path.write_bytes(msgspec.json.encode(project))
        return path

    async def remove(self, name: str) -> None:
        """As ``Sites.remove``: the container, then the network, then the folder."""
        await super().remove(name)

        async def delete(row: Mapping[str, Any]) -> None:
            await docker("network", "rm", row["Id"])

        await remove_all(f"the network of sandbox {name}", partial(self.networks, self.of_name(name)), delete)
        await private_folder.remove(self.root / name, self.pool)

    async def find(self, run_id: str | None) -> Sequence[Found]:
        """As ``Sites.find``: remains of a killed run, also a lone folder or network."""
        entries = list(await super().find(run_id))
        try:
            entries += [self.entry(row) for row in await self.networks(self.of_run(run_id))]
        except DockerRefused as error:
            raise SubstrateUnavailable(f"{self.kind}: docker does not answer: {error}") from error
        entries += private_folder.found_in(self.root, run_id)
        return list({entry.name: entry for entry in reversed(entries)}.values())

    async def networks(self, label: str) -> list[dict[str, Any]]:
        """Networks with a label. Raises ``DockerRefused``."""
        ids = await docker("network", "ls", "--no-trunc", "--quiet", "--filter", f"label={label}")
        answer = await docker("network", "inspect", *ids.split(), complaints=False) if ids.split() else ""
        return [{**row, "Config": {"Labels": row.get("Labels")}} for row in msgspec.json.decode(answer or "[]")]


def _plain(values: dict[str, str]) -> dict[str, str]:
    """Double every dollar sign: compose would insert variables."""
    return {key: value.replace("$", "$$") for key, value in values.items()}
