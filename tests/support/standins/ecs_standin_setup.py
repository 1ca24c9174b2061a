"""What every test against the ECS stand-in begins with."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN, LABEL_TRIAL
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws.ecs import EcsOptions
from taxtui.substrates.aws.ecs.sandbox import EcsSandbox
from taxtui.substrates.aws.ecs.substrate import EcsSubstrate
from tests.support.standins.ecs_standin import EcsStandin

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


def options(standin: EcsStandin, **changed: Any) -> EcsOptions:
    """That are complete, with polling as fast as the stand-in is."""
    fields = {"endpoint_url": standin.url, "task_role": "bench-task", "subnets": "subnet-1", "poll_s": 0.02}
    return EcsOptions(**{**fields, **changed})


def spec(name: str = "taxtui-r1-1", *, ttl_s: float = 600.0, **changed: Any) -> SandboxSpec:
    labels = {LABEL_RUN: "r1", LABEL_TRIAL: name.rpartition("-")[2], LABEL_DEADLINE: "2000000000"}
    return SandboxSpec(**{"name": name, "labels": labels, "limits": Limits(), "ttl_s": ttl_s, **changed})


@contextlib.contextmanager
def standin(**public: Any) -> Iterator[EcsStandin]:
    """A stand-in with some of its public fields set."""
    with EcsStandin() as running:
        for name, value in public.items():
            assert hasattr(running, name)
            setattr(running, name, value)
        yield running


@contextlib.asynccontextmanager
async def sandbox(running: EcsStandin, **changed: Any) -> AsyncIterator[EcsSandbox]:
    """A ready sandbox that is destroyed in the end."""
    async with EcsSubstrate(options(running, **changed)) as substrate:
        made = await substrate.create(spec(), Marks())
        try:
            await made.wait_ready(Marks())
            yield made
        finally:
            await made.destroy()
