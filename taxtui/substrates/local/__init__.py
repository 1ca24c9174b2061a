"""Sandboxes as folders and processes of this machine. This file has their options."""

from __future__ import annotations

from typing import Literal

import msgspec


class LocalOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``-s local:isolation=plain,fixtures=PATH``."""

    isolation: Literal["auto", "bwrap", "plain"] = "auto"
    fixtures: str = ""  # a folder with attrs.git and wheels/; by default the fixtures of `taxtui setup`
