"""Sandboxes claimed from a warm pool: warm and cold ones, refusals, readiness, loss, removal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from taxtui.errors import CreateFailed, QuotaExceeded, SandboxLost, SubstrateUnavailable
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.recording import digest
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.kubernetes import sandbox as kubernetes_sandbox
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.command_line import Home
from tests.support.cost_model.pooled import (
    ACQUIRE,
    emptied,
    filled,
    measured,
    options,
    pod_of,
    ready,
    spec,
    standin,
    substrate,
)
from tests.support.standins.api_faults import NO_OPS
from tests.support.standins.kubernetes_cluster import NODE
from tests.support.standins.kubernetes_pool_standin import PoolStandin
from tests.support.waiting import until

pytestmark = pytest.mark.processes

__all__ = ["standin", "substrate"]


# ------------------------------------------------------------------------------------------------------- warm and cold


async def test_a_warm_trial_and_a_cold_one_say_so(
    standin: PoolStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(standin)
    got = await measured(standin, tmp_path, monkeypatch)
    assert got.end.outcome == "ok"
    assert [mark.name for mark in got.marks] == ["accepted", "adopted", "ready"]
    assert got.end.node == digest(NODE)
    await emptied(standin)
    (tmp_path / "cold").mkdir()
    got = await measured(standin, tmp_path / "cold", monkeypatch)
    assert got.end.outcome == "ok"
    assert [mark.name for mark in got.marks] == ["accepted", "made", "ready"]
    assert standin.pods.made >= 4


async def test_claims_that_are_more_than_the_pool_are_all_served(
    standin: PoolStandin, substrate: KubernetesSubstrate
) -> None:
    await filled(standin)
    standin.sandboxes.refills = False
    marks = [Marks() for _ in range(8)]
    boxes = await asyncio.gather(*(ready(substrate, trial, mark) for trial, mark in enumerate(marks)))
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
    box = await ready(substrate)
    found = await substrate.find()
    await box.destroy()
    await ready(substrate)
    await substrate.reap(found[0])
    assert standin.left() == (1, 1)


@pytest.mark.parametrize("refusal", ["installed", "denied"])
async def test_a_cluster_without_claims_is_swept_of_pods(standin: PoolStandin, refusal: str) -> None:
    if refusal == "installed":
        standin.installed = False
    else:
        standin.denied = {"list sandboxclaims"}
    async with KubernetesSubstrate(options(standin)) as plain:
        labels = {LABEL_RUN: "r1"}
        await plain.create(SandboxSpec(name="taxtui-r1-1", labels=labels, limits=Limits(), ttl_s=60), Marks())
        found = await plain.find("r1")
        assert [each.name for each in found] == ["taxtui-r1-1"]
        await plain.reap(found[0])
        assert await plain.find("r1") == []


# ----------------------------------------------------------------------------------------------------- before anything


async def refusal(substrate: KubernetesSubstrate, acquire: str = ACQUIRE, limits: Limits | None = None) -> str:
    with pytest.raises(SubstrateUnavailable) as caught:
        await substrate.check_acquire(acquire, limits or Limits())
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_a_pool_that_is_not_there(standin: PoolStandin, substrate: KubernetesSubstrate) -> None:
    assert "there is no SandboxWarmPool 'cold' in namespace 'sandboxes'" in await refusal(substrate, "pool:cold")
    standin.sandboxes.templates.clear()
    assert "there is no SandboxTemplate 'taxtui'" in await refusal(substrate)


async def test_a_cluster_without_agent_sandbox(standin: PoolStandin, substrate: KubernetesSubstrate) -> None:
    standin.installed = False
    said = await refusal(substrate)
    assert "does not have sandboxwarmpools" in said
    assert "install agent-sandbox" in said


async def test_each_missing_right_is_named(standin: PoolStandin, substrate: KubernetesSubstrate) -> None:
    standin.denied = {"watch sandboxclaims", "get sandboxtemplates"}
    assert "not allowed in namespace 'sandboxes': watch sandboxclaims, get sandboxtemplates" in await refusal(substrate)


async def test_a_template_of_something_else(standin: PoolStandin, substrate: KubernetesSubstrate) -> None:
    assert "gives cpu 1 to 1, not 2" in await refusal(substrate, limits=Limits(cpus=2))
    container = standin.sandboxes.templates["taxtui"]["spec"]["podTemplate"]["spec"]["containers"][0]
    container["image"] = "example.org/other"
    assert "has the image example.org/other, not docker.io" in await refusal(substrate)
    del container["image"]
    assert "names no image" in await refusal(substrate)


# ------------------------------------------------------------------------------------------------------------- create


async def test_the_quota_of_claims(standin: PoolStandin, substrate: KubernetesSubstrate) -> None:
    standin.claims_quota = 0
    with pytest.raises(QuotaExceeded, match="count/sandboxclaims"):
        await substrate.create(spec(), Marks())
    standin.claims_quota = 1
    first, marks = await ready(substrate, 1), Marks()
    second = asyncio.ensure_future(ready(substrate, 2, marks))
    await until(lambda: marks.notices, "the second one waits for room")
    await first.destroy()
    await (await second).destroy()
    assert marks.queued_ns > 0


# -------------------------------------------------------------------------------------------- as a command of its own


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    own = Home(tmp_path / "home")
    yield own
    own.close()


@pytest.mark.parametrize("kill", range(3))
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
