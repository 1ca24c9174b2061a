"""The emulated API server for tests of Kubernetes, a substrate that uses the server, and a ready sandbox of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from taxtui.sandboxes.protocol import Sandbox
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.sandboxes import ready
from tests.support.standins.api_faults import KUBERNETES, Measure, measuring
from tests.support.standins.kubernetes_standin import KubernetesStandin

Connect = Callable[..., KubernetesSubstrate]


@pytest.fixture
async def standin() -> AsyncIterator[KubernetesStandin]:
    async with KubernetesStandin() as server:
        yield server


@pytest.fixture
def measure(standin: KubernetesStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    return measuring(KUBERNETES, standin, tmp_path, monkeypatch)


@pytest.fixture
def connect(standin: KubernetesStandin) -> Connect:
    def made(**options: Any) -> KubernetesSubstrate:
        return KubernetesSubstrate(KubernetesOptions(kubeconfig=str(standin.kubeconfig), **options))

    return made


@pytest.fixture
async def substrate(connect: Connect) -> AsyncIterator[KubernetesSubstrate]:
    async with connect() as connected:
        yield connected


@pytest.fixture
async def box(substrate: KubernetesSubstrate) -> AsyncIterator[Sandbox]:
    sandbox = await ready(substrate)
    yield sandbox
    await sandbox.destroy()
