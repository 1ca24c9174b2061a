"""200 trials at once from one process, with a provider's stand-in in another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from taxtui.sandboxes.protocol import Substrate
from taxtui.substrates.daytona import DaytonaOptions
from taxtui.substrates.daytona.substrate import DaytonaSubstrate
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.crowd import crowd
from tests.support.standins.daytona_standin import KEY
from tests.support.standins.standin_process import serving

pytestmark = pytest.mark.processes

SUBSTRATES: dict[str, Callable[[str], Substrate]] = {
    "kubernetes": lambda at: KubernetesSubstrate(KubernetesOptions(kubeconfig=at)),
    "daytona": lambda at: DaytonaSubstrate(DaytonaOptions(api_url=at)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBSTRATES)
async def test_two_hundred_trials_at_once_all_succeed_and_leave_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYTONA_API_KEY", KEY)
    async with serving(f"tests.support.standins.{name}_standin") as at:
        got = await crowd(lambda ref: SUBSTRATES[name](at), tmp_path, 200, actions=2)
        assert (got.trials, got.failures) == (200 + 1, [])  # and one warm-up
        async with SUBSTRATES[name](at) as substrate:
            assert await substrate.find() == []
