"""The containers of this user and one kind: a folder and a record each, which nothing that runs in them can reach."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from taxtui.errors import CleanupFailed, CreateFailed
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit import labels
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.private_folder import private_folder
from taxtui.sandboxes.protocol import Found

_RECORD: Final = "record.json"


class _Record(msgspec.Struct, frozen=True):
    labels: dict[str, str]
    created_unix_s: float


class Store:
    """Where they are kept."""

    def __init__(self, kind: str) -> None:
        """Raises ``SubstrateUnavailable``."""
        self.folder = private_folder(kind, kind)

    def add(self, spec: SandboxSpec) -> Path:
        """A folder for a new one. Blocking. Raises ``CreateFailed``."""
        folder = self.folder / spec.name
        try:
            folder.mkdir(mode=0o700)
            record = _Record(labels=spec.labels, created_unix_s=time.time())
            (folder / _RECORD).write_bytes(msgspec.json.encode(record))
        except FileExistsError as error:
            fix = f"taxtui sweep --run {spec.labels.get(LABEL_RUN, '')} --force removes it"
            raise CreateFailed(f"{spec.name} exists already", fix=fix) from error
        except OSError as error:
            raise CreateFailed(f"cannot make a directory for {spec.name}: {error.strerror}") from error
        return folder

    def found(self, run_id: str | None) -> Sequence[Found]:
        """All that are there. Blocking."""
        every = [each for folder in sorted(self.folder.iterdir()) if (each := _found(folder)) is not None]
        return [each for each in every if run_id is None or each.run_id == run_id]

    def remove(self, name: str) -> None:
        """Forget one that has ended. Blocking, idempotent. Raises ``CleanupFailed``."""
        try:
            shutil.rmtree(self.folder / name)
        except FileNotFoundError:  # it is gone, or somebody else is about it
            pass
        except OSError as error:
            raise CleanupFailed(f"{name}: its folder cannot be deleted: {error.strerror}") from error


def _found(folder: Path) -> Found | None:
    """None where it is removed while we look."""
    try:
        try:
            record = msgspec.json.decode((folder / _RECORD).read_bytes(), type=_Record)
        except (
            FileNotFoundError,
            msgspec.DecodeError,
        ):  # its creator died before it was written: the name has the run
            run_id = folder.name.removeprefix("taxtui-").rpartition("-")[0]
            record = _Record(labels={LABEL_RUN: run_id}, created_unix_s=folder.stat().st_mtime)
    except OSError:
        return None
    age_s = time.time() - record.created_unix_s
    return labels.found(record.labels, name=folder.name, handle=str(folder), age_s=age_s)
