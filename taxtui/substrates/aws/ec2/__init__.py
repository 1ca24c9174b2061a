"""Sandboxes as EC2 instances. This file has their options."""

from __future__ import annotations

from typing import Final, Literal

from taxtui.substrates.aws import AwsOptions

DISK_GIB: Final = 16


class Ec2Options(AwsOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``-s ec2:subnet=subnet-1,security_group=sg-1,instance_type=m7i.large``."""

    poll_s: float = 0.5
    ami: str = "/aws/service/debian/release/12/latest/amd64"  # id, or public parameter of Systems Manager
    instance_type: str = "m7i.large"
    disk_gib: int = DISK_GIB
    subnet: str = ""  # required
    security_group: str = ""  # required; admits this machine on ``port``
    address: Literal["public", "private"] = "public"
    port: int = 22
    user: str = ""  # else a new user
    spot: bool = False  # an interruption is an outcome of its own
    login_timeout_s: float = 180.0  # from the state running to the first command

    @property
    def variant(self) -> str:
        """The options that distinguish one measurement from another."""
        spot, address = "spot" if self.spot else "", "private" if self.address == "private" else ""
        disk = "" if self.disk_gib == DISK_GIB else f"{self.disk_gib}GiB"
        return " ".join(filter(None, (self.instance_type, spot, address, disk)))
