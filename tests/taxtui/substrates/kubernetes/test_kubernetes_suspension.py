"""Suspended sandboxes of a warm pool: refused where files would be lost, one line where a right is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

import pytest

from taxtui.errors import ExecFailed, SandboxLost, SubstrateUnavailable, UsageError
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.kubernetes.claimed import ClaimedSandbox
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.standins.kubernetes_pool_standin import POOL, PoolStandin

pytestmark = pytest.mark.processes

ACQUIRE = f"pool:{POOL}"


def suspending(standin: PoolStandin) -> KubernetesSubstrate:
    return KubernetesSubstrate(KubernetesOptions(kubeconfig=str(standin.kubeconfig), suspend=True))


async def ready(substrate: KubernetesSubstrate) -> ClaimedSandbox:
    labels = {LABEL_RUN: "r1", LABEL_DEADLINE: "1900000000"}
    spec = SandboxSpec(name="taxtui-r1-1", labels=labels, limits=Limits(), ttl_s=60.0, acquire=ACQUIRE)
    sandbox = cast(ClaimedSandbox, await substrate.create(spec, Marks()))
    await sandbox.wait_ready(Marks())
    return sandbox


@pytest.fixture
async def standin() -> AsyncIterator[PoolStandin]:
    async with PoolStandin(volume=True) as server:
        yield server


async def test_a_template_without_a_volume_claim_is_refused() -> None:
    async with PoolStandin() as standin, suspending(standin) as substrate:
        with pytest.raises(SubstrateUnavailable, match="has no volumeClaimTemplate for the working directory"):
            await substrate.check_acquire(ACQUIRE, Limits())


async def test_a_plain_pod_is_refused(standin: PoolStandin) -> None:
    async with suspending(standin) as substrate:
        with pytest.raises(UsageError, match="suspend=true needs a warm pool"):
            await substrate.check_acquire("create", Limits())


async def test_a_claim_that_ends_while_suspended_is_lost(standin: PoolStandin) -> None:
    async with suspending(standin) as substrate:
        sandbox = await ready(substrate)
        await sandbox.suspend(Marks())
        (entry,) = await substrate.find("r1")
        await substrate.reap(entry)
        with pytest.raises(SandboxLost, match=r"deleted with the claim|no longer exists"):
            await sandbox.resume(Marks())
    assert standin.left() == (0, 0)


async def test_a_missing_right_is_an_error_of_the_suspension(standin: PoolStandin) -> None:
    async with suspending(standin) as substrate:
        sandbox = await ready(substrate)
        standin.fail("sandboxes.patch", status=403, message="cannot patch resource sandboxes")
        with pytest.raises(ExecFailed, match=r"the sandbox cannot become Suspended: .*cannot patch resource"):
            await sandbox.suspend(Marks())
        await sandbox.destroy()
    assert standin.left() == (0, 0)
