"""The shipped suite against the stand-in, in both modes: Kubernetes."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest

from taxtui.sandboxes.conformance import Check
from taxtui.sandboxes.conformance.bench import Factory
from taxtui.sandboxes.protocol import Substrate
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.lent import OWNING, SHARING, lending, lent, passes
from tests.support.standins.kubernetes_pool_standin import POOL, PoolStandin
from tests.support.standins.kubernetes_standin import KubernetesStandin

pytestmark = pytest.mark.processes

THROUGH_A_POOL = f"pool:{POOL}"


def _kubernetes(standin: KubernetesStandin) -> Factory:
    return lambda: KubernetesSubstrate(KubernetesOptions(kubeconfig=str(standin.kubeconfig)))


async def _passes_alone(check: Check, kind: type[KubernetesStandin], acquire: str = "create") -> None:
    async with kind() as standin:
        await passes(check, _kubernetes(standin), short_ttl_s=2.0, acquire=acquire)
        assert standin.left() == (0, 0)


@contextlib.asynccontextmanager
async def _lent(kind: type[KubernetesStandin], acquire: str = "create") -> AsyncIterator[Substrate]:
    async with kind() as standin:
        async with lent(_kubernetes(standin), acquire) as one:
            yield one
        assert standin.left() == (0, 0)


pod = lending(lambda: _lent(KubernetesStandin))
claimed = lending(lambda: _lent(PoolStandin, THROUGH_A_POOL))


@pytest.mark.parametrize("check", OWNING, ids=str)
async def test_conformance(check: Check) -> None:
    await _passes_alone(check, KubernetesStandin)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", SHARING, ids=str)
async def test_conformance_of_commands(check: Check, pod: Substrate) -> None:
    await passes(check, lambda: pod, short_ttl_s=2.0)


@pytest.mark.parametrize("check", OWNING, ids=str)
async def test_conformance_through_a_pool(check: Check) -> None:
    await _passes_alone(check, PoolStandin, THROUGH_A_POOL)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", SHARING, ids=str)
async def test_conformance_of_commands_through_a_pool(check: Check, claimed: Substrate) -> None:
    await passes(check, lambda: claimed, short_ttl_s=2.0)


@pytest.mark.parametrize("check", [check for check in OWNING if "suspend" in check.name], ids=str)
async def test_conformance_of_suspended_sandboxes(check: Check) -> None:
    async with PoolStandin(volume=True) as standin:
        options = KubernetesOptions(kubeconfig=str(standin.kubeconfig), suspend=True)
        await passes(check, lambda: KubernetesSubstrate(options), acquire=THROUGH_A_POOL)
        assert standin.left() == (0, 0)
