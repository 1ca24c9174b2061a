"""The options of the runsc substrate."""

from __future__ import annotations

from typing import Literal

from taxtui.substrates.machine.options import MachineOptions


class RunscOptions(MachineOptions, frozen=True, forbid_unknown_fields=True):
    """``-s runsc:platform=kvm``."""

    platform: Literal["ptrace", "kvm", "systrap"] = "ptrace"  # how gVisor sees system calls; kvm needs /dev/kvm
