"""gVisor without a daemon: what docker with the same runtime adds to it is the daemon's.

The root file system is shared; what a sandbox writes is in memory and ends with it.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from taxtui.substrates.machine.containers import MachineSubstrate
from taxtui.substrates.machine.runsc.options import RunscOptions
from taxtui.substrates.machine.runsc.sandbox import RunscSandbox


class RunscSubstrate(MachineSubstrate):
    """gVisor sandboxes."""

    name: ClassVar[str] = "runsc"
    Options: ClassVar[type[msgspec.Struct]] = RunscOptions
    program: ClassVar[str] = "runsc"
    package: ClassVar[str] = "runsc"

    def __init__(self, options: RunscOptions | None = None) -> None:
        """Nothing is looked for yet."""
        options = options or RunscOptions()
        super().__init__(options)
        self.variant = options.platform

    def sandbox(self, name: str) -> RunscSandbox:
        """As ``MachineSubstrate.sandbox``."""
        return RunscSandbox(self.host, name, self.variant)
