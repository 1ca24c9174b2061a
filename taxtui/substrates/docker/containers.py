"""The containers of a daemon, from create to removal, and their images: given, committed and built."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import random
import string
import tarfile
import time
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from taxtui.errors import CleanupFailed, CreateFailed, ExecFailed, SubstrateUnavailable, Throttled
from taxtui.sandboxes.kit import labels, removal
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.lifecycle import UNKNOWN, Usage
from taxtui.sandboxes.protocol import Found
from taxtui.substrates.docker import DockerOptions
from taxtui.substrates.docker.endpoint import endpoint
from taxtui.substrates.docker.failure import create_refused, exec_refused, no_client, no_image, refused
from taxtui.substrates.docker.http import Created, Daemon, Reply

_FOLDER: Final = "/tmp"
"""The working folder if the image has none: any user may write there."""

_ALREADY: Final = ("is already paused", "is not paused")
_BUSY_S: Final = 0.01
"""Pause before a second removal, if another is under way or a container still uses the image."""
_IMAGE: Final = "sha256:"
"""The beginning of an image's id; a container's id has none."""
_BUILD_TIMEOUT_S: Final = 3600.0
_BUILD_ENDS_S: Final = 1.0
"""The daemon needs up to half a second to end a build without a client, and may then leave a labelled image."""


class Image(NamedTuple):
    """An image's settings for the containers made from it."""

    folder: str  # the working directory
    restored: str  # restored by a reset: the home folder if the working directory is inside, else the working directory
    home: str  # "" if unknown
    name: str


