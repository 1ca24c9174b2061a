"""Providers whose API can be made to fail alike: how each is measured against its stand-in, and where they differ."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from costmodel.recording.events import TrialEnded
from taxtui.sandboxes.protocol import Substrate
from taxtui.substrates.daytona import DaytonaOptions
from taxtui.substrates.daytona.substrate import DaytonaSubstrate
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.recorded import Recorded, record
from tests.support.standins.daytona_standin import DaytonaStandin
from tests.support.standins.kubernetes_standin import KubernetesStandin

Measure = Callable[..., Awaitable[Recorded]]
NO_OPS: Final = 2  # ready and ready_again


class Provider(NamedTuple):
    """One of them; what is patched are limits that a test does not want to wait for."""

    name: str
    standin: Callable[[], Any]
    substrate: Callable[..., Substrate]
    held: Callable[[Any], Any]  # the part of the stand-in that makes sandboxes, and keeps those that are stuck
    one: tuple[int, int]  # what a sandbox that could not be deleted leaves: itself, and its processes
    kill_s: tuple[str, float]
    doubt_s: tuple[str, float] | None
    remove_s: float
    quota: str
    stuck: str
    lists_before: int  # lists that a run asks for before it looks for what is left


KUBERNETES: Final = Provider(
    name="kubernetes",
    standin=KubernetesStandin,
    substrate=lambda standin: KubernetesSubstrate(
        KubernetesOptions(kubeconfig=str(standin.kubeconfig), unschedulable_s=0.2)
    ),
    held=lambda standin: standin.pods,
    one=(1, 1),
    kill_s=("taxtui.substrates.kubernetes.exec.KILL_S", 0.3),
    doubt_s=("taxtui.substrates.kubernetes.access.DOUBT_S", 0.1),
    remove_s=-4.0,  # with the grace period of 5 s: one second
    quota="limited: pods=0",
    stuck="look at the object's node and finalizers",
    lists_before=1,  # the watch's
)
DAYTONA: Final = Provider(
    name="daytona",
    standin=DaytonaStandin,
    substrate=lambda standin: DaytonaSubstrate(DaytonaOptions(api_url=standin.url)),
    held=lambda standin: standin,
    one=(1, 0),
    kill_s=("taxtui.sandboxes.kit.text_sandbox.KILL_S", 0.8),
    doubt_s=None,
    remove_s=1.2,
    quota="Total CPU limit exceeded",
    stuck="accepted but has not ended",
    lists_before=0,
)


def measuring(provider: Provider, standin: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Runs one recorded trial; whatever happens, no more than ``left`` may be left."""

    async def run(*commands: str, left: tuple[int, int] = (0, 0), **how: Any) -> Recorded:
        got = await record(lambda: provider.substrate(standin), folder, monkeypatch, *commands, **how)
        if provider is KUBERNETES:  # processes of what has been deleted may end behind the answer
            await standin.leaves(*left)
        assert standin.left() == left
        return got

    return run


def told(end: TrialEnded) -> tuple[str, str, str]:
    return end.outcome, end.phase, end.error
