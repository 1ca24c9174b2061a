"""The options of the inspect substrate."""

from __future__ import annotations

from typing import Literal

import msgspec

from taxtui.workloads.image import DEFAULT_IMAGE


class InspectOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``-s inspect:environment=docker,image=NAME``."""

    environment: Literal["local", "docker"] = "local"
    image: str = DEFAULT_IMAGE  # of environment=docker
    shell: Literal["bash", "sh"] = "bash"
