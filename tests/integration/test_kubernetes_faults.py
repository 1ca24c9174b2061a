"""Each way in which a cluster fails: what the runner records of it, and that nothing is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from taxtui.errors import ExecFailed, ReadyTimeout
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.recording.events import TrialEnded
from taxtui.sandboxes.kit import removal
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.kubernetes import (
    access as kubernetes_access,
)
from taxtui.substrates.kubernetes import (
    exec as kubernetes_exec,
)
from taxtui.substrates.kubernetes import (
    watch as kubernetes_watch,
)
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.kubernetes_standin import KubernetesStandin
from tests.support.recorded import Recorded, record
from tests.support.waiting import until

Measure = Callable[..., Awaitable[Recorded]]
NO_OPS = 2  # ready and ready_again


@pytest.fixture
async def standin() -> AsyncIterator[KubernetesStandin]:
    async with KubernetesStandin() as server:
        yield server


@pytest.fixture
def measure(standin: KubernetesStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Run one recorded trial; whatever happens, nothing may be left."""

    def make() -> KubernetesSubstrate:
        return KubernetesSubstrate(KubernetesOptions(kubeconfig=str(standin.kubeconfig), unschedulable_s=0.2))

    async def run(*commands: str, left: tuple[int, int] = (0, 0), **how: object) -> Recorded:
        got = await record(make, tmp_path, monkeypatch, *commands, **how)  # type: ignore[arg-type]
        await standin.leaves(*left)
        return got

    return run


def told(end: TrialEnded) -> tuple[str, str, str]:
    return end.outcome, end.phase, end.error


# ------------------------------------------------------------------------------------------------------------ create


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"status": 401}, "SubstrateUnavailable"),
        ({"status": 403}, "SubstrateUnavailable"),
        ({"status": 409}, "CreateFailed"),
        ({"status": 500}, "CreateFailed"),
        ({"reset": "before"}, "CreateFailed"),
        ({"reset": "after"}, "CreateFailed"),
    ],
)
async def test_a_refused_create(
    standin: KubernetesStandin, measure: Measure, fault: dict[str, object], error: str
) -> None:
    standin.fail("create", **fault)
    got = await measure()
    assert told(got.end) == ("failed", "create", error)
    assert not got.cleanup_failed
    assert standin.pods.made == (1 if fault.get("reset") == "after" else 0)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_create_that_is_never_answered(standin: KubernetesStandin, measure: Measure, when: str) -> None:
    standin.fail("create", hang=when)
    got = await measure(create_timeout_s=2.0)
    assert got.end.outcome == "timeout"
    assert got.end.phase == "create"
    assert standin.pods.made == (1 if when == "after" else 0)


async def test_a_used_up_quota_is_final_and_named(standin: KubernetesStandin, measure: Measure) -> None:
    standin.quota = 0
    got = await measure()
    assert told(got.end) == ("failed", "create", "QuotaExceeded")
    assert "limited: pods=0" in got.end.message
    assert standin.requests.count("create") == 1


async def test_a_throttle_is_queued_and_not_latency(standin: KubernetesStandin, measure: Measure) -> None:
    standin.fail("create", status=429, retry_after_s=1)
    got = await measure()
    assert got.end.outcome == "ok"
    assert got.end.queued_ns >= 1_000_000_000
    assert any("throttled" in text for text in got.notices)


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
    assert standin.requests.count("list") == 1, "resumed from where it ended, not listed anew"
    assert any(mark.resolution_ns > 0 for mark in got.marks), "a state seen after a gap says how long the gap was"


async def test_a_forgotten_resource_version_is_listed_anew(
    standin: KubernetesStandin, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    standin.watch_ends_after = 1
    watched = standin._watch

    async def forgetful(*request: object) -> object:
        answer = await watched(*request)  # type: ignore[arg-type]
        if standin.requests.count("watch") == 1:
            standin.pods.forget_history()
        return answer

    monkeypatch.setattr(standin, "_watch", forgetful)
    monkeypatch.setattr(kubernetes_watch, "CATCH_UP_NS", 50_000_000)
    got = await measure()
    assert got.end.outcome == "ok"
    assert standin.requests.count("list") == 2


# -------------------------------------------------------------------------------------------------------------- exec


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"status": 404}, "ExecFailed"),
        ({"status": 500}, "ExecFailed"),
        ({"reset": "before"}, "ExecFailed"),
        ({"reset": "mid"}, "ExecFailed"),
    ],
)
async def test_a_broken_exec(
    standin: KubernetesStandin, measure: Measure, fault: dict[str, object], error: str
) -> None:
    standin.fail("exec", skip=NO_OPS, **fault)
    got = await measure("echo begun; sleep 30")
    assert told(got.end) == ("failed", "action", error)


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


