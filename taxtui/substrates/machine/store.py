"""The containers of this user and one kind: a folder and a record each, which nothing that runs in them can reach."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from taxtui.errors import CleanupFailed
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit import private_folder
from taxtui.sandboxes.protocol import Found


class Store:
    """Where they are kept."""

    def __init__(self, kind: str) -> None:
        """Raises ``SubstrateUnavailable``."""
        self.folder = private_folder.private_folder(kind, kind)

    def add(self, spec: SandboxSpec) -> Path:
        """A folder for a new one. Blocking. Raises ``CreateFailed``."""
        try:
            return private_folder.make(self.folder, spec)
        except OSError as error:
            raise private_folder.not_made(spec, error) from error

    def found(self, run_id: str | None) -> Sequence[Found]:
        """All that are there. Blocking."""
        return private_folder.found_in(self.folder, run_id)

    def remove(self, name: str) -> None:
        """Forget one that has ended. Blocking, idempotent. Raises ``CleanupFailed``."""
        try:
            shutil.rmtree(self.folder / name)
        except FileNotFoundError:  # it is gone, or somebody else is about it
            pass
        except OSError as error:
            raise CleanupFailed(f"{name}: its folder cannot be deleted: {error.strerror}") from error
