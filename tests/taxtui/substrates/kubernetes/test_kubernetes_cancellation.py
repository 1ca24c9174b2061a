"""Cancelled at each await of create, ready, exec, session and destroy: no pod is left, and no process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.protocol import Marks, Sandbox
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.cancelling import cancellations, cancelled_at
from tests.support.standins.kubernetes_standin import KubernetesStandin

pytestmark = pytest.mark.processes


@pytest.fixture
async def standin() -> AsyncIterator[KubernetesStandin]:
    async with KubernetesStandin() as server:
        yield server


@pytest.fixture
async def substrate(standin: KubernetesStandin) -> AsyncIterator[KubernetesSubstrate]:
    async with KubernetesSubstrate(KubernetesOptions(kubeconfig=str(standin.kubeconfig))) as connected:
        yield connected


def spec(trial: int) -> SandboxSpec:
    return SandboxSpec(name=f"taxtui-r-{trial}", labels={LABEL_RUN: "r"}, limits=Limits(), ttl_s=60)


async def ready(substrate: KubernetesSubstrate, trial: int = 0) -> Sandbox:
    sandbox = await substrate.create(spec(trial), Marks())
    await sandbox.wait_ready(Marks())
    return sandbox


async def sweep(substrate: KubernetesSubstrate, standin: KubernetesStandin) -> None:
    """What the runner and its watchdog do: find and reap until nothing is found, a request on its way included."""
    for _ in range(4):
        for found in await substrate.find("r"):
            await substrate.reap(found)
        await asyncio.sleep(0.02)
    await standin.leaves(0, 0)


async def test_create(substrate: KubernetesSubstrate, standin: KubernetesStandin) -> None:
    async for _ in cancellations(lambda number: substrate.create(spec(number), Marks())):
        await sweep(substrate, standin)
    assert len(await substrate.find("r")) == 1, "the one that was not cancelled"
    await sweep(substrate, standin)


async def test_wait_ready(substrate: KubernetesSubstrate, standin: KubernetesStandin) -> None:
    standin.pods.start_s = 0.05
    number, going_on = 0, True
    while going_on:
        number += 1
        box = await substrate.create(spec(number), Marks())
        going_on = await cancelled_at(number, box.wait_ready(Marks()))
        await box.destroy()
        assert standin.left() == (0, 0)
    assert number > 1


@pytest.mark.parametrize("stdin", [b"", b"some"])
async def test_exec(substrate: KubernetesSubstrate, standin: KubernetesStandin, stdin: bytes) -> None:
    box = await ready(substrate)
    command = Command(script="sleep 0.2 & sleep 0.2", stdin=stdin)
    async for _ in cancellations(lambda number: box.exec(command)):
        await standin.leaves(1, 1)  # PID 1 alone
    await box.destroy()
    assert standin.left() == (0, 0)


async def test_session(substrate: KubernetesSubstrate, standin: KubernetesStandin) -> None:
    box = await ready(substrate)

    async def whole() -> None:
        session = await box.open_session()
        try:
            await session.exec(Command(script="echo a; sleep 0.2 & sleep 0.2"))
        finally:
            await session.close()

    async for _ in cancellations(lambda number: whole()):
        await standin.leaves(1, 1)
    await standin.leaves(1, 1)
    await box.destroy()
    assert standin.left() == (0, 0)


async def test_destroy(substrate: KubernetesSubstrate, standin: KubernetesStandin) -> None:
    number, going_on = 0, True
    while going_on:
        number += 1
        box = await ready(substrate, number)
        going_on = await cancelled_at(number, box.destroy())
        if going_on:
            await box.destroy()
        assert standin.left() == (0, 0)
    assert number > 1