async def test_a_throttled_exec_is_queued(standin: KubernetesStandin, measure: Measure) -> None:
    standin.fail("exec", skip=NO_OPS, status=429, retry_after_s=1)
    got = await measure("echo x")
    assert got.end.outcome == "ok"
    assert got.end.queued_ns >= 1_000_000_000


@pytest.mark.parametrize("mode", ["exec", "session"])
async def test_a_command_that_outlives_its_timeout(measure: Measure, mode: str) -> None:
    got = await measure("sleep 60 & sleep 61", timeout_s=0.5, mode=mode)
    assert told(got.end) == ("timeout", "action", "ExecTimeout")


async def test_an_exec_that_is_never_answered(
    standin: KubernetesStandin, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_exec, "KILL_S", 0.3)
    standin.fail("exec", skip=NO_OPS, hang="before")
    got = await measure("true", timeout_s=0.3)
    assert told(got.end) == ("failed", "action", "ExecFailed")
    assert "may still run" in got.end.message


async def test_a_reset_in_the_middle_leaves_no_process_in_the_pod(standin: KubernetesStandin) -> None:
    async with KubernetesSubstrate(KubernetesOptions(kubeconfig=str(standin.kubeconfig))) as substrate:
        marks = Marks()
        spec = SandboxSpec(name="taxtui-r-1", labels={LABEL_RUN: "r"}, limits=Limits(), ttl_s=60)
        box = await substrate.create(spec, marks)
        await box.wait_ready(marks)
        standin.fail("exec", reset="mid")
        with pytest.raises(ExecFailed, match="connection broke"):
            await box.exec(Command(script="echo begun; sleep 60 & sleep 61"))
        await standin.leaves(1, 1)


@pytest.mark.parametrize("mode", ["exec", "session"])
async def test_a_cut_connection_to_a_pod_that_lives_is_no_lost_sandbox(standin: KubernetesStandin, mode: str) -> None:
    async with KubernetesSubstrate(KubernetesOptions(kubeconfig=str(standin.kubeconfig))) as substrate:
        marks = Marks()
        spec = SandboxSpec(name="taxtui-r-1", labels={LABEL_RUN: "r"}, limits=Limits(), ttl_s=60)
        box = await substrate.create(spec, marks)
        await box.wait_ready(marks)
        runner = await box.open_session() if mode == "session" else box
        running = asyncio.ensure_future(runner.exec(Command(script="touch begun; sleep 60")))
        await until(lambda: any(place.begun() for place in standin.pods.places.values()), "the command has begun")
        standin.cut_execs()
        with pytest.raises(ExecFailed, match="connection broke"):
            await running
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


# ----------------------------------------------------------------------------------------------------------- cleanup


@pytest.mark.parametrize(
    "fault", [{"status": 500, "times": 2}, {"status": 429, "retry_after_s": 1}, {"reset": "before"}, {"reset": "after"}]
)
async def test_a_delete_is_asked_for_again(
    standin: KubernetesStandin, measure: Measure, fault: dict[str, object]
) -> None:
    standin.fail("delete", **fault)
    got = await measure()
    assert got.end.outcome == "ok"
    assert not got.cleanup_failed


async def test_a_forbidden_delete_is_said_loudly(
    standin: KubernetesStandin, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_access, "DOUBT_S", 0.1)
    standin.fail("delete", status=403, times=1000)
    got = await measure(left=(1, 1))
    assert got.cleanup_failed
    assert any("may still exist" in text for text in got.notices)


async def test_a_deletion_that_is_stuck_is_said_loudly(
    standin: KubernetesStandin, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "REMOVE_S", -4.0)  # with the grace period of 5 s: one second
    standin.pods.stuck = True
    got = await measure(left=(1, 1))
    assert (got.end.outcome, got.cleanup_failed) == ("ok", True)
    assert any("look at its node and its finalizers" in text for text in got.notices)
    standin.pods.release()
    await until(lambda: standin.left() == (0, 0), "what was stuck goes")


async def test_a_list_that_fails_once_does_not_stop_the_cleanup(standin: KubernetesStandin, measure: Measure) -> None:
    standin.fail("create", reset="after")
    standin.fail("list", skip=1, status=500)  # the first list is the watch's
    got = await measure()
    assert told(got.end) == ("failed", "create", "CreateFailed")
    assert not got.cleanup_failed
