"""Sandboxes of Daytona. This file has their options."""

from __future__ import annotations

from typing import Literal

import msgspec


class DaytonaOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Account and sandboxes. The key comes only from DAYTONA_API_KEY."""

    api_url: str = ""  # else DAYTONA_API_URL, else Daytona's own
    target: str = ""  # the region: else DAYTONA_TARGET, else the organization's default
    snapshot: str = ""  # else the default snapshot; a snapshot brings resources
    image: str = ""  # built on demand instead of a snapshot, with the requested resources
    disk_gib: int = 3  # with image
    user: str = ""  # the operating system's user
    fixtures: str = ""  # /opt/taxtui for a snapshot of taxtui's own image
    shell: Literal["bash", "sh"] = "bash"

    @property
    def variant(self) -> str:
        """The options that distinguish one measurement from another; "" for the defaults."""
        parts = {
            "target": self.target,
            "from": "image" if self.image else "",
            "shell": self.shell if self.shell != "bash" else "",
        }
        return ",".join(f"{key}={value}" for key, value in parts.items() if value)
