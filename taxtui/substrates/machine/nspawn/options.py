"""The options of the nspawn substrate."""

from __future__ import annotations

from taxtui.substrates.machine.options import MachineOptions


class NspawnOptions(MachineOptions, frozen=True, forbid_unknown_fields=True):
    """``-s nspawn:root=PATH``."""