class Containers:
    """Containers of an image, and further images made by taxtui; each has the labels of the run."""

    daemon: Daemon

    def __init__(self, options: DockerOptions) -> None:
        self._options = options
        self._pristine: bytes | None = None
        self._known_images: dict[str, Image] = {}

    async def open(self) -> None:
        """Find the daemon and the version of the Engine API. Raises ``SubstrateUnavailable``."""
        self.daemon = Daemon(endpoint(self._options.host))
        try:
            await self.daemon.negotiate()
        except ExecFailed as error:
            await self.daemon.close()
            raise no_client(error) from error

    async def facts(self, path: str, image: str = "") -> Any:
        """The daemon's answer about itself, or about an ``image``. Raises ``SubstrateUnavailable``."""
        reply = await self.daemon.ask("GET", path)
        if image and reply.status == 404:
            raise no_image(image)
        if reply.status != 200:
            raise SubstrateUnavailable(f"docker: the daemon does not answer: {reply.message}", fix="restart it")
        return reply.body

    async def inspected(self, image: str) -> Any:
        """The daemon's answer about an image. Raises ``SubstrateUnavailable``."""
        return await self.facts(f"/images/{quote(image, safe='/:@')}/json", image)

    async def image(self, reference: str = "") -> Image:
        """The image of the options or of a reference, looked up once. Raises ``SubstrateUnavailable``."""
        name = reference or self._options.image
        if name not in self._known_images:
            config = (await self.inspected(name))["Config"] or {}
            home = dict(variable.split("=", 1) for variable in config.get("Env") or ()).get("HOME", "")
            folder = (config.get("WorkingDir") or "").rstrip("/") or _FOLDER
            restored = home if home and f"{folder}/".startswith(f"{home}/") else folder
            self._known_images[name] = Image(folder, restored, home, name)
        return self._known_images[name]

    async def create(self, config: Mapping[str, Any], name: str) -> str:
        """The id of a new container, not started. ``config``: as the Engine API takes it.

        Raises ``CreateFailed``, ``SubstrateUnavailable``, ``Throttled``.
        """
        reply = await self.daemon.ask("POST", f"/containers/create?{urlencode({'name': name})}", config)
        if reply.status != 201:
            raise create_refused(reply.status, reply.message, config["Image"])
        return reply.read(Created).Id

    async def start(self, container: str) -> None:
        """Start a container; remove it after a failure. Raises as ``create``."""
        try:
            reply = await self.daemon.ask("POST", f"/containers/{container}/start")
            if reply.status not in (204, 304):
                raise refused(reply.status, reply.message, "make a container")
        except BaseException:
            await self.discard(container)
            raise

    async def labelled(self, kind: Literal["containers", "images"], label: str) -> list[Found]:
        """Everything with a label, ``KEY`` or ``KEY=value``, in any state. Raises ``SubstrateUnavailable``.

        Docker copies labels to a person's own commit of a sandbox, and to containers of that image: a name that taxtui
        did not give is the person's. Only images of a failed build have no name.
        """
        query = urlencode({"all": int(kind == "containers"), "filters": json.dumps({"label": [label]})})
        reply = await self.daemon.ask("GET", f"/{kind}/json?{query}")
        if reply.status != 200:
            raise SubstrateUnavailable(f"docker: cannot list {kind}: {reply.message}")
        entries = map(entry_of, reply.body or ())
        return [entry for entry in entries if entry.name.startswith((f"taxtui-{entry.run_id}-", entry.handle))]

    async def remove(self, handle: str) -> None:
        """Kill and delete a container, or delete an image with all tags. Raises ``CleanupFailed``."""
        subject, path = f"container {handle[:12]}", f"/containers/{handle}?force=1&v=1"
        if handle.startswith(_IMAGE):
            subject, path = f"image {handle[:19]}", f"/images/{quote(handle, safe=':')}?force=1"

        async def ask() -> bool:
            try:
                reply = await self.daemon.request("DELETE", path)
            except ExecFailed as error:
                raise CleanupFailed(error.problem) from error
            if reply.status not in (200, 204, 404):
                raise Throttled(reply.message)
            return True

        await removal.remove(subject, ask, first_s=_BUSY_S)

    async def pause(self, container: str, verb: Literal["pause", "unpause"]) -> None:
        """Pause or unpause a container, unless already done. Raises as an exec."""
        reply = await self.daemon.request("POST", f"/containers/{container}/{verb}")
        if reply.status != 204 and not any(words in reply.message for words in _ALREADY):
            raise exec_refused(reply.status, reply.message)

    async def usage(self, container: str) -> Usage:
        """Memory and CPU time of a container. Raises as an exec."""
        reply = await self.daemon.request("GET", f"/containers/{container}/stats?stream=0&one-shot=1")
        if reply.status != 200:
            raise exec_refused(reply.status, reply.message)
        stats = reply.read(dict[str, Any])
        memory_bytes = (stats.get("memory_stats") or {}).get("usage", UNKNOWN)
        cpu_ns = ((stats.get("cpu_stats") or {}).get("cpu_usage") or {}).get("total_usage", UNKNOWN)
        return Reply(reply.status, {"memory_bytes": memory_bytes, "cpu_ns": cpu_ns}).read(Usage)

    async def discard(self, container: str) -> None:
        """Remove a container without an owner; the deadline or ``taxtui clean`` repeats a failed removal."""
        with contextlib.suppress(CleanupFailed):
            await self.remove(container)

    async def pristine(self, sandbox: str, image_labels: dict[str, str]) -> bytes:
        """The folder restored by a reset, as a tar archive of an unstarted container.

        The container has the name of ``sandbox`` with a suffix of its own: an earlier one may be in removal.
        """
        if self._pristine is not None:
            return self._pristine
        image = await self.image()
        config = {"Image": image.name, "Entrypoint": ["true"], "Labels": image_labels, "WorkingDir": image.folder}
        container = await self.create(config, f"{sandbox}.{''.join(random.choices(string.ascii_lowercase, k=8))}")
        try:
            path = f"/containers/{container}/archive?{urlencode({'path': image.restored})}"
            reply = await self.daemon.request("GET", path, raw=True)
            if reply.status != 200:
                raise ExecFailed(f"the docker daemon gives no archive of {image.restored}: {reply.message}")
            self._pristine = bytes(reply.body)
            return self._pristine
        finally:
            await self.discard(container)

    async def commit(self, container: str, name: str, image_labels: Mapping[str, str]) -> str:
        """Copy a container's files into a new image, and return the image's id. Raises as ``Snapshots.snapshot``."""
        query = urlencode({"container": container, "repo": name, "pause": 1})
        reply = await self.daemon.ask("POST", f"/commit?{query}", {"Labels": dict(image_labels)})
        if reply.status != 201:
            raise refused(reply.status, reply.message, "commit the container")
        return reply.read(Created).Id

    async def build(self, name: str, dockerfile: str, image_labels: Mapping[str, str]) -> str:
        """Build an image without a cache, and return the id. The daemon ends a build without a client.

        The labels are the first instruction after each FROM: images of a failed build are labelled too.
        """
        query = urlencode({"t": name, "nocache": 1, "rm": 1, "forcerm": 1, "labels": json.dumps(dict(image_labels))})
        archive = _archive(_labelled(dockerfile, image_labels).encode())
        try:
            reply = await self.daemon.ask("POST", f"/build?{query}", archive, raw=True, timeout_s=_BUILD_TIMEOUT_S)
        except asyncio.CancelledError:
            await finish_despite_cancel(asyncio.sleep(_BUILD_ENDS_S))
            raise
        if reply.status != 200:
            raise refused(reply.status, reply.message, "build the image")
        image = ""
        for line in filter(None, bytes(reply.body).splitlines()):
            step = msgspec.json.decode(line)
            if "error" in step:
                raise CreateFailed(f"docker cannot build the image: {' '.join(str(step['error'])[:500].split())}")
            image = (step.get("aux") or {}).get("ID", image)
        if not image.startswith(_IMAGE):
            raise CreateFailed("docker cannot build the image: the daemon reports no image id")
        return str(image)


def entry_of(row: dict[str, Any]) -> Found:
    """The container or image of a list's row."""
    tags = [tag.rpartition(":")[0] for tag in row.get("RepoTags") or () if not tag.startswith("<none>")]
    name = [*(name.lstrip("/") for name in row.get("Names") or ()), *tags, row["Id"]][0]
    return labels.found(row.get("Labels") or {}, name=name, handle=row["Id"], age_s=time.time() - row["Created"])


def _labelled(dockerfile: str, image_labels: Mapping[str, str]) -> str:
    """The Dockerfile with a LABEL instruction after each FROM."""
    label = "LABEL " + " ".join(f'"{key}"={json.dumps(value)}' for key, value in image_labels.items())
    lines = []
    for line in dockerfile.splitlines():
        lines.append(line)
        if line.split(maxsplit=1)[:1] and line.split(maxsplit=1)[0].upper() == "FROM":
            lines.append(label)
    return "\n".join(lines) + "\n"


def _archive(dockerfile: bytes) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(dockerfile)
        tar.addfile(entry, io.BytesIO(dockerfile))
    return archive.getvalue()
