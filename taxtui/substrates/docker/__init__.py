"""Sandboxes as containers of a docker daemon. This file has their options."""

from __future__ import annotations

import msgspec

from taxtui.workloads.image import DEFAULT_IMAGE


class DockerOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``-s docker:runtime=runsc,image=mine:1``."""

    runtime: str = "runc"
    image: str = DEFAULT_IMAGE
    network: str = ""  # by default as the tier needs: none or bridge
    user: str = ""  # by default the image's
    host: str = ""  # by default DOCKER_HOST or the current docker context, else the local socket
