"""The options of the uml substrate."""

from __future__ import annotations

from taxtui.substrates.machine.options import MachineOptions


class UmlOptions(MachineOptions, frozen=True, forbid_unknown_fields=True):
    """``-s uml:root=PATH``."""
