"""A run on AWS that is killed at a moment not of its choosing, forked from a process that has imported this."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from taxtui.plan.spec import Command
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws import AwsOptions
from taxtui.substrates.aws.connection import open_clients
from tests.support.standins.aws_setup import CREDENTIALS, spec

if CREDENTIALS.items() <= os.environ.items():  # in that process, which so reads megabytes of JSON once for all victims
    open_clients(["ec2", "ecs", "ssm", "sts"], AwsOptions())


def run(kind: type[Any], options: Any, number: int) -> None:
    asyncio.run(_run(kind(options), number))


async def _run(connecting: Any, number: int) -> None:
    async with connecting as substrate:
        for round_ in range(1000):
            sandbox = await substrate.create(spec(f"taxtui-r1-{number}.{round_}"), Marks())
            await sandbox.wait_ready(Marks())
            session = await sandbox.open_session()
            await session.exec(Command(script="sleep 300 & setsid sleep 300 & true"))
            await sandbox.exec(Command(script="sleep 300 & setsid sleep 300 & true"))
            await sandbox.destroy()
