"""Sandboxes as ECS tasks on Fargate. This file has their options."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from taxtui.substrates.aws import AwsOptions


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
