"""Sandboxes as EC2 instances. This file has their options."""

from __future__ import annotations

from typing import Final, Literal

from taxtui.substrates.aws import AwsOptions

DISK_GIB: Final = 16


class Ec2Options(AwsOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``-s ec2:subnet=subnet-1,instance_type=m7i.large``."""

    poll_s: float = 0.5
    ami: str = "/aws/service/debian/release/12/latest/amd64"  # an id, or a public parameter of Systems Manager
    instance_type: str = "m7i.large"
    disk_gib: int = DISK_GIB
    subnet: str = ""  # required
    security_group: str = ""  # else one is made per run, open to this machine only, and removed with it
    allow_from: str = ""  # the addresses that it is open to, as a CIDR; else this machine's own
    address: Literal["public", "private"] = "public"
    port: int = 22
    user: str = ""  # else one that is made for the purpose
    spot: bool = False  # an interruption is its own outcome
    login_timeout_s: float = 180.0  # from the instance's running to its first command

    @property
    def variant(self) -> str:
        """The options that distinguish one measurement from another."""
        spot, way = "spot" if self.spot else "", "private" if self.address == "private" else ""
        disk = "" if self.disk_gib == DISK_GIB else f"{self.disk_gib}GiB"
        return " ".join(filter(None, (self.instance_type, spot, way, disk)))

    @property
    def problem(self) -> tuple[str, str]:
        """The missing option and the command that finds it; empty if none is missing."""
        if not self.subnet:
            return "option subnet is missing", "aws ec2 describe-subnets lists them"
        return "", ""
