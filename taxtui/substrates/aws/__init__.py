"""Amazon Web Services: EC2 instances, ECS tasks, and their common options."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec


class AwsOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of every AWS substrate. Credentials come from the AWS configuration."""

    region: str = ""  # else AWS_REGION or the profile's
    profile: str = ""
    endpoint_url: str = ""  # an emulator; its rows are marked as emulated
    poll_s: float = 1.0  # between two lookups of states, for all sandboxes in one call


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


class EcsOptions(AwsOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``-s ecs:cluster=bench,subnets=subnet-1+subnet-2,task_role=taxtui-task``. Lists are joined with ``+``."""

    cluster: str = "default"
    image: str = "public.ecr.aws/docker/library/python:3.11-bookworm"  # brings bash, git and python3-venv
    task_role: str = ""  # name or ARN; allows ssmmessages to the session agent
    execution_role: str = ""  # only for private images
    spot: bool = False  # Fargate Spot; an interruption is an outcome of its own
    arch: Literal["X86_64", "ARM64"] = "X86_64"
    subnets: str = ""  # required
    security_groups: str = ""  # else the VPC's default; only outbound HTTPS is needed
    public_address: bool = True  # for the registry and ssmmessages, unless there is NAT or an endpoint
    sessions: Annotated[int, msgspec.Meta(ge=1)] = 2  # concurrent sessions of a container's agent
    agent_timeout_s: float = 60.0  # from the task's state RUNNING to the session agent's

    @property
    def variant(self) -> str:
        kind = "fargate_spot" if self.spot else "fargate"
        arch = "" if self.arch == "X86_64" else self.arch.lower()
        address = "" if self.public_address else "private"  # also in the bill
        return " ".join(filter(None, (kind, arch, address)))


def listed(joined: str) -> list[str]:
    """The values of an option, joined with ``+``."""
    return [value for value in joined.split("+") if value]
