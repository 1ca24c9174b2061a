"""What a harness adds to the substrate below it, as ratios of one run.

python -m tests.benchmarks.bench_harness [ACTIONS]

call     the harness's own command path, `bash -c true`      beside `true` by the exec path of the raw substrate
action   the same with the shell program that keeps bytes, streams and exit codes: what a recording holds
start    from create to ready                                 beside the same of the raw substrate
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Mapping
from datetime import date
from functools import partial

from taxtui.errors import SubstrateUnavailable
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes import registry
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.protocol import Marks, Sandbox, Substrate
from taxtui.substrates.harness.harnessed import HarnessedSandbox
from tests.benchmarks.bench_dispatch import PLAIN, Step, p50s_ms
from tests.benchmarks.figures import tell
from tests.support.harness_images import swerex_image

STARTS = 7


async def started_ms(substrate: Substrate, number: int) -> tuple[Sandbox, float]:
    """A sandbox that has carried out a command, and how long that took from nothing."""
    run = f"bench{os.getpid()}"
    name = f"taxtui-{run}-{number}"
    spec = SandboxSpec(name=name, labels={LABEL_RUN: run}, limits=Limits(), ttl_s=900)
    began = time.perf_counter_ns()
    sandbox = await substrate.create(spec, Marks())
    await sandbox.wait_ready(Marks())
    await sandbox.exec(Command(script="true"))
    return sandbox, (time.perf_counter_ns() - began) / 1e6


async def call(sandbox: HarnessedSandbox) -> None:
    """The harness's call alone, with what holds a command to its limits, which the raw substrate has, too."""
    around = sandbox.around
    await sandbox.run(f"{around.prologue}exec bash -c true", around.env if around.folder else {})


async def beside(raw: Substrate, others: Mapping[str, Substrate], actions: int) -> None:
    """Print a line for each of ``others``."""
    starts: dict[str, list[float]] = {}
    standing: dict[str, Sandbox] = {}
    try:
        for number in range(STARTS):
            for at, (what, substrate) in enumerate({"raw": raw, **others}.items()):
                if what in standing:
                    await standing.pop(what).destroy()
                standing[what], took_ms = await started_ms(substrate, number * 100 + at)
                starts.setdefault(what, []).append(took_ms)
        steps: list[Step] = [partial(standing["raw"].exec, PLAIN)]
        for what in others:
            sandbox = standing[what]
            assert isinstance(sandbox, HarnessedSandbox)
            steps += [partial(call, sandbox), partial(sandbox.exec, PLAIN)]
        floor, *taken = await p50s_ms(actions, *steps)
    finally:
        for sandbox in standing.values():
            await sandbox.destroy()
    for what, alone, action in zip(others, taken[::2], taken[1::2], strict=True):
        began, raw_began = statistics.median(starts[what]), statistics.median(starts["raw"])
        tell(f"{what}, its call", alone, "ms", floor, "the raw substrate")
        tell(f"{what}, an action", action, "ms", floor, "the raw substrate")
        tell(f"{what}, a start", began, "ms", raw_began, "the raw substrate")
        start = began / raw_began
        print(f"{what:20} call {alone / floor:5.2f} ×   action {action / floor:5.2f} ×   start {start:5.2f} ×")


async def pair(raw: tuple[str, dict[str, str]], *others: tuple[str, dict[str, str]], actions: int) -> None:
    """Those of ``others`` that can be used here beside ``raw``; who cannot is named."""
    made = {}
    for name, options in others:
        label = f"{name} {next(iter(options.values()))}"
        try:
            kind = registry.load(name)
            substrate: Substrate = kind(kind.Options(**options))  # type: ignore[call-arg]
            await substrate.__aenter__()
            made[label] = substrate
        except SubstrateUnavailable as error:
            print(f"{label:20} not measured: {error}")
    kind = registry.load(raw[0])
    print(f"beside {raw[0]}:")
    try:
        async with kind(kind.Options(**raw[1])) as entered:  # type: ignore[call-arg]
            await beside(entered, made, actions)
    except SubstrateUnavailable as error:
        print(f"not measured: {error}")
    finally:
        for substrate in made.values():
            await substrate.__aexit__(None, None, None)


async def main(actions: int) -> None:
    """Print the table and under which load it was made."""
    print(f"{date.today()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f} at the beginning")
    processes = [("swerex", {"deployment": "local"}), ("inspect", {"environment": "local"})]
    await pair(("local", {"isolation": "plain"}), *processes, actions=actions)
    image = swerex_image()
    if image.startswith(" "):
        print(f"docker: not measured:{image}")
        return
    # All from one image, whoever needs what is in it.
    containers = [
        ("swerex", {"deployment": "docker", "image": image}),
        ("inspect", {"environment": "docker", "image": image}),
        ("harbor", {"environment": "docker", "image": image}),
    ]
    await pair(("docker", {"image": image}), *containers, actions=max(20, actions // 5))
    print(f"load {os.getloadavg()[0]:.0f} at the end")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if sys.argv[1:] else 200))
