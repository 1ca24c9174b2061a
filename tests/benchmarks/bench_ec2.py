"""What the EC2 adapter adds to a bare asyncssh loop over one connection, both against one sshd on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import time
from collections.abc import Awaitable, Callable

from taxtui.plan.spec import Command
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws.ec2 import Ec2Options
from taxtui.substrates.aws.ec2.substrate import Ec2Substrate
from tests.benchmarks.figures import tell
from tests.support.standins.ecs_standin_setup import CREDENTIALS, spec
from tests.support.standins.standin_process import serving

ROUNDS = 300
WARM_UP = 20


async def p50_ms(*calls: Callable[[], Awaitable[object]]) -> list[float]:
    """All in turns, so that drift hits them alike."""
    took: list[list[float]] = [[] for _ in calls]
    for round_ in range(ROUNDS + WARM_UP):
        for call, durations in zip(calls, took, strict=True):
            began = time.perf_counter()
            await call()
            if round_ >= WARM_UP:
                durations.append((time.perf_counter() - began) * 1e3)
    return [statistics.median(durations) for durations in took]


async def main() -> None:
    os.environ.update(CREDENTIALS)
    async with serving("tests.support.standins.ec2_standin") as line:
        at = json.loads(line)
        options = Ec2Options(
            endpoint_url=at["url"],
            subnet=at["subnet"],
            port=at["port"],
            ami="/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64",
            address="private",
            security_group=at["group"],
            user="root",
            poll_s=0.02,
        )
        async with Ec2Substrate(options) as substrate:
            made = await substrate.create(spec(), Marks())
            await made.wait_ready(Marks())
            connection = made.connection
            assert connection is not None
            session = await made.open_session()
            async with connection.create_process("bash --noprofile --norc", encoding=None) as bare:

                async def bare_shell() -> None:
                    bare.stdin.write(b"( true ) </dev/null; echo $?\n")
                    assert await bare.stdout.readline() == b"0\n"

                channel, ours, shell, persistent = await p50_ms(
                    lambda: connection.run("bash -c true", encoding=None),
                    lambda: made.exec(Command(script="true")),
                    bare_shell,
                    lambda: session.exec(Command(script="true")),
                )
                bare.stdin.write_eof()
            for name, bare_ms, ours_ms in (("a channel each", channel, ours), ("one shell", shell, persistent)):
                tell(f"ec2, {name}", ours_ms, "ms", bare_ms, "asyncssh")
                print(f"{name:14}  asyncssh p50 {bare_ms:.2f} ms   adapter {ours_ms:.2f} ms   {ours_ms / bare_ms:.2f}×")
            await session.close()
            await made.destroy()


if __name__ == "__main__":
    asyncio.run(main())
