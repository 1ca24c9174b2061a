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
from taxtui.substrates.local import LocalOptions, disk, freezing
from taxtui.substrates.local import bubblewrap as local_bwrap
from taxtui.substrates.local.bubblewrap import PATH
from taxtui.substrates.local.sandbox import LocalSandbox, SandboxFolders
from taxtui.workloads import fixtures

_REMOVERS: Final = 4


class LocalSubstrate:
    """Processes on this machine."""

    name: ClassVar[str] = "local"
    Options: ClassVar[type[msgspec.Struct]] = LocalOptions
    provenance: Literal["measured", "stand_in"] = "measured"
    capabilities = Capabilities(
        bash=shutil.which("bash", path=PATH) is not None,
        acquire=("create", "reset"),
        lifecycle=("suspend",),
    )

    def __init__(self, options: LocalOptions | None = None) -> None:
        self._options = options or LocalOptions()
        isolation = self._options.isolation
        if isolation == "auto":
            isolation = "plain" if local_bwrap.complaint() else "bwrap"
        self._isolated = isolation == "bwrap"
        size_mib = self._options.disk_mib
        self.variant: str = f"{isolation} {size_mib}MiB" if size_mib else isolation
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
        self._folders = SandboxFolders(self.root, self.limiter, self.pool, isolated=self._isolated)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.pool.__aexit__(*exc)

    def _complaint(self) -> tuple[str, str]:
        """The problem ("" if none) and the fix."""
        if complaint := self._options.complaint():
            return complaint, ""
        if self._isolated and (complaint := local_bwrap.complaint()):
            return complaint, "install bubblewrap, or use local:isolation=plain"
        if self._options.disk_mib and not self._isolated:
            return "disk_mib requires isolation=bwrap: a plain subprocess can write anywhere", "leave disk_mib out"
        if self._options.disk_mib and (complaint := disk.complaint()):
            return complaint, "leave disk_mib out"
        return "", ""

    async def check(self) -> Availability:
        complaint, fix = self._complaint()
        if complaint:
            return Availability(ok=False, detail=complaint, fix=fix)
        limiter = await best_limiter()
        limits = limiter.label
        isolated = self._isolated
        version = local_bwrap.version() if isolated else ""
        isolation = version if isolated else "plain subprocesses: no isolation"
        return Availability(
            ok=True,
            detail=f"ready, {isolation}, limits: {limits}",
            version=version,
            cache="node",
            tools=_programs(PATH if isolated else os.environ.get("PATH", PATH)),
            limits=limits,
            facts={"kernel": platform.release(), "suspend": freezing.means(limiter)},
        )

    async def create(self, spec: SandboxSpec, marks: Marks) -> LocalSandbox:
        folder = private_folder.make(self.root, spec)
        try:
            if self._options.disk_mib:
                folder = disk.limited(folder, self._options.disk_mib)
            if self._isolated:
                local_bwrap.furnish_etc(folder / local_bwrap.ETC)
            self._folders.furnish(folder)
        except OSError as error:
            raise private_folder.not_made(spec, error) from error
        enter = self.limiter.prepare(spec.name, spec.limits)
        marks("limits set")
        return LocalSandbox(
            self._folders, spec, folder, enter, self.fixtures, "bash" if self.capabilities.bash else "sh"
        )

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        return private_folder.found_in(self.root, run_id)

    async def reap(self, entry: Found) -> None:
        await self._folders.remove(entry.name)


def _programs(search: str) -> frozenset[str]:
    names: set[str] = set()
    for folder in search.split(os.pathsep):
        with contextlib.suppress(OSError):
            names.update(entry.name for entry in Path(folder).iterdir())
    return frozenset(names)
