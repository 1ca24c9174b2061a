"""What every kind of container without a daemon can be told."""

from __future__ import annotations

import msgspec


class MachineOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``-s runsc:root=PATH,user=1000``."""

    root: str = ""  # a root file system, or a folder that `taxtui image unpack` made; by default the one that it makes
    user: str = ""  # UID or UID:GID; by default the image's, and nobody in a root file system of your own
