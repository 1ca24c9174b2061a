"""The containers of a daemon, from create to removal, and their image."""

from __future__ import annotations

import contextlib
import json
import random
import string
import time
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote, urlencode

from taxtui.errors import CleanupFailed, ExecFailed, SubstrateUnavailable, Throttled
from taxtui.sandboxes.kit import labels, removal
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
"""Pause before a second request, if the deadline or another process is removing the container."""


class Image(NamedTuple):
    """An image's settings for the containers made from it."""

    folder: str  # the working directory
    restored: str  # restored by a reset: the home folder if the working directory is inside, else the working directory
    home: str  # "" if unknown
    name: str


class Containers:
    """Containers of an image."""

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

    async def facts(self, path: str) -> Any:
        """The daemon's answer about itself. Raises ``SubstrateUnavailable``."""
        reply = await self.daemon.ask("GET", path)
        if reply.status != 200:
            raise SubstrateUnavailable(f"docker: the daemon does not answer: {reply.message}", fix="restart it")
        return reply.body

    async def inspected(self, name: str) -> Any:
        """The daemon's answer about an image. Raises ``SubstrateUnavailable``."""
        reply = await self.daemon.ask("GET", f"/images/{quote(name, safe='/:@')}/json")
        if reply.status == 404:
            raise no_image(name)
        return reply.body

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

    async def remove(self, container: str) -> None:
        """Kill and delete a container, and return when the container is gone. Raises ``CleanupFailed``."""
        path = f"/containers/{container}?force=1&v=1"
        await delete(self.daemon, f"container {container[:12]}", path, _BUSY_S)

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


def entry_of(row: dict[str, Any]) -> Found:
    """The container or image of a list's row."""
    tags = [tag.rpartition(":")[0] for tag in row.get("RepoTags") or () if not tag.startswith("<none>")]
    name = [*(name.lstrip("/") for name in row.get("Names") or ()), *tags, row["Id"]][0]
    return labels.found(row.get("Labels") or {}, name=name, handle=row["Id"], age_s=time.time() - row["Created"])


async def delete(daemon: Daemon, subject: str, path: str, first_s: float) -> None:
    """Delete a container or an image, and return after the end. Raises ``CleanupFailed``."""

    async def ask() -> bool:
        try:
            reply = await daemon.request("DELETE", path)
        except ExecFailed as error:
            raise CleanupFailed(error.problem) from error
        if reply.status not in (200, 204, 404):
            raise Throttled(reply.message)
        return True

    await removal.remove(subject, ask, first_s=first_s)
