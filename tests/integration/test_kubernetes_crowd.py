"""200 trials at once from one process."""

from __future__ import annotations

from pathlib import Path

import pytest

from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.crowd import crowd
from tests.support.standin_process import serving


@pytest.mark.slow
async def test_two_hundred_trials_at_once_all_succeed_and_leave_nothing(tmp_path: Path) -> None:
    async with serving("tests.support.kubernetes_standin") as kubeconfig:
        options = KubernetesOptions(kubeconfig=kubeconfig)
        got = await crowd(lambda ref: KubernetesSubstrate(options), tmp_path, 200, actions=2)
        assert (got.trials, got.failures) == (200 + 1, [])  # and one warm-up
        async with KubernetesSubstrate(options) as substrate:
            assert await substrate.find() == []
