"""Sandboxes made by harnesses: SWE-ReX, inspect_ai, Harbor. This file has their options, without their SDKs."""

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


class InspectOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``-s inspect:environment=docker,image=NAME``."""

    environment: Literal["local", "docker"] = "local"
    image: str = DEFAULT_IMAGE  # of environment=docker
    shell: Literal["bash", "sh"] = "bash"


class SwerexOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``-s swerex:deployment=docker,image=NAME``."""

    deployment: Literal["local", "docker"] = "local"
    image: str = ""  # with swe-rex in it; of deployment=docker
    shell: Literal["bash", "sh"] = "bash"
