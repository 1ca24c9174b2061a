"""A pod that gets stuck, and a quota that is too small: what is said of it, and that a run does not burn itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from costmodel.recording.events import Notice
from taxtui.errors import QuotaExceeded, Throttled
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN, LABEL_TRIAL
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.kubernetes import access as kubernetes_access
from taxtui.substrates.kubernetes import sandbox as kubernetes_sandbox
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.standins.kubernetes_standin import KubernetesStandin
from tests.support.waiting import until
from tests.taxtui.runner.test_trial import FakeContext, run

pytestmark = pytest.mark.processes

WHY = 'FailedCreatePodSandBox: no runtime for "<name>" is configured'


@pytest.fixture
async def standin() -> AsyncIterator[KubernetesStandin]:
    async with KubernetesStandin() as server:
        yield server


@pytest.fixture
async def substrate(standin: KubernetesStandin) -> AsyncIterator[KubernetesSubstrate]:
    async with KubernetesSubstrate(KubernetesOptions(kubeconfig=str(standin.kubeconfig))) as opened:
        yield opened


def spec(trial: int) -> SandboxSpec:
    labels = {LABEL_RUN: "r1", LABEL_TRIAL: str(trial), LABEL_DEADLINE: "2000000000"}
    return SandboxSpec(name=f"taxtui-r1-{trial}", labels=labels, limits=Limits(), ttl_s=600)


# -- stuck


async def test_the_last_warning_of_a_stuck_pod_is_said_early_and_in_the_end(
    standin: KubernetesStandin, substrate: KubernetesSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_sandbox, "QUIET_S", 0.1)
    standin.pods.fate = "no_sandbox"
    context = FakeContext()
    context.create_timeout_s = 4.0
    context.substrate = substrate  # type: ignore[assignment]
    await run(context)
    assert (context.ended.outcome, context.ended.error) == ("timeout", "ReadyTimeout")
    assert context.ended.message.endswith(f"within 4 s of create; {WHY}")
    assert [event.text for event in context.of(Notice)] == [f"kubernetes: a sandbox is not ready yet: {WHY}"]
    assert standin.requests.count("events") >= 2
    await standin.leaves(0, 0)


async def test_without_the_right_to_read_events_nobody_asks_twice(
    standin: KubernetesStandin, substrate: KubernetesSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_sandbox, "QUIET_S", 0.02)
    standin.denied.add("list events")
    standin.pods.fate = "no_sandbox"
    answer = await substrate.check()
    assert (answer.ok, answer.facts["events"]) == (True, "may not be read: a stuck pod says less")
    marks = Marks()
    made = await substrate.create(spec(1), marks)
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
        made = await substrate.create(spec(trial), marks[trial])
        await made.wait_ready(marks[trial])
        await made.destroy()

    await asyncio.gather(*(live(trial) for trial in range(5)))
    assert standin.pods.made == 5
    queued = [its for its in marks if its.queued_ns]
    assert len(queued) == 3
    assert all("exceeded quota" in text and "sandboxes has gone" in text for its in queued for text in its.notices)
    await standin.leaves(0, 0)


async def test_a_quota_that_others_use_up_is_final(standin: KubernetesStandin, substrate: KubernetesSubstrate) -> None:
    standin.quota = 1
    made = await substrate.create(spec(1), Marks())
    async with KubernetesSubstrate(KubernetesOptions(kubeconfig=str(standin.kubeconfig))) as stranger:
        with pytest.raises(QuotaExceeded, match="limited: pods=1"):
            await stranger.create(spec(2), Marks())
    await made.destroy()


async def test_who_waits_for_room_is_not_forgotten(
    standin: KubernetesStandin, substrate: KubernetesSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_access, "HOLD_S", 0.1)
    standin.quota = 1
    made = await substrate.create(spec(1), Marks())
    with pytest.raises(Throttled, match="none of 1 sandboxes has gone"):
        await substrate.create(spec(2), Marks())
    await made.destroy()
    again = await substrate.create(spec(2), Marks())
    await again.destroy()
    await until(lambda: standin.left() == (0, 0), "nothing is left")
