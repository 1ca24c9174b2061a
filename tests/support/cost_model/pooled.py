"""Trials whose sandboxes are claimed from a warm pool of the stand-in."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN, LABEL_TRIAL
from taxtui.sandboxes.protocol import Marks, Sandbox
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.recorded import Recorded, record
from tests.support.standins.kubernetes_pool_standin import POOL, PoolStandin
from tests.support.waiting import until

ACQUIRE = f"pool:{POOL}"


def spec(trial: int = 1, run: str = "r1", ttl_s: float = 60.0) -> SandboxSpec:
    labels = {LABEL_RUN: run, LABEL_TRIAL: str(trial), LABEL_DEADLINE: "1900000000"}
    return SandboxSpec(name=f"taxtui-{run}-{trial}", labels=labels, limits=Limits(), ttl_s=ttl_s, acquire=ACQUIRE)


def options(standin: PoolStandin, **changes: Any) -> KubernetesOptions:
    return KubernetesOptions(kubeconfig=str(standin.kubeconfig), **changes)


@pytest.fixture
async def standin() -> AsyncIterator[PoolStandin]:
    async with PoolStandin() as server:
        yield server


@pytest.fixture
async def substrate(standin: PoolStandin) -> AsyncIterator[KubernetesSubstrate]:
    async with KubernetesSubstrate(options(standin, unschedulable_s=0.2)) as connected:
        yield connected


async def filled(standin: PoolStandin) -> None:
    await until(lambda: standin.sandboxes.ready(POOL) == 3, "the pool is filled")


async def emptied(standin: PoolStandin) -> None:
    """A pool that keeps nothing."""
    standin.sandboxes.pools[POOL]["spec"]["replicas"] = 0
    for name in [name for name, each in standin.sandboxes.sandboxes.items() if each["owner"][0] == "pool"]:
        standin.sandboxes.sandboxes[name]["ends"] = True
    await until(lambda: not standin.sandboxes.sandboxes, "the pool is empty")


async def ready(substrate: KubernetesSubstrate, trial: int = 1, marks: Marks | None = None) -> Sandbox:
    marks = marks or Marks()
    sandbox = await substrate.create(spec(trial), marks)
    await sandbox.wait_ready(marks)
    return sandbox


async def measured(
    standin: PoolStandin, folder: Path, monkeypatch: pytest.MonkeyPatch, *commands: str, **how: Any
) -> Recorded:
    """One recorded trial, after which nothing of ours is left."""
    got = await record(
        lambda: KubernetesSubstrate(options(standin, unschedulable_s=0.2)),
        folder,
        monkeypatch,
        *commands,
        **{"acquire": ACQUIRE, **how},
    )
    assert standin.left() == (0, 0)
    return got


def pod_of(standin: PoolStandin, claim: str) -> str:
    body = standin.sandboxes.claims.objects[standin.namespace, claim]
    return str(body["status"]["sandbox"]["name"])
