"""The containers of one daemon: the SDK's client in threads and our own beside it, their image, and their removal."""

from __future__ import annotations

import contextlib
import socket
from typing import Final, NamedTuple

import docker
import requests
from docker.errors import APIError, DockerException, NotFound

from taxtui.errors import CleanupFailed, Throttled
from taxtui.sandboxes.kit import removal
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.substrates.docker.endpoint import Endpoint, endpoint
from taxtui.substrates.docker.failure import NONSENSE, no_client, said
from taxtui.substrates.docker.http import Daemon
from taxtui.substrates.docker.options import DockerOptions

SANDBOX_ENV: Final = "TAXTUI_SANDBOX"
"""In the environment of everything in a container: its name."""
OUR_FOLDER: Final = "/sandbox"
"""The working folder where the image does not name one."""

_THREADS: Final = 256  # started as they are needed: at least the concurrency
_TIMEOUT_S: Final = 60
_BUSY_S: Final = 0.01
"""Before a removal is asked for a second time: it is under way already, by the deadline's or by someone else's."""


class Image(NamedTuple):
    """What an image says about the containers made from it."""

    folder: str  # the working directory
    restored: str  # what a reset brings back: the home folder if the working directory is in it
    home: str  # "" where the image does not say
    root: bool


class Containers:
    """Containers of one image, made, looked at and removed by the SDK; ``daemon`` runs what runs in them."""

    endpoint: Endpoint
    daemon: Daemon

    def __init__(self, options: DockerOptions) -> None:
        """Nothing is opened yet."""
        self.pool = BlockingPool(_THREADS, "docker")
        self._options = options
        self._pristine: bytes | None = None
        self._known_image: Image | None = None
        self._client: docker.APIClient | None = None

    async def open(self) -> None:
        """Connect. Raises ``SubstrateUnavailable``."""
        self.endpoint = endpoint(self._options.host)
        self._client = await self.pool.run(lambda: connect(self.endpoint))
        self.daemon = Daemon(self.endpoint.address)

    async def close(self) -> None:
        """Wait for calls under way, then disconnect."""
        await self.pool.__aexit__()
        await self.daemon.close()
        self.client.close()

    @property
    def is_open(self) -> bool:
        """Whether there is a client."""
        return self._client is not None

    @property
    def client(self) -> docker.APIClient:
        """The SDK's low-level client; for use in a thread of the pool."""
        assert self._client is not None, "used outside `async with`"
        return self._client

    def image(self) -> Image:
        """Blocking: the image, looked at once. Raises what the SDK raises."""
        if self._known_image is None:
            found = self.client.inspect_image(self._options.image)  # type: ignore[no-untyped-call]
            config = found.get("Config") or {}
            home = dict(each.split("=", 1) for each in config.get("Env") or ()).get("HOME", "")
            folder = config.get("WorkingDir", "").rstrip("/") or OUR_FOLDER
            self._known_image = Image(
                folder=folder,
                restored=home if home and f"{folder}/".startswith(f"{home}/") else folder,
                home=home,
                root=(self._options.user or config.get("User", "")).partition(":")[0] in ("", "0", "root"),
            )
        return self._known_image

    async def remove(self, container: str) -> None:
        """Kill and delete a container, and return when it is gone. Raises ``CleanupFailed``."""

        async def ask() -> bool:
            try:
                await self.pool.run(lambda: self._remove(container))
            except APIError as error:
                raise Throttled(said(error)) from error
            except (DockerException, requests.RequestException) as error:
                raise CleanupFailed(f"the daemon does not answer: {said(error)}") from error
            return True

        await removal.remove(f"container {container[:12]}", ask, first_s=_BUSY_S)

    def _remove(self, container: str) -> None:
        """Blocks until the daemon has deleted it, or knows nothing of it."""
        with contextlib.suppress(NotFound):
            self.client.remove_container(container, v=True, force=True)

    def discard(self, container: str) -> None:
        """Blocks: remove what nobody will hold."""
        removal.insist(lambda: self._remove(container), (DockerException, requests.RequestException))

    async def pristine(self, labels: dict[str, str]) -> bytes:
        """What a reset brings back, as a tar archive, from a container that is never started."""
        if self._pristine is None:
            self._pristine = await self.pool.run(lambda: self._archive(labels))
        return self._pristine

    def _archive(self, labels: dict[str, str]) -> bytes:
        client, image = self.client, self.image()
        container = client.create_container(
            self._options.image,
            entrypoint=["true"],
            labels=labels,
            working_dir=image.folder,
            use_config_proxy=False,
        )["Id"]
        try:
            return b"".join(client.get_archive(container, image.restored)[0])
        finally:
            self.discard(container)


def connect(where: Endpoint) -> docker.APIClient:
    """Blocking. Raises ``SubstrateUnavailable``."""
    try:
        if where.address.path:
            _knock(where.address.path)
        return docker.APIClient(
            base_url=where.url, tls=where.tls, version="auto", timeout=_TIMEOUT_S, max_pool_size=_THREADS
        )
    except (DockerException, requests.RequestException, OSError, *NONSENSE) as error:
        raise no_client(error) from error


def _knock(path: str) -> None:
    """Connect once ourselves: the SDK hides why it could not, and leaves the socket open."""
    with socket.socket(socket.AF_UNIX) as knocking:
        knocking.settimeout(_TIMEOUT_S)
        knocking.connect(path)
