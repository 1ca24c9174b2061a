"""Sandboxes of a harness as containers, reached by docker's command line, as harnesses do.

Labels have the harness's name as a prefix: cells of the substrate docker do not find these containers.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from taxtui.errors import ExecFailed, SubstrateUnavailable, Throttled
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit import labels, private_folder
from taxtui.sandboxes.kit.kill import LEFT, kill_script
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.kit.refusal import last_line
from taxtui.sandboxes.kit.removal import remove
from taxtui.sandboxes.protocol import Availability, Found
from taxtui.substrates.harness.harness import Sites
from taxtui.workloads.image import DEFAULT_IMAGE, DIGEST, FIXTURES_LABEL

_ANSWER_S: Final = 60.0
_NAME: Final = "taxtui.name"
_CREATED: Final = "taxtui.created"
_FILE: Final = "compose.json"
_ALREADY: Final = "already in progress"
"""Docker's message for a second removal of the same container."""


class DockerRefused(Exception):
    """An error of docker's command line, with the last words. Never leaves this package."""


class HarnessContainers(Sites):
    """Containers of the daemon of docker's command line, by themselves or as compose projects.

    A compose project has a compose file in the sandbox's folder, and possibly a network.
    """

    def __init__(self, kind: str, image: str, image_fix: str, *, compose: bool = True) -> None:
        """``kind``: the harness's name, in the labels; ``image_fix``: the fix for a missing image."""
        super().__init__(kind)
        self.kind = kind
        self.image = image
        self.image_fix = image_fix
        self._compose = compose

    async def open(self) -> None:
        """As ``Sites.open``: docker answers. A clean-up needs no image; ``check`` requires the image."""
        await self._version()
        self.root = private_folder.private_folder(self.kind, self.kind)

    async def _version(self) -> str:
        try:
            return (await docker("version", "--format", "{{.Server.Version}}")).strip()
        except DockerRefused as error:
            fix = "install or start docker"
            raise SubstrateUnavailable(f"{self.kind}: docker does not answer: {error}", fix=fix) from error

    async def check(self) -> Availability:
        """As ``Sites.check``: the command line, its daemon, the image, the compose plugin."""
        try:
            asked_ns = time.monotonic_ns()
            version = await self._version()
            latency_ns = time.monotonic_ns() - asked_ns
        except SubstrateUnavailable as error:
            return Availability(ok=False, detail=error.problem.removeprefix(f"{self.kind}: "), fix=error.fix)
        if not self.image:
            return Availability(ok=False, detail="no image is given", fix=f"{self.kind}:image=NAME; {self.image_fix}")
        try:
            description = json.loads(await docker("image", "inspect", self.image))[0]
        except DockerRefused:
            fix = self.image_fix if self.image == DEFAULT_IMAGE else f"docker pull {self.image}, or {self.image_fix}"
            return Availability(ok=False, detail=f"there is no image {self.image} here", fix=fix)
        try:
            compose = (await docker("compose", "version", "--short")).strip() if self._compose else ""
        except DockerRefused as error:
            fix = "install docker's compose plugin"
            return Availability(ok=False, detail=f"docker has no compose: {error}", fix=fix)
        return Availability(
            ok=True,
            detail=f"docker {version}" + (f", compose {compose}" if compose else ""),
            version=version,
            image=description["Id"],
            image_bytes=description.get("Size", -1),
            cache="node",
            holds_fixtures=((description.get("Config") or {}).get("Labels") or {}).get(FIXTURES_LABEL) == DIGEST,
            limits="docker's",
            latency_ns=latency_ns,
            facts={"compose": compose} if compose else {},
        )

    def labels(self, spec: SandboxSpec) -> dict[str, str]:
        """Labels of a container."""
        ours = {**spec.labels, _NAME: spec.name, _CREATED: str(int(time.time()))}
        return {self._key(key): value for key, value in ours.items()}

    def _key(self, key: str) -> str:
        return f"{self.kind}.{key}"

    def _of_name(self, name: str) -> str:
        """The label filter of a sandbox."""
        return f"{self._key(_NAME)}={name}"

    def compose_file(
        self, spec: SandboxSpec, env: dict[str, str], name: str, service: dict[str, Any], *, network: bool
    ) -> Path:
        """Write a compose file: the harness's own service ``name``, with limits, labels and environment of taxtui's.

        ``network``: a network for this sandbox, with labels for the search. Raises ``OSError``.
        """
        limits, ours = spec.limits, _plain(self.labels(spec))
        project: dict[str, Any] = {"networks": {"default": {"labels": ours}}} if network else {}
        project["services"] = {
            name: {
                **service,
                **({} if network else {"network_mode": "none"}),
                "pull_policy": "never",
                "labels": ours,
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
        }
        path = self.root / spec.name / _FILE
        path.write_bytes(msgspec.json.encode(project))
        return path

    async def find(self, run_id: str | None) -> Sequence[Found]:
        """As ``Sites.find``: remains of a killed run, also a lone folder."""
        key = self._key(LABEL_RUN)
        try:
            ids = await _listed("container", key if run_id is None else f"{key}={run_id}", "--all")
            # A container removed meanwhile is left out; docker's complaint does not matter.
            rows = json.loads(await docker("inspect", *ids, complaints=False) or "[]") if ids else []
        except DockerRefused as error:
            raise SubstrateUnavailable(f"{self.kind}: docker does not answer: {error}") from error
        entries = [*await super().find(run_id), *map(self._entry, rows)]
        return list({entry.name: entry for entry in entries}.values())

    def _entry(self, row: Mapping[str, Any]) -> Found:
        """The sandbox of a container with our labels, from docker's description."""
        prefix = self._key("")
        row_labels = (row.get("Config") or {}).get("Labels") or {}
        ours = {key.removeprefix(prefix): value for key, value in row_labels.items() if key.startswith(prefix)}
        age_s = time.time() - (labels.unix_s(ours.get(_CREATED, "")) or time.time())
        return labels.found(ours, name=ours.get(_NAME, ""), handle=row["Id"], age_s=age_s)

    async def kill(self, name: str, mark: str) -> None:
        try:
            for container in await _listed("container", self._of_name(name)):
                await docker("exec", container, "sh", "-c", kill_script(mark))
        except DockerRefused as error:
            if not await self.ended(name):
                raise ExecFailed(f"{LEFT}: {error}") from error

    async def ended(self, name: str) -> bool:
        try:
            return not await _listed("container", self._of_name(name))
        except DockerRefused:
            return False

    async def remove(self, name: str) -> None:
        """As ``Sites.remove``: the container, then the network, then the folder."""
        await _remove_all("container", self._of_name(name), "--force", "--volumes")
        if self._compose:
            await _remove_all("network", self._of_name(name))
        await private_folder.remove(self.root / name, self.pool)


async def _listed(kind: str, label: str, *options: str) -> list[str]:
    """Ids of running containers, or of networks, with a label. Raises ``DockerRefused``."""
    return (await docker(kind, "ls", "--no-trunc", "--quiet", "--filter", f"label={label}", *options)).split()


async def _remove_all(kind: str, label: str, *options: str) -> None:
    """Delete every container or network with a label, until the list is empty. Raises ``CleanupFailed``."""

    async def remaining(*, delete: bool) -> bool:
        try:
            ids = await _listed(kind, label, *(("--all",) if kind == "container" else ()))
            if ids and delete:
                await docker(kind, "rm", *options, *ids)
        except DockerRefused as error:
            if _ALREADY not in str(error):
                raise Throttled(str(error)) from error
            return True
        return bool(ids)

    async def ended() -> bool:
        return not await remaining(delete=False)

    await remove(f"the {kind} of {label}", lambda: remaining(delete=True), ended, look_s=0.1, first_s=0.2)


async def docker(*words: str, complaints: bool = True) -> str:
    """The output of docker's command line; without ``complaints`` also after an error.

    Raises:
        DockerRefused: the last words of an error, no such program, or no answer within a minute.
    """
    program = shutil.which("docker")
    if program is None:
        raise DockerRefused("the program docker is not installed")
    process = Process([program, *words], dict(os.environ), stdin=False)
    try:
        async with asyncio.timeout(_ANSWER_S):
            out, err = await process.output()
    except TimeoutError:
        raise DockerRefused(f"no answer within {_ANSWER_S:g} s") from None
    finally:
        await process.close()
    if process.returncode and complaints:
        raise DockerRefused(" ".join(last_line(err.kept).split()) or f"exit code {process.returncode}")
    return out.kept.decode(errors="replace")


def _plain(values: dict[str, str]) -> dict[str, str]:
    """Double every dollar sign: compose would insert variables."""
    return {key: value.replace("$", "$$") for key, value in values.items()}
