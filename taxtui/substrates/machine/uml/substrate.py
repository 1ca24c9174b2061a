"""User-mode Linux: each sandbox has a kernel of its own, a program of this machine that needs no KVM.

What a machine costs beside a container: a boot, memory that is its own, and every system call by way of the kernel's
tracing. The root file system is shared; what a sandbox writes is in its memory and ends with it. There is no network.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import ClassVar

import msgspec

from taxtui.errors import SubstrateUnavailable
from taxtui.sandboxes.protocol import Availability
from taxtui.substrates.machine.containers import MachineSubstrate
from taxtui.substrates.machine.root import Root
from taxtui.substrates.machine.uml.boot import KERNEL, overlay_module, too_many_registers
from taxtui.substrates.machine.uml.failure import GARBAGE
from taxtui.substrates.machine.uml.options import UmlOptions
from taxtui.substrates.machine.uml.sandbox import UmlSandbox


class UmlSubstrate(MachineSubstrate):
    """Machines of user-mode Linux."""

    name: ClassVar[str] = "uml"
    Options: ClassVar[type[msgspec.Struct]] = UmlOptions
    program: ClassVar[str] = KERNEL
    package: ClassVar[str] = "user-mode-linux"
    needs: ClassVar[tuple[str, ...]] = ("bwrap", "timeout")
    needs_inside: ClassVar[tuple[str, ...]] = (
        *("sh", "mount", "umount", "chroot", "setsid", "setpriv"),
        *("stty", "grep", "cat", "mkfifo", "env"),
    )

    def __init__(self, options: UmlOptions | None = None) -> None:
        """Nothing is looked for yet."""
        super().__init__(options or UmlOptions())
        self._narrow = False

    async def check(self) -> Availability:
        """As ``Substrate.check``: says as well where results may be wrong and nobody would be told."""
        found = await super().check()
        if not found.ok or not self._narrow:
            return found
        return msgspec.structs.replace(found, detail=f"{found.detail}; {GARBAGE}")

    def _ready(self) -> Root:
        root = super()._ready()
        if not overlay_module():
            raise SubstrateUnavailable(
                f"{self.name}: {self.package} has no module for overlays", fix=f"apt install {self.package}"
            )
        if not any(shutil.which(program, path="/usr/sbin:/usr/bin") for program in ("insmod", "busybox")):
            raise SubstrateUnavailable(f"{self.name}: no program here loads a module", fix="apt install kmod")
        self._narrow = too_many_registers(Path("/proc/cpuinfo").read_text())
        return root

    def sandbox(self, name: str) -> UmlSandbox:
        """As ``MachineSubstrate.sandbox``."""
        return UmlSandbox(self.host, name, narrow=self._narrow)
