"""Sandboxes of a harness as containers, reached by docker's command line, as harnesses do.

Labels have the harness's name as a prefix: cells of the substrate docker do not find these containers.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from taxtui.errors import CreateFailed, ExecFailed, SubstrateUnavailable, Throttled
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit import labels
from taxtui.sandboxes.kit.kill import LEFT, kill_script
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.limits import SANDBOX_ENV
from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.kit.refusal import last_line
from taxtui.sandboxes.kit.removal import remove
from taxtui.sandboxes.protocol import Availability, Found
from taxtui.substrates.harness.harnessed import Sites
from taxtui.workloads.image import DIGEST, FIXTURES_LABEL

_ANSWER_S: Final = 60.0
_NAME: Final = "taxtui.name"
_CREATED: Final = "taxtui.created"
_START: Final = "install or start docker"
_ALREADY: Final = "already in progress"
"""Docker's message for a second removal of the same container."""


class DockerRefused(Exception):
    """An error of docker's command line, with the last words. Never leaves this package."""


class HarnessContainers(Sites):
    """Containers of the daemon of docker's command line."""

    def __init__(self, kind: str, image: str, image_fix: str) -> None:
        """``kind``: the harness's name, in the labels; ``image_fix``: the fix for a missing image."""
        self.kind = kind
        self.image = image
        self.image_fix = image_fix

    async def open(self) -> None:
        """As ``Sites.open``: docker answers. A clean-up needs no image; ``check`` requires the image."""
        try:
            await docker("version", "--format", "{{.Server.Version}}")
        except DockerRefused as error:
            raise SubstrateUnavailable(f"{self.kind}: docker does not answer: {error}", fix=_START) from error

    async def check(self) -> Availability:
        """As ``Sites.check``: the command line, its daemon, the image."""
        try:
            asked_ns = time.monotonic_ns()
            version = (await docker("version", "--format", "{{.Server.Version}}")).strip()
            latency_ns = time.monotonic_ns() - asked_ns
        except DockerRefused as error:
            return Availability(ok=False, detail=f"docker does not answer: {error}", fix=_START)
        if not self.image:
            return Availability(ok=False, detail="no image is given", fix=f"{self.kind}:image=NAME; {self.image_fix}")
        try:
            description = json.loads(await docker("image", "inspect", self.image))[0]
        except DockerRefused:
            return Availability(ok=False, detail=f"there is no image {self.image} here", fix=self.image_fix)
        return Availability(
            ok=True,
            detail=f"docker {version}",
            version=version,
            image=description["Id"],
            image_bytes=description.get("Size", -1),
            cache="node",
            holds_fixtures=((description.get("Config") or {}).get("Labels") or {}).get(FIXTURES_LABEL) == DIGEST,
            limits="docker's",
            latency_ns=latency_ns,
        )

    async def add(self, spec: SandboxSpec) -> dict[str, str]:
        """As ``Sites.add``: nothing is made, and a used name is refused."""
        try:
            if await self.listed(self.of_name(spec.name)):
                raise CreateFailed(f"{spec.name} exists already")
        except DockerRefused as error:
            raise CreateFailed(f"docker does not answer: {error}") from error
        return {"LANG": "C.UTF-8", **spec.env, SANDBOX_ENV: spec.name}

    def labels(self, spec: SandboxSpec) -> dict[str, str]:
        """Labels of a container."""
        ours = {**spec.labels, _NAME: spec.name, _CREATED: str(int(time.time()))}
        return {self._key(key): value for key, value in ours.items()}

    def _key(self, key: str) -> str:
        return f"{self.kind}.{key}"

    def of_name(self, name: str) -> str:
        """The label filter of a sandbox."""
        return f"{self._key(_NAME)}={name}"

    def of_run(self, run_id: str | None) -> str:
        """The label filter of a run, or of all runs."""
        key = self._key(LABEL_RUN)
        return key if run_id is None else f"{key}={run_id}"

    async def find(self, run_id: str | None) -> Sequence[Found]:
        """As ``Sites.find``."""
        try:
            rows = await self.listed(self.of_run(run_id))
        except DockerRefused as error:
            raise SubstrateUnavailable(f"{self.kind}: docker does not answer: {error}") from error
        return [self.entry(row) for row in rows]

    async def listed(self, label: str) -> list[dict[str, Any]]:
        """Containers with a label, in any state. Raises ``DockerRefused``."""
        listing = await docker(
            "ps", "--all", "--no-trunc", "--filter", f"label={label}", "--format", "{{.ID}} {{.State}}"
        )
        rows = [line.split() for line in listing.splitlines()]
        if not rows:
            return []
        # A container removed meanwhile is left out; docker's complaint does not matter.
        answer = await docker("inspect", *(row[0] for row in rows), complaints=False)
        return list(json.loads(answer or "[]"))

    def entry(self, row: Mapping[str, Any]) -> Found:
        """The sandbox of a container with our labels, from docker's description."""
        prefix = f"{self.kind}."
        row_labels = (row.get("Config") or {}).get("Labels") or {}
        ours = {key.removeprefix(prefix): value for key, value in row_labels.items() if key.startswith(prefix)}
        age_s = time.time() - (labels.unix_s(ours.get(_CREATED, "")) or time.time())
        return labels.found(ours, name=ours.get(_NAME, ""), handle=row["Id"], age_s=age_s)

    async def kill(self, name: str, mark: str) -> None:
        try:
            for row in await self._running(name):
                await docker("exec", row["Id"], "sh", "-c", kill_script(mark))
        except DockerRefused as error:
            if not await self.ended(name):
                raise ExecFailed(f"{LEFT}: {error}") from error

    async def ended(self, name: str) -> bool:
        try:
            return not await self._running(name)
        except DockerRefused:
            return False

    async def _running(self, name: str) -> list[dict[str, Any]]:
        return [row for row in await self.listed(self.of_name(name)) if row["State"]["Running"]]

    async def remove(self, name: str) -> None:
        async def delete(row: Mapping[str, Any]) -> None:
            await docker("rm", "--force", "--volumes", row["Id"])

        await remove_all(f"sandbox {name}", partial(self.listed, self.of_name(name)), delete)


async def remove_all(
    subject: str,
    rows: Callable[[], Awaitable[Sequence[Mapping[str, Any]]]],
    delete: Callable[[Mapping[str, Any]], Awaitable[object]],
) -> None:
    """Delete every row of docker's list until the list is empty. Raises ``CleanupFailed``."""

    async def ask() -> bool:
        try:
            present = await rows()
            for row in present:
                await delete(row)
        except DockerRefused as error:
            if _ALREADY in str(error):
                return True
            raise Throttled(str(error)) from error
        return bool(present)

    async def ended() -> bool:
        try:
            return not await rows()
        except DockerRefused as error:
            raise Throttled(str(error)) from error

    await remove(subject, ask, ended, look_s=0.1, first_s=0.2)


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
