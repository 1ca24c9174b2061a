"""The emulated API server for tests of Kubernetes, and a substrate that uses the server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.standins.kubernetes_standin import KubernetesStandin


@pytest.fixture
async def standin() -> AsyncIterator[KubernetesStandin]:
    async with KubernetesStandin() as server:
        yield server


@pytest.fixture
async def substrate(standin: KubernetesStandin) -> AsyncIterator[KubernetesSubstrate]:
    async with KubernetesSubstrate(KubernetesOptions(kubeconfig=str(standin.kubeconfig))) as connected:
        yield connected
