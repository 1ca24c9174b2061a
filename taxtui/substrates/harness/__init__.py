"""Sandboxes made by harnesses: SWE-ReX, inspect_ai, Harbor. This file has their options, without their SDKs."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from taxtui.workloads.image import DEFAULT_IMAGE

HARBOR_PRICE_SHEETS: Final = frozenset({"blaxel", "daytona", "e2b", "modal", "novita", "runloop", "vercel"})
"""Environments of Harbor's that a shipped price sheet of the same name has prices of."""
HARBOR_FREE: Final = frozenset({"apple-container", "docker", "kata", "podman", "singularity"})
"""Environments of Harbor's that run on this machine. All others may cost money."""


class HarborOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``-s harbor:environment=NAME,image=NAME``."""

    environment: str = "docker"  # a name in Harbor's registry, or module:Class
    image: str = ""  # with bash in it; taxtui's own where the environment is docker
    settings: str = ""  # a JSON file with keyword arguments of the environment
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
