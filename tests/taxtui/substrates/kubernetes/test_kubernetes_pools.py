"""Sandboxes claimed from a warm pool: warm and cold ones, refusals, readiness, loss, suspension, removal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest

from taxtui.errors import CreateFailed, ExecFailed, QuotaExceeded, SandboxLost, SubstrateUnavailable, UsageError
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.recording import digest
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.kubernetes import sandbox as kubernetes_sandbox
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support import sandboxes
from tests.support.command_line import Home
from tests.support.sandboxes import RUN
from tests.support.standins.api_faults import NO_OPS, Measure
from tests.support.standins.kubernetes_cluster import NODE
from tests.support.standins.kubernetes_pool_standin import ACQUIRE, PoolStandin
from tests.support.waiting import until

pytestmark = pytest.mark.processes


@pytest.fixture
async def standin() -> AsyncIterator[PoolStandin]:
    async with PoolStandin() as server:
        yield server


def spec() -> SandboxSpec:
    return sandboxes.spec(acquire=ACQUIRE)


async def ready(substrate: KubernetesSubstrate, number: int | None = None, marks: Marks | None = None) -> Any:
    return await sandboxes.ready(substrate, number, marks, acquire=ACQUIRE)


@pytest.mark.parametrize(("state", "milestone"), [("filled", "adopted"), ("emptied", "made")])
async def test_a_warm_trial_and_a_cold_one_say_so(
    standin: PoolStandin, measure: Measure, state: str, milestone: str
) -> None:
    await getattr(standin, state)()
    got = await measure(acquire=ACQUIRE)
    assert got.end.outcome == "ok"
    assert [mark.name for mark in got.marks] == ["accepted", milestone, "ready"]
    assert got.end.node == digest(NODE)


async def test_claims_that_are_more_than_the_pool_are_all_served(
    standin: PoolStandin, substrate: KubernetesSubstrate
) -> None:
    await standin.filled()
    standin.sandboxes.refills = False
    marks = [Marks() for _ in range(8)]
    boxes = await asyncio.gather(*(ready(substrate, marks=mark) for mark in marks))
    how = [[name for name, _, _ in mark.seen][1] for mark in marks]
    assert how.count("adopted") == 3
    assert len({(await box.exec(Command(script="pwd"))).stdout for box in boxes}) == 8, "each has a pod of its own"
    assert (standin.requests.count("claims.watch"), standin.requests.count("watch")) == (1, 1)
    await asyncio.gather(*(box.destroy() for box in boxes))
    assert standin.left() == (0, 0)


async def test_the_pod_is_gone_when_destroy_returns_however_late(
    standin: PoolStandin, substrate: KubernetesSubstrate
) -> None:
    box = await ready(substrate)
    standin.sandboxes.late_s = 0.3
    await box.destroy()
    assert standin.left() == (0, 0)
    await box.destroy()
    with pytest.raises(SandboxLost):
        await box.exec(Command(script="true"))


async def test_another_claim_of_the_same_name_is_left_alone(
    standin: PoolStandin, substrate: KubernetesSubstrate
) -> None:
    box = await ready(substrate, 1)
    [found] = await substrate.find()
    await box.destroy()
    await ready(substrate, 1)
    await substrate.reap(found)
    assert standin.left() == (1, 1)


@pytest.mark.parametrize("installed", [False, True])
async def test_a_cluster_without_claims_or_the_right_to_list_them_is_swept_of_pods(
    standin: PoolStandin, substrate: KubernetesSubstrate, installed: bool
) -> None:
    standin.installed = installed
    standin.denied = {"list sandboxclaims"}
    made = await substrate.create(sandboxes.spec(), Marks())
    [found] = await substrate.find(RUN)
    assert found.name == made.name
    await substrate.reap(found)
    assert await substrate.find(RUN) == []


async def refusal(substrate: KubernetesSubstrate, acquire: str = ACQUIRE, limits: Limits | None = None) -> str:
    with pytest.raises(SubstrateUnavailable) as caught:
        await substrate.check_acquire(acquire, limits or Limits())
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_a_pool_that_is_not_there(standin: PoolStandin, substrate: KubernetesSubstrate) -> None:
    assert "there is no SandboxWarmPool 'cold' in namespace 'sandboxes'" in await refusal(substrate, "pool:cold")
    standin.sandboxes.templates.clear()
    assert "there is no SandboxTemplate 'taxtui'" in await refusal(substrate)


async def test_a_cluster_without_agent_sandbox_or_without_a_right(
    standin: PoolStandin, substrate: KubernetesSubstrate
) -> None:
    standin.denied = {"watch sandboxclaims", "get sandboxtemplates"}
    assert "not allowed in namespace 'sandboxes': watch sandboxclaims, get sandboxtemplates" in await refusal(substrate)
    standin.denied.clear()
    standin.installed = False
    said = await refusal(substrate)
    assert "does not have sandboxwarmpools" in said
    assert "install agent-sandbox" in said


async def test_a_template_of_something_else(standin: PoolStandin, substrate: KubernetesSubstrate) -> None:
    assert "gives cpu 1 to 1, not 2" in await refusal(substrate, limits=Limits(cpus=2))
    container = standin.sandboxes.templates["taxtui"]["spec"]["podTemplate"]["spec"]["containers"][0]
    container["image"] = "example.org/other"
    assert "has the image example.org/other, not docker.io" in await refusal(substrate)
    del container["image"]
    assert "names no image" in await refusal(substrate)


async def test_the_quota_of_claims(standin: PoolStandin, substrate: KubernetesSubstrate) -> None:
    standin.claims_quota = 0
    with pytest.raises(QuotaExceeded, match="count/sandboxclaims"):
        await substrate.create(spec(), Marks())
    standin.claims_quota = 1
    first, marks = await ready(substrate), Marks()
    second = asyncio.ensure_future(ready(substrate, marks=marks))
    await until(lambda: marks.notices, "the second one waits for room")
    await first.destroy()
    await (await second).destroy()
    assert marks.queued_ns > 0


@pytest.mark.parametrize("kill", [0, 2])
async def test_a_run_that_is_killed_leaves_no_claim(standin: PoolStandin, home: Home, kill: int) -> None:
    scenario = home.cwd / "scenario.toml"
    place = f'substrates = ["kubernetes:kubeconfig={standin.kubeconfig}"]'
    cell = f'tiers = ["T0"]\nactions = [2]\nconcurrency = 2\ntrials = 100000\nacquire = "{ACQUIRE}"'
    scenario.write_text(f'create_timeout = "2s"\n[[cells]]\n{place}\n{cell}\n')
    process = home.start("run", str(scenario), "--progress", "none", "-o", str(home.cwd / "run.msgpack"))
    await until(lambda: standin.requests.count("claims.create") > 2 * kill, "claims are made")
    process.send_signal(signal.SIGKILL)
    await asyncio.to_thread(process.wait)
    await until(lambda: not home.processes(), "its watchdog has ended")
    assert standin.left() == (0, 0)
    assert home.ledger() == []


@pytest.mark.parametrize("obstacle", ["does agent-sandbox run", "exceeded quota"])
async def test_a_claim_waits_for_the_pools_controller_and_for_a_quota_of_pods(
    standin: PoolStandin, substrate: KubernetesSubstrate, monkeypatch: pytest.MonkeyPatch, obstacle: str
) -> None:
    monkeypatch.setattr(kubernetes_sandbox, "QUIET_S", 0.05)
    if obstacle == "exceeded quota":
        await standin.emptied()
        standin.sandboxes.pods_quota = 0
    else:
        await standin.sandboxes.stop()
    marks = Marks()
    waiting = asyncio.ensure_future(ready(substrate, marks=marks))
    await until(lambda: obstacle in marks.obstacle, "it says what it waits for")
    standin.sandboxes.pods_quota = None
    standin.sandboxes.start()
    await (await waiting).destroy()


@pytest.mark.parametrize(("gone", "reason"), [("pools", "WarmPoolNotFound"), ("templates", "TemplateNotFound")])
async def test_a_pool_that_goes_away_during_the_run(
    standin: PoolStandin, substrate: KubernetesSubstrate, gone: str, reason: str
) -> None:
    await substrate.check_acquire(ACQUIRE, Limits())
    await standin.emptied()
    getattr(standin.sandboxes, gone).clear()
    box = await substrate.create(spec(), Marks())
    with pytest.raises(CreateFailed, match=reason):
        await box.wait_ready(Marks())
    await box.destroy()


@pytest.mark.parametrize("replaced", [True, False])
async def test_a_pod_that_goes_before_its_claim_is_ready(
    standin: PoolStandin, substrate: KubernetesSubstrate, replaced: bool
) -> None:
    """One that is deleted is made again, which is no loss; one that fails is."""
    await standin.emptied()
    standin.pods.start_s = 0.2
    box = await substrate.create(spec(), Marks())
    await until(lambda: (standin.namespace, box.name) in standin.pods.objects, "its pod is made")
    if replaced:
        standin.pods.delete(standin.namespace, box.name, 0)
        await box.wait_ready(Marks())
        assert (await box.exec(Command(script="echo well"))).stdout == b"well\n"
    else:
        standin.pods.evict(box.name)
        with pytest.raises(SandboxLost, match="PodFailed"):
            await box.wait_ready(Marks())
    await box.destroy()
    assert standin.left() == (0, 0)


@pytest.mark.parametrize(
    ("end", "session"),
    [("evict", False), ("oom_kill", True), ("vanish", False), ("vanish", True), ("replace", True), ("expire", False)],
)
async def test_a_pod_that_is_lost_in_use(
    standin: PoolStandin, substrate: KubernetesSubstrate, end: str, session: bool
) -> None:
    await standin.filled()
    box = await ready(substrate)
    pod = standin.pod_of(box.name)["metadata"]
    place = standin.pods.places[pod["uid"]]
    shell = await box.open_session() if session else box
    running = asyncio.ensure_future(shell.exec(Command(script="touch begun; sleep 60", timeout_s=60)))
    await until(place.begun, "the command has begun")
    if end == "replace":
        standin.pods.delete(standin.namespace, pod["name"], 0)
    elif end == "expire":
        standin.sandboxes.delete(standin.namespace, box.name)
    else:
        getattr(standin.pods, end)(pod["name"])
    with pytest.raises(SandboxLost):
        await running
    with pytest.raises(SandboxLost):
        await box.exec(Command(script="true"))
    await box.destroy()
    assert standin.left() == (0, 0)


async def test_a_container_that_was_restarted_is_another_sandbox(
    standin: PoolStandin, substrate: KubernetesSubstrate
) -> None:
    await standin.filled()
    standin.fail("list", times=3, status=500)  # the claim is ready before the watch of pods has begun
    box = await ready(substrate)
    await until(lambda: box._pod is not None, "the watch has seen the container before its restart")
    pod = standin.pod_of(box.name)
    pod["status"]["containerStatuses"][0]["restartCount"] = 1
    standin.pods.emit("MODIFIED", pod)
    await until(lambda: box._lost() is not None, "the watch has told of it")
    with pytest.raises(SandboxLost, match="was restarted"):
        await box.exec(Command(script="true"))
    await box.destroy()


async def test_an_api_server_that_restarts_loses_no_trial(standin: PoolStandin, measure: Measure) -> None:
    await standin.filled()
    trial = asyncio.ensure_future(measure("sleep 0.4", "sleep 0.4", acquire=ACQUIRE))
    await until(lambda: standin.requests.count("exec") > NO_OPS, "the first command runs")
    await standin.restart(refuses_s=0.5)
    assert (await trial).end.outcome == "ok"


def suspending(standin: PoolStandin) -> KubernetesSubstrate:
    return KubernetesSubstrate(KubernetesOptions(kubeconfig=str(standin.kubeconfig), suspend=True))


async def test_suspension_is_refused_where_files_would_be_lost(standin: PoolStandin) -> None:
    async with suspending(standin) as substrate:
        with pytest.raises(SubstrateUnavailable, match="has no volumeClaimTemplate for the working directory"):
            await substrate.check_acquire(ACQUIRE, Limits())
        with pytest.raises(UsageError, match="suspend=true needs a warm pool"):
            await substrate.check_acquire("create", Limits())


@pytest.mark.parametrize("lost", [True, False])
async def test_a_claim_that_ends_while_suspended_and_a_missing_right(lost: bool) -> None:
    async with PoolStandin(volume=True) as standin, suspending(standin) as substrate:
        sandbox = await ready(substrate)
        if lost:
            await sandbox.suspend(Marks())
            [entry] = await substrate.find(RUN)
            await substrate.reap(entry)
            with pytest.raises(SandboxLost, match=r"deleted with the claim|no longer exists"):
                await sandbox.resume(Marks())
        else:
            standin.fail("sandboxes.patch", status=403, message="cannot patch resource sandboxes")
            with pytest.raises(ExecFailed, match=r"the sandbox cannot become Suspended: .*cannot patch resource"):
                await sandbox.suspend(Marks())
            await sandbox.destroy()
        assert standin.left() == (0, 0)
