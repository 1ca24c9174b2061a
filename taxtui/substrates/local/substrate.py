"""Sandboxes on this machine: bubblewrap if available, else plain subprocesses in a directory.

A sandbox is a directory under a private folder of this user, with ``work``, ``home`` and ``tmp``; each action is a
process. Files are the only state between two actions. Under bubblewrap a background process ends with the action, and
every process ends with taxtui.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final, Literal, Self

import msgspec

from taxtui.errors import SubstrateUnavailable
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit import private_folder
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.limits import Limiter, best_limiter
from taxtui.sandboxes.protocol import Availability, Capabilities, Found, Marks
from taxtui.substrates.local import LocalOptions
from taxtui.substrates.local import bubblewrap as local_bwrap
from taxtui.substrates.local.bubblewrap import PATH
from taxtui.substrates.local.sandbox import LocalSandbox
from taxtui.workloads import fixtures

_REMOVERS: Final = 4
_FOLDERS: Final = ("work", "home", "tmp")


class LocalSubstrate:
    """Processes on this machine."""

    name: ClassVar[str] = "local"
    Options: ClassVar[type[msgspec.Struct]] = LocalOptions
    provenance: Literal["measured", "stand_in"] = "measured"
    capabilities = Capabilities(
        bash=shutil.which("bash", path=PATH) is not None,
        acquire=("create", "reset"),
    )

    def __init__(self, options: LocalOptions | None = None) -> None:
        self._options = options or LocalOptions()
        isolation = self._options.isolation
        if isolation == "auto":
            isolation = "plain" if local_bwrap.complaint() else "bwrap"
        self.isolated = isolation == "bwrap"
        self.variant: str = isolation
        self.fixtures = self._options.folder()
        self.limiter: Limiter
        self.pool = BlockingPool(_REMOVERS, "local")

    async def __aenter__(self) -> Self:
        complaint, fix = self._complaint()
        if complaint:
            raise SubstrateUnavailable(f"local: {complaint}", fix=fix)
        if self.fixtures is None:
            # The run has built the fixtures if a tier needs fixtures.
            self.fixtures = await self.pool.run(fixtures.cached)
        self.root = private_folder.private_folder(self.name)
        self.limiter = await best_limiter()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.pool.__aexit__(*exc)

    def _complaint(self) -> tuple[str, str]:
        """The problem ("" if none) and the fix."""
        if complaint := self._options.complaint():
            return complaint, ""
        if self.isolated and (complaint := local_bwrap.complaint()):
            return complaint, "install bubblewrap, or use local:isolation=plain"
        return "", ""

    async def check(self) -> Availability:
        complaint, fix = self._complaint()
        if complaint:
            return Availability(ok=False, detail=complaint, fix=fix)
        limits = (await best_limiter()).label
        isolated = self.isolated
        version = local_bwrap.version() if isolated else ""
        isolation = version if isolated else "plain subprocesses: no isolation"
        return Availability(
            ok=True,
            detail=f"ready, {isolation}, limits: {limits}",
            version=version,
            cache="node",
            tools=_programs(PATH if isolated else os.environ.get("PATH", PATH)),
            limits=limits,
            facts={"kernel": platform.release()},
        )

    async def create(self, spec: SandboxSpec, marks: Marks) -> LocalSandbox:
        folder = private_folder.make(self.root, spec)
        try:
            if self.isolated:
                local_bwrap.furnish_etc(folder / local_bwrap.ETC)
            self.furnish(folder)
        except OSError as error:
            raise private_folder.not_made(spec, error) from error
        enter = self.limiter.prepare(spec.name, spec.limits)
        marks("limits set")
        return LocalSandbox(self, spec, folder, enter)

    def furnish(self, folder: Path) -> None:
        """Blocking: make the writable folders of a sandbox, empty."""
        folders = [folder / name for name in _FOLDERS]
        private_folder.delete(*folders)
        for inner in folders:
            inner.mkdir()
            if self.isolated:
                local_bwrap.hand_over(inner)

    async def remove(self, name: str) -> None:
        """Kill the processes of a sandbox, remove the limits, delete the files. Raises ``CleanupFailed``."""
        await self.limiter.kill(name)
        await self.limiter.remove(name)
        await private_folder.remove(self.root / name, self.pool)

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        return private_folder.found_in(self.root, run_id)

    async def reap(self, entry: Found) -> None:
        await self.remove(entry.name)


def _programs(search: str) -> frozenset[str]:
    names: set[str] = set()
    for folder in search.split(os.pathsep):
        with contextlib.suppress(OSError):
            names.update(entry.name for entry in Path(folder).iterdir())
    return frozenset(names)
