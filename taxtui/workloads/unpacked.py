"""The image's files as a folder on this machine, for sandboxes that no daemon makes::

<cache>/taxtui/root-<digest>/
  files/       the image's file system, owners and modes kept
  root.json    what the image says of itself
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from costmodel.regular_file import read_regular
from taxtui import folders
from taxtui.errors import TaxtuiError, UsageError
from taxtui.workloads.image import DEFAULT_IMAGE, DIGEST, FIXTURES_LABEL, asked_of_docker

FILES: Final = "files"
ABOUT: Final = "root.json"
MOST_ABOUT: Final = 1 << 20
"""Bytes of it."""


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What an image says of itself."""

    image: str  # its id
    image_bytes: int
    fixtures: str  # the digest of those that it holds, "" where it holds none
    env: dict[str, str]
    user: str  # UID:GID, either may be missing
    folder: str  # the working one


def unpack(
    image: str = DEFAULT_IMAGE, to: Path | None = None, progress: Callable[[str], None] = lambda _: None
) -> Path:
    """Unpack an image that the docker daemon has into ``to``, or into the cache; returns the folder.

    Raises:
        UsageError: not root, who alone can keep the files' owners; or the folder exists.
        SubstrateUnavailable: no docker command, no daemon, or no such image.
        TaxtuiError: the disk does not take it.
    """
    if os.geteuid() != 0:
        raise UsageError("only root can keep the owners of an image's files", fix="run it as root")
    final = to or default_folder()
    if (final / ABOUT).is_file() and to is None:
        return final
    if final.exists():
        raise UsageError(f"{final} exists", fix="remove it, or name another folder")
    about = _about(image)
    progress(f"unpacking {image}, {about.image_bytes / 2**20:,.0f} MiB")
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="unpacking-", dir=final.parent) as scratch:
            built = Path(scratch, "root")
            (built / FILES).mkdir(parents=True)
            _export(image, built / FILES)
            (built / ABOUT).write_bytes(msgspec.json.encode(about))
            built.chmod(0o755)
            with suppress(FileExistsError):  # of several, the first wins
                built.rename(final)
    except OSError as error:
        raise TaxtuiError(f"cannot unpack {image} into {final}: {error.strerror or error}") from error
    return final


def default_folder() -> Path:
    """Where the shipped image is unpacked; need not exist. Raises ``UsageError``: the user has no home."""
    return folders.cache() / f"root-{DIGEST}"


def about(folder: Path) -> About | None:
    """What was unpacked into a folder; None where nothing was."""
    try:
        return msgspec.json.decode(read_regular(folder / ABOUT, MOST_ABOUT), type=About)
    except (OSError, msgspec.DecodeError):
        return None


def _about(image: str) -> About:
    text = asked_of_docker(f"there is no image {image} here", "image", "inspect", "--format={{json .}}", image)
    told: dict[str, Any] = msgspec.json.decode(text)
    config = told.get("Config") or {}
    return About(
        image=told["Id"],
        image_bytes=told.get("Size", -1),
        fixtures=(config.get("Labels") or {}).get(FIXTURES_LABEL, ""),
        env=dict(entry.split("=", 1) for entry in config.get("Env") or [] if "=" in entry),
        user=config.get("User", ""),
        folder=config.get("WorkingDir") or "",
    )


def _export(image: str, into: Path) -> None:
    """Raises ``OSError``, ``TaxtuiError``."""
    container = asked_of_docker(f"cannot make a container of {image}", "create", image, "true")
    try:
        with subprocess.Popen(["docker", "export", container], stdout=subprocess.PIPE) as exported:
            done = subprocess.run(
                ["tar", "--extract", "--numeric-owner", "--preserve-permissions", "--directory", str(into)],
                stdin=exported.stdout,
                capture_output=True,
                check=False,
            )
        if exported.returncode or done.returncode:
            words = done.stderr.decode(errors="replace").strip().splitlines()
            raise TaxtuiError(f"cannot unpack {image}: {words[-1] if words else 'docker export failed'}")
    finally:
        asked_of_docker("cannot remove a container", "rm", container)
