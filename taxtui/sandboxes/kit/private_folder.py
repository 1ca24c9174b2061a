"""The folder of this user's sandboxes on this machine: a folder and a record for each sandbox, and the deletion."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from costmodel import read_regular
from taxtui.errors import CleanupFailed, CreateFailed, ExecFailed, SubstrateUnavailable
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit import labels
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.protocol import Found


def delete(*folders: Path) -> None:
    """Blocking: delete folders with unwritable files at any depth; the caller reports a remaining folder.

    By ``rm``: no path is too long, no call recurses, and a link is only unlinked. The runner, the watchdog and
    ``taxtui clean`` may delete the same sandbox at once.
    """
    present = [str(folder) for folder in folders if folder.is_dir() and not folder.is_symlink()]
    if present and _run("rm", "-rf", *present):
        _run("chmod", "-R", "u+rwX", *present)
        _run("rm", "-rf", *present)


def _run(*argv: str) -> int:
    return subprocess.run(argv, stderr=subprocess.DEVNULL, check=False).returncode


_RECORD: Final = "meta.json"
_RECORD_MAX_BYTES: Final = 16_384


class _Record(msgspec.Struct, frozen=True):
    """The data for finding and removing a sandbox of a dead creator."""

    labels: dict[str, str]
    created_unix_s: float


def private_folder(substrate: str, kind: str = "") -> Path:
    """The private folder of this user; ``kind`` separates the folders of several substrates.

    Raises:
        SubstrateUnavailable: the folder exists, and belongs to another user or is open to others.
    """
    folder = Path(tempfile.gettempdir()) / "-".join(filter(None, ("taxtui", kind, str(os.getuid()))))
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise SubstrateUnavailable(f"{substrate}: {folder} is not a private folder of yours", fix="remove it")
    return folder


def make(root: Path, spec: SandboxSpec) -> Path:
    """A folder for a new sandbox, with a record. Blocking. Raises ``CreateFailed``."""
    folder = root / spec.name
    try:
        folder.mkdir(mode=0o700)
        record = _Record(labels=spec.labels, created_unix_s=time.time())
        (folder / _RECORD).write_bytes(msgspec.json.encode(record))
    except FileExistsError as error:
        # Before the deadline a clean-up requires --force.
        fix = f"taxtui clean --run {spec.labels.get(LABEL_RUN, '')} --force removes it"
        raise CreateFailed(f"{spec.name} exists already", fix=fix) from error
    except OSError as error:
        raise not_made(spec, error) from error
    return folder


def not_made(spec: SandboxSpec, error: OSError) -> CreateFailed:
    """The error for a sandbox without its folders."""
    return CreateFailed(f"cannot make a directory for {spec.name}: {error.strerror}")


async def remove(folder: Path, pool: BlockingPool) -> None:
    """Delete a sandbox's folder in a thread, despite cancellation. Raises ``CleanupFailed``."""

    def deleted() -> bool:
        delete(folder)
        return not folder.exists()

    try:
        gone = await finish_despite_cancel(pool.run(deleted))
    except ExecFailed as error:
        raise CleanupFailed(f"{folder.name}: its directory is still being deleted: {error}") from error
    if not gone:
        raise CleanupFailed(f"{folder.name}: its directory cannot be deleted")


def found_in(root: Path, run_id: str | None = None) -> Sequence[Found]:
    """The sandboxes in a folder, of a run or of all runs. Blocking."""
    folders = sorted(root.iterdir()) if root.is_dir() else []
    sandboxes = [sandbox for folder in folders if folder.is_dir() and (sandbox := _sandbox_in(folder)) is not None]
    return [sandbox for sandbox in sandboxes if run_id is None or sandbox.run_id == run_id]


def _sandbox_in(folder: Path) -> Found | None:
    """The sandbox in a folder; None after a removal meanwhile."""
    path = folder / _RECORD
    try:
        if path.is_symlink():
            raise FileNotFoundError
        record = msgspec.json.decode(read_regular(path, _RECORD_MAX_BYTES), type=_Record)
    except (OSError, ValueError, msgspec.DecodeError):  # the creator died earlier, or the sandbox changed the record
        try:
            record = _Record(labels={}, created_unix_s=folder.stat().st_mtime)
        except FileNotFoundError:
            return None
    # Without isolation the sandbox can write there too: the folder's name decides the run.
    run_id = folder.name.removeprefix("taxtui-").rpartition("-")[0]
    age_s = time.time() - record.created_unix_s
    return labels.found({**record.labels, LABEL_RUN: run_id}, name=folder.name, handle=str(folder), age_s=age_s)
