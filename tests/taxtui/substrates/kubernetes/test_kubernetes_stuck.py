"""A pod that gets stuck, and a quota that is too small: what is said of it, and that a run does not burn itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from taxtui.errors import QuotaExceeded, Throttled
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.kubernetes import sandbox as kubernetes_sandbox
from taxtui.substrates.kubernetes import substrate as kubernetes_substrate
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.recorded import record
from tests.support.sandboxes import spec
from tests.support.standins.kubernetes_standin import KubernetesStandin
from tests.support.waiting import until

pytestmark = pytest.mark.processes

WHY = 'FailedCreatePodSandBox: no runtime for "<name>" is configured'


# -- stuck


async def test_the_last_warning_of_a_stuck_pod_is_said_early_and_in_the_end(
    standin: KubernetesStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_sandbox, "QUIET_S", 0.1)
    standin.pods.fate = "no_sandbox"
    options = KubernetesOptions(kubeconfig=str(standin.kubeconfig))
    got = await record(lambda: KubernetesSubstrate(options), tmp_path, monkeypatch, create_timeout_s=4.0)
    assert (got.end.outcome, got.end.error) == ("timeout", "ReadyTimeout")
    assert got.end.message.endswith(f"within 4 s of create; {WHY}")
    assert f"kubernetes: a sandbox is not ready yet: {WHY}" in got.notices
    assert standin.requests.count("events") >= 2
    await standin.leaves(0, 0)


async def test_without_the_right_to_read_events_nobody_asks_twice(
    standin: KubernetesStandin, substrate: KubernetesSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_sandbox, "QUIET_S", 0.02)
    standin.denied.add("list events")
    standin.pods.fate = "no_sandbox"
    assert (await substrate.check()).ok
    marks = Marks()
    made = await substrate.create(spec(), marks)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await made.wait_ready(marks)
    assert (marks.obstacle, standin.requests.count("events")) == ("", 1)
    await made.destroy()


# -- a tight quota


async def test_what_our_own_pods_use_up_is_waited_for_and_queued(
    standin: KubernetesStandin, substrate: KubernetesSubstrate
) -> None:
    standin.quota = 2
    marks = [Marks() for _ in range(5)]

    async def live(trial: int) -> None:
        made = await substrate.create(spec(), marks[trial])
        await made.wait_ready(marks[trial])
        await made.destroy()

    await asyncio.gather(*(live(trial) for trial in range(5)))
    assert standin.pods.made == 5
    queued = [its for its in marks if its.queued_ns]
    assert len(queued) == 3
    assert all(
        "exceeded quota" in text and "waits for the removal of" in text for its in queued for text in its.notices
    )
    await standin.leaves(0, 0)


async def test_a_quota_that_others_use_up_is_final(standin: KubernetesStandin, substrate: KubernetesSubstrate) -> None:
    standin.quota = 1
    made = await substrate.create(spec(), Marks())
    async with KubernetesSubstrate(KubernetesOptions(kubeconfig=str(standin.kubeconfig))) as stranger:
        with pytest.raises(QuotaExceeded, match="limited: pods=1"):
            await stranger.create(spec(), Marks())
    await made.destroy()


async def test_who_waits_for_room_is_not_forgotten(
    standin: KubernetesStandin, substrate: KubernetesSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_substrate, "HOLD_S", 0.1)
    standin.quota = 1
    made = await substrate.create(spec(), Marks())
    with pytest.raises(Throttled, match="exceeded quota"):
        await substrate.create(spec(), Marks())
    await made.destroy()
    again = await substrate.create(spec(), Marks())
    await again.destroy()
    await until(lambda: standin.left() == (0, 0), "nothing is left")


async def test_a_create_that_has_waited_for_room_goes_on_after_the_last_removal(
    standin: KubernetesStandin, substrate: KubernetesSubstrate
) -> None:
    standin.quota = 0
    substrate._alive.add("one")
    waiting = asyncio.ensure_future(substrate.create(spec(), marks := Marks()))
    await until(lambda: marks.notices, "the create waits for room")
    substrate._alive.clear()  # the quota's status lags behind the removal
    await asyncio.sleep(1.0)
    standin.quota = 1
    made = await waiting
    await made.destroy()
