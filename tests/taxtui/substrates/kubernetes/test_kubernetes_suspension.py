"""Suspended sandboxes of a warm pool: refused where files would be lost, one line where a right is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

import pytest

from taxtui.errors import ExecFailed, SandboxLost, SubstrateUnavailable, UsageError
from taxtui.plan.spec import Limits
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.kubernetes.claim import ClaimedSandbox
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.cost_model.pooled import ACQUIRE, options, ready
from tests.support.standins.kubernetes_pool_standin import PoolStandin

pytestmark = pytest.mark.processes


def suspending(standin: PoolStandin) -> KubernetesSubstrate:
    return KubernetesSubstrate(options(standin, suspend=True))


@pytest.fixture
async def standin() -> AsyncIterator[PoolStandin]:
    async with PoolStandin(volume=True) as server:
        yield server


async def test_what_would_lose_files_is_refused(standin: PoolStandin) -> None:
    async with suspending(standin) as substrate:
        with pytest.raises(UsageError, match="suspend=true needs a warm pool"):
            await substrate.check_acquire("create", Limits())
        del standin.sandboxes.templates["taxtui"]["spec"]["volumeClaimTemplates"]
        with pytest.raises(SubstrateUnavailable, match="has no volumeClaimTemplate for the working directory"):
            await substrate.check_acquire(ACQUIRE, Limits())


async def test_a_claim_that_ends_while_suspended_is_lost(standin: PoolStandin) -> None:
    async with suspending(standin) as substrate:
        sandbox = cast(ClaimedSandbox, await ready(substrate))
        await sandbox.suspend(Marks())
        (entry,) = await substrate.find("r1")
        await substrate.reap(entry)
        with pytest.raises(SandboxLost, match=r"deleted with the claim|no longer exists"):
            await sandbox.resume(Marks())
    assert standin.left() == (0, 0)


async def test_a_missing_right_is_an_error_of_the_suspension(standin: PoolStandin) -> None:
    async with suspending(standin) as substrate:
        sandbox = cast(ClaimedSandbox, await ready(substrate))
        standin.fail("sandboxes.patch", status=403, message="cannot patch resource sandboxes")
        with pytest.raises(ExecFailed, match=r"the sandbox cannot become Suspended: .*cannot patch resource"):
            await sandbox.suspend(Marks())
        await sandbox.destroy()
    assert standin.left() == (0, 0)
