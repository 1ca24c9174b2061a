"""Sandboxes as folders and processes of this machine. This file has their options."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec


class LocalOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``-s local:isolation=plain,fixtures=PATH``."""

    isolation: Literal["auto", "bwrap", "plain"] = "auto"
    fixtures: str = ""  # a folder with attrs.git and wheels/; by default the fixtures of `taxtui setup`

    def folder(self) -> Path | None:
        return Path(self.fixtures).expanduser().resolve() if self.fixtures else None

    def complaint(self) -> str:
        """The problem with the options on this machine, and the fix; "" without one. Looks at files."""
        if self.fixtures and not Path(self.fixtures).expanduser().is_dir():
            return f"fixtures={self.fixtures} is not a folder; taxtui setup makes one"
        return ""
