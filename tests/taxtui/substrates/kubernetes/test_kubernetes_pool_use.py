"""Each way in which a claim from a warm pool goes wrong: before it is ready, in use, at its removal."""

import asyncio
from pathlib import Path

import pytest

from taxtui.errors import CreateFailed, SandboxLost
from taxtui.plan.spec import Command, Limits
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.kubernetes import sandbox as kubernetes_sandbox
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.cost_model.pooled import ACQUIRE, emptied, filled, measured, pod_of, ready, spec, standin, substrate
from tests.support.standins.api_faults import NO_OPS
from tests.support.standins.kubernetes_pool_standin import PoolStandin
from tests.support.waiting import until

pytestmark = pytest.mark.processes

__all__ = ["standin", "substrate"]


# -------------------------------------------------------------------------------------------------------------- ready


async def test_a_claim_waits_for_the_pools_controller(
    standin: PoolStandin, substrate: KubernetesSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_sandbox, "QUIET_S", 0.05)
    await standin.sandboxes.stop()
    marks = Marks()
    box = await substrate.create(spec(), marks)
    waiting = asyncio.ensure_future(box.wait_ready(marks))
    await until(lambda: marks.obstacle, "it says what it waits for")
    assert "does agent-sandbox run" in marks.obstacle
    standin.sandboxes.start()
    await waiting
    await box.destroy()


async def test_a_quota_of_pods_is_what_the_claim_waits_for(
    standin: PoolStandin, substrate: KubernetesSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_sandbox, "QUIET_S", 0.05)
    await emptied(standin)
    standin.sandboxes.pods_quota = 0
    marks = Marks()
    box = await substrate.create(spec(), marks)
    waiting = asyncio.ensure_future(box.wait_ready(marks))
    await until(lambda: "exceeded quota" in marks.obstacle, "it says so")
    standin.sandboxes.pods_quota = None
    await waiting
    await box.destroy()


@pytest.mark.parametrize(("gone", "reason"), [("pools", "WarmPoolNotFound"), ("templates", "TemplateNotFound")])
async def test_a_pool_that_goes_away_during_the_run(
    standin: PoolStandin, substrate: KubernetesSubstrate, gone: str, reason: str
) -> None:
    await substrate.check_acquire(ACQUIRE, Limits())
    await emptied(standin)
    getattr(standin.sandboxes, gone).clear()
    box = await substrate.create(spec(), Marks())
    with pytest.raises(CreateFailed, match=reason):
        await box.wait_ready(Marks())
    await box.destroy()


async def test_a_pod_that_is_replaced_before_the_claim_is_ready_is_no_loss(
    standin: PoolStandin, substrate: KubernetesSubstrate
) -> None:
    await emptied(standin)
    standin.pods.start_s = 0.2
    box = await substrate.create(spec(), Marks())
    await until(lambda: (standin.namespace, box.name) in standin.pods.objects, "its pod is made")
    standin.pods.delete(standin.namespace, box.name, 0, None)
    await box.wait_ready(Marks())
    assert (await box.exec(Command(script="echo well"))).stdout == b"well\n"
    await box.destroy()
    assert standin.left() == (0, 0)


async def test_a_pod_that_dies_before_its_claim_is_ready(standin: PoolStandin, substrate: KubernetesSubstrate) -> None:
    await emptied(standin)
    standin.pods.start_s = 0.2
    box = await substrate.create(spec(), Marks())
    await until(lambda: (standin.namespace, box.name) in standin.pods.objects, "its pod is made")
    standin.pods.evict(box.name)
    with pytest.raises(SandboxLost, match="PodFailed"):
        await box.wait_ready(Marks())
    await box.destroy()


# ----------------------------------------------------------------------------------------------------------------- use


@pytest.mark.parametrize(
    ("end", "session"),
    [("evict", False), ("oom_kill", True), ("vanish", False), ("vanish", True), ("replace", True), ("expire", False)],
)
async def test_a_pod_that_is_lost_in_use(
    standin: PoolStandin, substrate: KubernetesSubstrate, end: str, session: bool
) -> None:
    await filled(standin)
    box = await ready(substrate)
    pod = pod_of(standin, box.name)
    place = standin.pods.places[standin.pods.objects[standin.namespace, pod]["metadata"]["uid"]]
    shell = await box.open_session() if session else box
    running = asyncio.ensure_future(shell.exec(Command(script="touch begun; sleep 60", timeout_s=60)))
    await until(place.begun, "the command has begun")
    if end == "replace":
        standin.pods.delete(standin.namespace, pod, 0, None)
    elif end == "expire":
        standin.sandboxes.delete(standin.namespace, box.name, None, foreground=True)
    else:
        getattr(standin.pods, end)(pod)
    with pytest.raises(SandboxLost):
        await running
    with pytest.raises(SandboxLost):
        await box.exec(Command(script="true"))
    await box.destroy()
    assert standin.left() == (0, 0)


async def test_a_container_that_was_restarted_is_another_sandbox(
    standin: PoolStandin, substrate: KubernetesSubstrate
) -> None:
    await filled(standin)
    standin.fail("list", times=3, status=500)  # the claim is ready before the watch of pods has begun
    box = await ready(substrate)
    await until(lambda: box._pod is not None, "the watch has seen the container before its restart")  # type: ignore[attr-defined]
    pod = standin.pods.objects[standin.namespace, pod_of(standin, box.name)]
    pod["status"]["containerStatuses"][0]["restartCount"] = 1
    standin.pods.emit("MODIFIED", pod)
    await until(lambda: box._lost() is not None, "the watch has told of it")  # type: ignore[attr-defined]
    with pytest.raises(SandboxLost, match="was restarted"):
        await box.exec(Command(script="true"))
    await box.destroy()


async def test_an_api_server_that_restarts_loses_no_trial(
    standin: PoolStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(standin)
    trial = asyncio.ensure_future(measured(standin, tmp_path, monkeypatch, "sleep 0.4", "sleep 0.4"))
    await until(lambda: standin.requests.count("exec") > NO_OPS, "the first command runs")
    await standin.restart(refuses_s=0.5)
    assert (await trial).end.outcome == "ok"


# ------------------------------------------------------------------------------------------------------------- removal
