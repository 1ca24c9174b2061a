"""A run on EC2 that is killed at a moment not of its choosing; imported by a process that is forked for it."""

from __future__ import annotations

import asyncio
import os

from taxtui.plan.spec import Command
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws.ec2.options import Ec2Options
from taxtui.substrates.aws.ec2.substrate import Ec2Substrate
from tests.support.ecs_standin_setup import CREDENTIALS, spec


def run(options: Ec2Options, number: int) -> None:
    """Make sandboxes and use them, for ever."""
    os.environ.update(CREDENTIALS)
    asyncio.run(_run(options, number))


async def _run(options: Ec2Options, number: int) -> None:
    async with Ec2Substrate(options) as substrate:
        for round_ in range(1000):
            sandbox = await substrate.create(spec(f"taxtui-r1-{number}.{round_}"), Marks())
            await sandbox.wait_ready(Marks())
            await sandbox.exec(Command(script="sleep 300 & setsid sleep 300 & true"))
            await sandbox.destroy()
