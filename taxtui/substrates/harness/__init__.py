"""Sandboxes made by harnesses: SWE-ReX, inspect_ai, Harbor. This file has their options, without their SDKs."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from taxtui.workloads.image import DEFAULT_IMAGE

HARBOR_PRICE_SHEETS: Final = frozenset({"blaxel", "daytona", "e2b", "modal", "novita", "runloop", "vercel"})
"""Harbor environments with a shipped price sheet of the same name."""
HARBOR_FREE: Final = frozenset({"apple-container", "docker", "kata", "podman", "singularity"})
"""Harbor environments on this machine. The rest may cost money."""


class HarborOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``-s harbor:environment=NAME,image=NAME``."""

    environment: str = "docker"  # a name in Harbor's registry, or module:Class
    image: str = ""  # with bash; by default taxtui's own for the environment docker
    settings: str = ""  # a JSON file with keyword arguments of the environment
    network: Literal["own", "none"] = "own"  # own: a network for each sandbox, as Harbor makes
    shell: Literal["bash", "sh"] = "bash"


class InspectOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``-s inspect:image=NAME``."""

    image: str = DEFAULT_IMAGE
    shell: Literal["bash", "sh"] = "bash"


class SwerexOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``-s swerex:image=NAME``."""

    image: str = ""  # with swe-rex
    shell: Literal["bash", "sh"] = "bash"
