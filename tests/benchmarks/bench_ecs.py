"""What the data channel adds to the time that the session agent itself takes for a command, and exec to a plug-in's.

The agent is the stand-in, in a process of its own, for the first without the real one's 1 s and 1 ms of sleep, for the
second with them: ratios, not times. A plug-in's path is a session whose command is the command, from its request to the
service's word that it is over.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path

import aiohttp

from taxtui.plan.spec import Command
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws.ecs import EcsOptions
from taxtui.substrates.aws.ecs.substrate import EcsSubstrate
from tests.benchmarks.figures import tell
from tests.support.crowd import crowd
from tests.support.standins.ecs_peer_pty import Behaviour
from tests.support.standins.ecs_standin_setup import CREDENTIALS, sandbox, spec, standin
from tests.support.standins.standin_process import serving

ROUNDS = 300
EXECS = 15
WARM_UP = 20


async def main() -> None:
    os.environ.update(CREDENTIALS)
    async with serving("tests.support.standins.ecs_standin") as url:
        options = EcsOptions(endpoint_url=url, task_role="r", subnets="subnet-1", poll_s=0.02)
        async with EcsSubstrate(options) as substrate:
            made = await substrate.create(spec(), Marks())
            await made.wait_ready(Marks())
            session = await made.open_session()
            spans = []
            for _ in range(ROUNDS + WARM_UP):
                began = time.monotonic_ns()
                assert (await session.exec(Command(script="true"))).exit_code == 0
                spans.append((began, time.monotonic_ns()))
            async with aiohttp.ClientSession() as http, http.get(f"{url}/timeline") as answer:
                timeline = await answer.json()
            await session.close()
            ours, theirs = [], []
            for began, ended in spans[WARM_UP:]:
                arrived = next(at for at in timeline["arrived"] if began <= at <= ended)
                left = max(at for at in timeline["left"] if began <= at <= ended)
                ours.append((ended - began) / 1e6)
                theirs.append((left - arrived) / 1e6)
            mine, agents = statistics.median(ours), statistics.median(theirs)
            tell("ecs, data channel", mine, "ms", agents, "the agent itself")
            print(
                f"data channel, per command: p50 {mine:.2f} ms, the agent itself {agents:.2f} ms: {mine / agents:.2f}×"
            )
            began_s = time.monotonic()
            result = await made.exec(Command(script="head -c 5000000 /dev/zero"))
            rate = len(result.stdout) / 1e6 / (time.monotonic() - began_s)
            print(f"5 MB of output: {rate:.1f} MB/s (a real agent's own ceiling is below 1)")
            await made.destroy()
    await exec_beside_the_plugin()
    for concurrency in (1, 20, 50):
        async with serving("tests.support.standins.ecs_standin") as url:
            options = EcsOptions(endpoint_url=url, task_role="r", subnets="subnet-1")
            with tempfile.TemporaryDirectory() as folder:
                got = await crowd(lambda _, options=options: EcsSubstrate(options), Path(folder), concurrency)
        failed = f", {len(got.failures)} failed: {got.failures[0]}" if got.failures else ""
        print(
            f"burst of {concurrency}: worst loop lag p99 {got.worst_lag_p99_ms:.1f} ms, client CPU "
            f"{got.worst_cpu_permille / 10:.0f} %, {got.took_s:.1f} s{failed}"
        )


async def exec_beside_the_plugin() -> None:
    """In turns, one command each."""
    with standin() as agent:
        agent.behaviour = Behaviour()  # as the real agent's times were seen to be
        async with sandbox(agent) as made:
            ours, theirs = [], []
            for _ in range(EXECS):
                began = time.monotonic_ns()
                channel = await made._api.open_channel(made._arn, "/bin/sh -c true")
                await channel.ended(30.0)
                await channel.close()
                theirs.append((time.monotonic_ns() - began) / 1e6)
                began = time.monotonic_ns()
                assert (await made.exec(Command(script="true"))).exit_code == 0
                ours.append((time.monotonic_ns() - began) / 1e6)
    mine, plugin = statistics.median(ours), statistics.median(theirs)
    tell("ecs exec", mine, "ms", plugin, "the plug-in's path")
    print(f"exec: p50 {mine:.0f} ms, a plug-in's path {plugin:.0f} ms: {mine / plugin:.3f}×")


if __name__ == "__main__":
    asyncio.run(main())
