"""Linux containers by systemd-nspawn, entered by nsenter: namespaces and no daemon.

The root file system is shared; what a sandbox writes is in memory and ends with it. It sees no network, and what is
launched into it has no capabilities and can gain none.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from taxtui.substrates.machine.containers import MachineSubstrate
from taxtui.substrates.machine.nspawn.options import NspawnOptions
from taxtui.substrates.machine.nspawn.sandbox import NspawnSandbox


class NspawnSubstrate(MachineSubstrate):
    """Containers by systemd-nspawn."""

    name: ClassVar[str] = "nspawn"
    Options: ClassVar[type[msgspec.Struct]] = NspawnOptions
    program: ClassVar[str] = "systemd-nspawn"
    package: ClassVar[str] = "systemd-container"
    needs: ClassVar[tuple[str, ...]] = ("nsenter",)
    needs_inside: ClassVar[tuple[str, ...]] = ("sh", "setpriv", "env")

    def __init__(self, options: NspawnOptions | None = None) -> None:
        """Nothing is looked for yet."""
        super().__init__(options or NspawnOptions())

    def sandbox(self, name: str) -> NspawnSandbox:
        """As ``MachineSubstrate.sandbox``."""
        return NspawnSandbox(self.host, name)
