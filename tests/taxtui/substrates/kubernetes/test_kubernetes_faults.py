"""Each way in which a cluster fails: what the runner records of it, and that nothing is left behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from taxtui.errors import ExecFailed, ReadyTimeout
from taxtui.plan.spec import Command
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.kubernetes import (
    watch as kubernetes_watch,
)
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.sandboxes import spec
from tests.support.standins.api_faults import KUBERNETES, NO_OPS, Measure, measuring, told
from tests.support.standins.kubernetes_standin import KubernetesStandin
from tests.support.waiting import until

pytestmark = pytest.mark.processes


@pytest.fixture
def measure(standin: KubernetesStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    return measuring(KUBERNETES, standin, tmp_path, monkeypatch)


def lists_before_cleanup(standin: KubernetesStandin) -> int:
    return standin.requests[: standin.requests.index("delete")].count("list")


# ------------------------------------------------------------------------------------------------------------- ready


async def test_no_node_takes_the_pod(standin: KubernetesStandin, measure: Measure) -> None:
    standin.pods.fate = "unschedulable"
    got = await measure()
    assert told(got.end) == ("failed", "ready", "CreateFailed")
    assert "3 Insufficient cpu" in got.end.message


async def test_the_image_cannot_be_pulled(standin: KubernetesStandin, measure: Measure) -> None:
    standin.pods.fate = "image_pull_backoff"
    got = await measure()
    assert told(got.end) == ("failed", "ready", "CreateFailed")
    assert "ImagePullBackOff" in got.end.message


async def test_watching_is_forbidden(standin: KubernetesStandin, measure: Measure) -> None:
    standin.fail("watch", status=403)
    got = await measure()
    assert told(got.end) == ("failed", "ready", "CreateFailed")
    assert "can't be watched" in got.end.message


@pytest.mark.parametrize("fault", [{"status": 500}, {"status": 429, "retry_after_s": 0}, {"reset": "before"}])
async def test_a_broken_watch_is_made_again(
    standin: KubernetesStandin, measure: Measure, fault: dict[str, object]
) -> None:
    standin.fail("watch", times=2, **fault)
    got = await measure()
    assert got.end.outcome == "ok"
    seen = [mark.name for mark in got.marks]
    assert seen == ["accepted", "scheduled", "initialized", "sandbox ready", "running", "ready"]


async def test_a_watch_that_ends_silently_is_resumed(standin: KubernetesStandin, measure: Measure) -> None:
    standin.watch_ends_after = 1
    got = await measure()
    assert got.end.outcome == "ok"
    assert standin.requests.count("watch") > 2
    assert lists_before_cleanup(standin) == 1, "resumed from where it ended, not listed anew"
    assert any(mark.resolution_ns > 0 for mark in got.marks), "a state seen after a gap says how long the gap was"


async def test_a_forgotten_resource_version_is_listed_anew(
    standin: KubernetesStandin, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    standin.watch_ends_after = 1
    watched = standin.watched

    async def forgetful(*request: object) -> object:
        answer = await watched(*request)  # type: ignore[arg-type]
        if standin.requests.count("watch") == 1:
            standin.pods.forget_history()
        return answer

    monkeypatch.setattr(standin, "watched", forgetful)
    monkeypatch.setattr(kubernetes_watch, "CATCH_UP_NS", 50_000_000)
    got = await measure()
    assert got.end.outcome == "ok"
    assert lists_before_cleanup(standin) == 2


# -------------------------------------------------------------------------------------------------------------- exec


@pytest.mark.parametrize("fault", [{"status": 404}, {"reset": "before"}, {"reset": "mid"}])
async def test_a_broken_exec(standin: KubernetesStandin, measure: Measure, fault: dict[str, object]) -> None:
    standin.fail("exec", skip=NO_OPS, **fault)
    got = await measure("echo begun; sleep 30")
    assert told(got.end) == ("failed", "action", "ExecFailed")


BACKEND = "error dialing backend: connect: connection refused"


async def test_a_refused_exec_says_what_the_server_said(standin: KubernetesStandin, measure: Measure) -> None:
    standin.fail("exec", skip=NO_OPS, status=500, message=BACKEND)
    got = await measure("true")
    assert told(got.end) == ("failed", "action", "ExecFailed")
    assert BACKEND in got.end.message


async def test_a_kill_that_fails_as_well_is_said_beside_what_failed_first(
    standin: KubernetesStandin, measure: Measure
) -> None:
    standin.fail("exec", skip=NO_OPS, reset="mid")
    standin.fail("exec", status=500, message=BACKEND)
    got = await measure("echo begun; sleep 30")
    assert told(got.end) == ("failed", "action", "ExecFailed")
    assert "connection broke" in got.end.message
    assert f"may still run in the pod: {BACKEND}" in got.end.message


async def test_an_exec_that_never_works_is_not_ready(standin: KubernetesStandin, measure: Measure) -> None:
    standin.fail("exec", status=500, times=1000)
    got = await measure(create_timeout_s=3.0)
    assert told(got.end) == ("timeout", "ready", ReadyTimeout.__name__)


@pytest.mark.parametrize("refused_kills", [0, 2])  # a restarting API server cuts, and refuses until its roles are read
@pytest.mark.parametrize("mode", ["exec", "session"])
async def test_a_cut_connection_to_a_pod_that_lives_is_no_lost_sandbox(
    standin: KubernetesStandin, mode: str, refused_kills: int
) -> None:
    async with KubernetesSubstrate(KubernetesOptions(kubeconfig=str(standin.kubeconfig))) as substrate:
        marks = Marks()
        box = await substrate.create(spec(), marks)
        await box.wait_ready(marks)
        runner = await box.open_session() if mode == "session" else box
        running = asyncio.ensure_future(runner.exec(Command(script="touch begun; sleep 60")))
        await until(lambda: any(place.begun() for place in standin.pods.places.values()), "the command has begun")
        standin.fail("exec", status=403, times=refused_kills)
        standin.cut_execs()
        with pytest.raises(ExecFailed, match="connection broke"):
            await running
        assert standin.faults.struck == refused_kills
        await standin.leaves(1, 1)
        assert (await box.exec(Command(script="true"))).exit_code == 0


@pytest.mark.parametrize("mode", ["exec", "session"])
@pytest.mark.parametrize(("blow", "reason"), [("evict", "Evicted"), ("oom_kill", "OOMKilled")])
async def test_a_pod_that_dies_under_a_command(
    standin: KubernetesStandin, measure: Measure, blow: str, reason: str, mode: str
) -> None:
    async def strike() -> None:
        await until(lambda: any(place.begun() for place in standin.pods.places.values()), "the command has begun")
        getattr(standin.pods, blow)("taxtui-20260101t000000z-00000000-0")

    striking = asyncio.ensure_future(strike())
    got = await measure("touch begun; sleep 30", mode=mode)
    await striking
    assert told(got.end) == ("failed", "action", "SandboxLost")
    assert reason in got.end.message
