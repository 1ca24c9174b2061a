"""What every test against the EC2 or the ECS stand-in begins with."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN, LABEL_TRIAL
from taxtui.substrates.aws import Ec2Options, EcsOptions
from taxtui.substrates.aws.ec2.substrate import Ec2Substrate
from taxtui.substrates.aws.ecs.substrate import EcsSubstrate
from tests.support import sandboxes
from tests.support.standins.ecs_standin import EcsStandin

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


def spec(name: str = "taxtui-r1-1", **changed: Any) -> SandboxSpec:
    labels = {LABEL_RUN: "r1", LABEL_TRIAL: name.rpartition("-")[2], LABEL_DEADLINE: "2000000000"}
    return sandboxes.spec(name=name, labels=labels, **changed)


def substrate(running: Any, **changed: Any) -> Any:
    """The substrate of a stand-in with complete options, and with polling as fast as the stand-in is."""
    fields: dict[str, Any] = {"endpoint_url": running.url, "poll_s": 0.02}
    if isinstance(running, EcsStandin):
        fields |= {"task_role": "bench-task", "subnets": "subnet-1"}
        return EcsSubstrate(EcsOptions(**{**fields, **changed}))
    fields |= {
        "subnet": running.subnet,
        "port": running.port,
        "ami": "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64",
        "address": "private",
        "security_group": running.group,
        "user": "root",
    }
    return Ec2Substrate(Ec2Options(**{**fields, **changed}))


@contextlib.contextmanager
def standin(kind: str, **public: Any) -> Iterator[Any]:
    """The stand-in ``ec2`` or ``ecs`` with some of its public fields set."""
    if kind == "ecs":
        made: Any = EcsStandin()
    else:
        from tests.support.standins.ec2_standin import Ec2Standin  # moto takes two seconds

        made = Ec2Standin()
    with made as running:
        for name, value in public.items():
            assert hasattr(running, name)
            setattr(running, name, value)
        yield running


def sandbox(running: Any, **changed: Any) -> AbstractAsyncContextManager[Any]:
    """A ready sandbox that is destroyed in the end."""
    return sandboxes.sandbox_of(substrate(running, **changed), name="taxtui-r1-1", labels=spec().labels)
