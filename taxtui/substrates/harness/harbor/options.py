"""The options of the harbor substrate."""

from __future__ import annotations

from typing import Literal

import msgspec

from taxtui.workloads.image import DEFAULT_IMAGE


class HarborOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``-s harbor:image=NAME``."""

    environment: Literal["docker"] = "docker"
    image: str = DEFAULT_IMAGE  # with bash in it, which Harbor gives every command to
    network: Literal["own", "none"] = "own"  # own: as Harbor does, one for each sandbox
    shell: Literal["bash", "sh"] = "bash"
