"""Sandboxes of Daytona. This file has their options."""

from __future__ import annotations

from typing import Literal

import msgspec


class DaytonaOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which account, and what sandboxes are made of. The key is only read from DAYTONA_API_KEY."""

    api_url: str = ""  # else DAYTONA_API_URL, else Daytona's own
    target: str = ""  # the region: else DAYTONA_TARGET, else the organization's default
    snapshot: str = ""  # else the default one; a snapshot brings its own resources
    image: str = ""  # built on demand instead of a snapshot, with the resources that the run asks for
    disk_gib: int = 3  # with image
    user: str = ""  # the operating system's user
    fixtures: str = ""  # /opt/taxtui for a snapshot of taxtui's own image
    shell: Literal["bash", "sh"] = "bash"
    suspend: Literal["stop", "archive"] = "stop"  # archive: after the stop, to Daytona's object storage
    events: bool = True  # False: poll, as where the event socket can't be reached

    @property
    def variant(self) -> str:
        """The options that distinguish one measurement from another; "" for the defaults."""
        parts = {
            "target": self.target,
            "from": "image" if self.image else "",
            "suspend": self.suspend if self.suspend != "stop" else "",
            "shell": self.shell if self.shell != "bash" else "",
        }
        return ",".join(f"{key}={value}" for key, value in parts.items() if value)
