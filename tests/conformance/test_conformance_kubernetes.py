"""The shipped suite against the stand-in, in both modes: Kubernetes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from taxtui.sandboxes.conformance import Check, NotApplicable, checks
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.kubernetes_pool_standin import POOL, PoolStandin
from tests.support.kubernetes_standin import KubernetesStandin


@pytest.fixture
async def standin() -> AsyncIterator[KubernetesStandin]:
    async with KubernetesStandin() as server:
        yield server


@pytest.mark.parametrize("check", checks(), ids=str)
async def test_conformance(check: Check, standin: KubernetesStandin) -> None:
    options = KubernetesOptions(kubeconfig=str(standin.kubeconfig))
    try:
        await check(lambda: KubernetesSubstrate(options), short_ttl_s=2.0)
    except NotApplicable as reason:
        pytest.skip(str(reason))
    assert standin.left() == (0, 0)


@pytest.fixture
async def pools() -> AsyncIterator[PoolStandin]:
    async with PoolStandin() as server:
        yield server


@pytest.mark.parametrize("check", checks(), ids=str)
async def test_conformance_through_a_pool(check: Check, pools: PoolStandin) -> None:
    options = KubernetesOptions(kubeconfig=str(pools.kubeconfig))
    try:
        await check(lambda: KubernetesSubstrate(options), short_ttl_s=2.0, acquire=f"pool:{POOL}")
    except NotApplicable as reason:
        pytest.skip(str(reason))
    assert pools.left() == (0, 0)
