"""The watch of a server that forgets its resource versions: the load that it makes, and what it still reports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from taxtui.sandboxes.kit import retry
from taxtui.substrates.kubernetes import watch as kubernetes_watch
from taxtui.substrates.kubernetes.api import PODS
from taxtui.substrates.kubernetes.failure import ApiRefused
from taxtui.substrates.kubernetes.pod import Metadata, Pod
from taxtui.substrates.kubernetes.watch import ObjectWatch

REAL_SLEEP = asyncio.sleep


class Clock:
    """Time that passes in ``sleep`` alone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        self.pauses_s: list[float] = []
        clock = SimpleNamespace(monotonic=lambda: self.now_s, monotonic_ns=lambda: int(self.now_s * 1e9))
        monkeypatch.setattr(kubernetes_watch, "time", clock)
        monkeypatch.setattr(retry._JITTER, "uniform", lambda low, high: high)
        monkeypatch.setattr(asyncio, "sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.pauses_s.append(seconds)
        self.now_s += seconds
        await REAL_SLEEP(0)


class Forgetful:
    """An API that has always forgotten the version that it just gave, ``times`` times."""

    def __init__(self, clock: Clock, times: int, lasts_s: float = 0.0, event: str = "") -> None:
        self.clock, self.times, self.lasts_s, self.event = clock, times, lasts_s, event
        self.lists = 0
        self.settled = asyncio.Event()

    async def list(self, *about: Any) -> tuple[list[Pod], str]:
        self.lists += 1
        return [], str(self.lists)

    async def watch(self, *about: Any) -> AsyncIterator[tuple[str, Pod]]:
        if self.lists > self.times:
            self.settled.set()
            await asyncio.Event().wait()
        self.clock.now_s += self.lasts_s
        if self.event:
            yield self.event, Pod(Metadata(name="p"))
        raise ApiRefused(410, "Expired", "too old resource version")


async def pauses(api: Any, clock: Clock) -> list[float]:
    watching = ObjectWatch(api, PODS, "n", "l")
    async with asyncio.timeout(30):
        await api.settled.wait()
    await watching.close()
    return clock.pauses_s


@pytest.mark.parametrize("event", ["", "BOOKMARK"])
async def test_a_server_that_answers_410_again_and_again_is_listed_after_a_pause(
    event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    waited = await pauses(Forgetful(clock, 8, event=event), clock)
    assert waited == ([0.1] * 8 if event else [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])
