"""The shipped suite against the stand-in, in both modes: Kubernetes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from taxtui.sandboxes.conformance import Check, NotApplicable
from taxtui.sandboxes.conformance.bench import Factory
from taxtui.sandboxes.protocol import Substrate
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.kubernetes_pool_standin import POOL, PoolStandin
from tests.support.kubernetes_standin import KubernetesStandin
from tests.support.lent import OWNING, SHARING, lent

THROUGH_A_POOL = f"pool:{POOL}"


def _kubernetes(standin: KubernetesStandin) -> Factory:
    return lambda: KubernetesSubstrate(KubernetesOptions(kubeconfig=str(standin.kubeconfig)))


async def _run(check: Check, factory: Factory, acquire: str = "create") -> None:
    try:
        await check(factory, short_ttl_s=2.0, acquire=acquire)
    except NotApplicable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("check", OWNING, ids=str)
async def test_conformance(check: Check) -> None:
    async with KubernetesStandin() as standin:
        await _run(check, _kubernetes(standin))
        assert standin.left() == (0, 0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pod() -> AsyncIterator[Substrate]:
    async with KubernetesStandin() as standin:
        async with lent(_kubernetes(standin)) as one:
            yield one
        assert standin.left() == (0, 0)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", SHARING, ids=str)
async def test_conformance_of_commands(check: Check, pod: Substrate) -> None:
    await _run(check, lambda: pod)


@pytest.mark.parametrize("check", OWNING, ids=str)
async def test_conformance_through_a_pool(check: Check) -> None:
    async with PoolStandin() as standin:
        await _run(check, _kubernetes(standin), THROUGH_A_POOL)
        assert standin.left() == (0, 0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def claimed() -> AsyncIterator[Substrate]:
    async with PoolStandin() as standin:
        async with lent(_kubernetes(standin), THROUGH_A_POOL) as one:
            yield one
        assert standin.left() == (0, 0)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", SHARING, ids=str)
async def test_conformance_of_commands_through_a_pool(check: Check, claimed: Substrate) -> None:
    await _run(check, lambda: claimed)
