"""Images made by taxtui: snapshots of containers and builds, each with the labels of the run."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode

import msgspec
from docker.utils.build import mkbuildcontext

from taxtui.errors import CreateFailed
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.substrates.docker.containers import delete
from taxtui.substrates.docker.failure import refused
from taxtui.substrates.docker.http import Created, Daemon

ID_PREFIX: Final = "sha256:"
"""The beginning of an image's id; a container's id has none."""
_BUILD_TIMEOUT_S: Final = 3600.0
_BUILD_ENDS_S: Final = 1.0
"""The daemon needs up to half a second to end a build without a client, and may then leave a labelled image."""
_BUSY_S: Final = 0.05


async def commit(daemon: Daemon, container: str, name: str, image_labels: Mapping[str, str]) -> str:
    """Copy a container's files into a new image, and return the image's id. Raises as ``Snapshots.snapshot``."""
    query = urlencode({"container": container, "repo": name, "pause": 1})
    reply = await daemon.ask("POST", f"/commit?{query}", {"Labels": dict(image_labels)})
    if reply.status != 201:
        raise refused(reply.status, reply.message, "commit the container")
    return reply.read(Created).Id


async def build(daemon: Daemon, name: str, dockerfile: str, image_labels: Mapping[str, str]) -> str:
    """Build an image without a cache, and return the id. The daemon ends a build without a client.

    The labels are the first instruction after each FROM: images of a failed build are labelled too.
    """
    query = urlencode({"t": name, "nocache": 1, "rm": 1, "forcerm": 1, "labels": json.dumps(dict(image_labels))})
    with mkbuildcontext(io.BytesIO(_labelled(dockerfile, image_labels).encode())) as archive:
        content = archive.read()
    try:
        reply = await daemon.ask("POST", f"/build?{query}", content, raw=True, timeout_s=_BUILD_TIMEOUT_S)
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
    if not image.startswith(ID_PREFIX):
        raise CreateFailed("docker cannot build the image: the daemon reports no image id")
    return str(image)


async def remove(daemon: Daemon, image: str) -> None:
    """Delete an image with all tags, once no container uses the image. Raises ``CleanupFailed``."""
    await delete(daemon, f"image {image[:19]}", f"/images/{quote(image, safe=':')}?force=1", _BUSY_S)


def _labelled(dockerfile: str, image_labels: Mapping[str, str]) -> str:
    """The Dockerfile with a LABEL instruction after each FROM."""
    label = "LABEL " + " ".join(f'"{key}"={json.dumps(value)}' for key, value in image_labels.items())
    lines = []
    for line in dockerfile.splitlines():
        lines.append(line)
        if line.split(maxsplit=1)[:1] and line.split(maxsplit=1)[0].upper() == "FROM":
            lines.append(label)
    return "\n".join(lines) + "\n"
