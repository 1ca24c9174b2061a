"""Cancelled at each await of create, ready, exec, session and destroy: no pod is left, and no process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from taxtui.plan.spec import LABEL_RUN, Command, Limits, SandboxSpec
from taxtui.sandboxes.protocol import Marks, Sandbox
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.cancelling import cancel_at
from tests.support.kubernetes_standin import KubernetesStandin

WALK = 60
"""More suspensions than any of these has."""


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
    assert standin.left() == (0, 0)


async def test_create(substrate: KubernetesSubstrate, standin: KubernetesStandin) -> None:
    cancelled = 0
    for at in range(WALK):
        box = await cancel_at(substrate.create(spec(at), Marks()), at)
        if box is not None:
            await box.destroy()
            break
        cancelled += 1
        await sweep(substrate, standin)
    assert 0 < cancelled < WALK - 1
    assert standin.left() == (0, 0)


async def test_wait_ready(substrate: KubernetesSubstrate, standin: KubernetesStandin) -> None:
    standin.pods.start_s = 0.05
    cancelled = 0
    for at in range(WALK):
        box = await substrate.create(spec(at), Marks())

        async def finished(box: Sandbox = box) -> bool:
            await box.wait_ready(Marks())
            return True

        done = await cancel_at(finished(), at)
        await box.destroy()
        assert standin.left() == (0, 0)
        if done:
            break
        cancelled += 1
    assert 0 < cancelled < WALK - 1


@pytest.mark.parametrize("stdin", [b"", b"some"])
async def test_exec(substrate: KubernetesSubstrate, standin: KubernetesStandin, stdin: bytes) -> None:
    box = await ready(substrate)
    cancelled = 0
    for at in range(WALK):
        got = await cancel_at(box.exec(Command(script="sleep 0.2 & sleep 0.2", stdin=stdin)), at)
        if got is not None:
            break
        cancelled += 1
        await standin.leaves(1, 1)  # PID 1 alone
    assert 0 < cancelled < WALK - 1
    await box.destroy()
    assert standin.left() == (0, 0)


async def test_session(substrate: KubernetesSubstrate, standin: KubernetesStandin) -> None:
    box = await ready(substrate)

    async def whole() -> bool:
        session = await box.open_session()
        try:
            await session.exec(Command(script="echo a; sleep 0.2 & sleep 0.2"))
        finally:
            await session.close()
        return True

    cancelled = 0
    for at in range(WALK):
        done = await cancel_at(whole(), at)
        await standin.leaves(1, 1)
        if done:
            break
        cancelled += 1
    assert 0 < cancelled < WALK - 1
    await box.destroy()
    assert standin.left() == (0, 0)


async def test_destroy(substrate: KubernetesSubstrate, standin: KubernetesStandin) -> None:
    async def destroyed(work: Coroutine[Any, Any, None]) -> bool:
        await work
        return True

    cancelled = 0
    for at in range(WALK):
        box = await ready(substrate, at)
        if await cancel_at(destroyed(box.destroy()), at):
            break
        cancelled += 1
        await box.destroy()
        assert standin.left() == (0, 0)
    assert 0 < cancelled < WALK - 1
    assert standin.left() == (0, 0)
