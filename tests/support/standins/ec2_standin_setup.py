"""What every test against the EC2 stand-in begins with."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws.ec2 import Ec2Options
from taxtui.substrates.aws.ec2.sandbox import Ec2Sandbox
from taxtui.substrates.aws.ec2.substrate import Ec2Substrate
from tests.support.standins.ecs_standin_setup import spec

if TYPE_CHECKING:
    from tests.support.standins.ec2_standin import Ec2Standin


def options(standin: Ec2Standin, **changed: Any) -> Ec2Options:
    """That are complete, with polling as fast as the stand-in is."""
    fields = {
        "endpoint_url": standin.url,
        "subnet": standin.subnet,
        "port": standin.port,
        "ami": "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64",
        "address": "private",
        "security_group": standin.group,
        "user": "root",
        "poll_s": 0.02,
    }
    return Ec2Options(**{**fields, **changed})


@contextlib.contextmanager
def standin(**public: Any) -> Iterator[Ec2Standin]:
    """A stand-in with some of its public fields set."""
    from tests.support.standins.ec2_standin import Ec2Standin  # moto takes two seconds, which only its tests shall wait

    with Ec2Standin() as running:
        for name, value in public.items():
            assert hasattr(running, name)
            setattr(running, name, value)
        yield running


@contextlib.asynccontextmanager
async def sandbox(running: Ec2Standin, **changed: Any) -> AsyncIterator[Ec2Sandbox]:
    """A ready sandbox that is destroyed in the end."""
    async with Ec2Substrate(options(running, **changed)) as substrate:
        made = await substrate.create(spec(), Marks())
        try:
            await made.wait_ready(Marks())
            yield made
        finally:
            await made.destroy()
