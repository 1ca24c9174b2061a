"""What substrates of containers without a daemon have in common; each kind adds how one is started and entered."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final, Literal, Self

import msgspec

from taxtui.errors import SubstrateUnavailable
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.limits import best_limiter
from taxtui.sandboxes.protocol import Availability, Capabilities, Found, Marks
from taxtui.substrates.machine.contained import ContainedSandbox
from taxtui.substrates.machine.host import Host
from taxtui.substrates.machine.options import MachineOptions
from taxtui.substrates.machine.root import Root, find_root
from taxtui.substrates.machine.store import Store

_THREADS: Final = 4
_VERSION_TIMEOUT_S: Final = 10.0


class MachineSubstrate(ABC):
    """Containers that a program on this machine starts."""

    name: ClassVar[str]
    Options: ClassVar[type[msgspec.Struct]]
    program: ClassVar[str]
    """What starts them, on the path."""
    package: ClassVar[str]
    """Debian's package with it."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Other programs on this machine's path."""
    needs_inside: ClassVar[tuple[str, ...]] = ("sh",)

    provenance: Literal["measured", "stand_in"] = "measured"

    def __init__(self, options: MachineOptions) -> None:
        """Nothing is looked for yet."""
        self.options = options
        self.variant = ""
        # Nobody but us removes what is left of one, though it ends at its time to live.
        self.capabilities = Capabilities(server_side_deadline=False)
        self.pool = BlockingPool(_THREADS, self.name)
        self.host: Host

    async def __aenter__(self) -> Self:
        """Find the program, the root file system and the limits that can be had. Raises ``SubstrateUnavailable``."""
        root = (await self.pool.run(self._ready)).value
        self.host = Host(root, await best_limiter(), Store(self.name), self.pool)
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Wait for file operations under way."""
        await self.pool.__aexit__(*exc)

    def _ready(self) -> Root:
        """Blocking. Raises ``SubstrateUnavailable``."""
        if os.geteuid() != 0:
            raise SubstrateUnavailable(f"{self.name}: only root can start such containers", fix="run taxtui as root")
        for program in (self.program, *self.needs):
            if shutil.which(program) is None:
                fix = f"apt install {self.package}" if program == self.program else f"install {program}"
                raise SubstrateUnavailable(f"{self.name}: {program} is not installed", fix=fix)
        root = find_root(self.name, self.options)
        if lacking := [program for program in self.needs_inside if not root.has(program)]:
            raise SubstrateUnavailable(f"{self.name}: {root.files} has no {lacking[0]}", fix="install it there")
        return root

    async def check(self) -> Availability:
        """As ``Substrate.check``."""
        try:
            root = (await self.pool.run(self._ready)).value
        except SubstrateUnavailable as error:
            return Availability(ok=False, detail=error.problem.removeprefix(f"{self.name}: "), fix=error.fix)
        version = (await self.pool.run(self.version)).value
        limits = (await best_limiter()).label
        return Availability(
            ok=True,
            detail=f"ready, {version}, limits: {limits}",
            version=version,
            image=root.image,
            image_bytes=root.image_bytes,
            cache="node",
            holds_fixtures=root.holds_fixtures,
            limits=limits,
            facts={"kernel": platform.release()},
        )

    def version(self) -> str:
        """The first line that the program says of itself. Blocking."""
        argv = [self.program, "--version"]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return next(iter(done.stdout.splitlines()), "")

    @abstractmethod
    def sandbox(self, name: str) -> ContainedSandbox:
        """One that is, or will be, on ``host``."""

    async def create(self, spec: SandboxSpec, marks: Marks) -> ContainedSandbox:
        """As ``Substrate.create``: returns when it runs."""
        sandbox = self.sandbox(spec.name)
        await sandbox.begin(spec, marks)
        return sandbox

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``."""
        return (await self.pool.run(lambda: self.host.store.found(run_id))).value

    async def reap(self, found: Found) -> None:
        """As ``Substrate.reap``."""
        await self.sandbox(found.name).destroy()
