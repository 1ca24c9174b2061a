"""The options of the swerex substrate."""

from __future__ import annotations

from typing import Literal

import msgspec


class SwerexOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``-s swerex:deployment=docker,image=NAME``."""

    deployment: Literal["local", "docker"] = "local"
    image: str = ""  # with swe-rex in it; of deployment=docker
    shell: Literal["bash", "sh"] = "bash"
