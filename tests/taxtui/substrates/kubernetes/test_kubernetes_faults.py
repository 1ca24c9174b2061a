"""Each way in which a cluster fails, restarts or gets stuck: what the runner records of it, and that nothing stays."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from taxtui.errors import ExecFailed, QuotaExceeded, ReadyTimeout, SubstrateUnavailable, Throttled
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit import retry
from taxtui.sandboxes.protocol import Marks, Sandbox
from taxtui.substrates.kubernetes import access as kubernetes_access
from taxtui.substrates.kubernetes import sandbox as kubernetes_sandbox
from taxtui.substrates.kubernetes import substrate as kubernetes_substrate
from taxtui.substrates.kubernetes import watch as kubernetes_watch
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from tests.support.recorded import Recorded
from tests.support.sandboxes import ready, spec
from tests.support.standins.api_faults import NO_OPS, Measure, told
from tests.support.standins.kubernetes_standin import KubernetesStandin
from tests.support.waiting import until

pytestmark = pytest.mark.processes

BACKEND = "error dialing backend: connect: connection refused"


def lists_before_cleanup(standin: KubernetesStandin) -> int:
    return standin.requests[: standin.requests.index("delete")].count("list")


async def begun(standin: KubernetesStandin) -> None:
    await until(lambda: any(place.begun() for place in standin.pods.places.values()), "the command has begun")


@pytest.mark.parametrize(
    ("fate", "words"), [("unschedulable", "3 Insufficient cpu"), ("image_pull_backoff", "ImagePullBackOff")]
)
async def test_a_pod_that_cannot_start(standin: KubernetesStandin, measure: Measure, fate: str, words: str) -> None:
    standin.pods.fate = fate
    got = await measure()
    assert told(got.end) == ("failed", "ready", "CreateFailed")
    assert words in got.end.message


async def test_a_watch_that_was_forbidden_is_made_anew_by_the_next_trial(
    standin: KubernetesStandin, measure: Measure
) -> None:
    standin.fail("watch", status=403)  # the first ever: no reason to think that we had the right
    got = await measure(trials=3)
    assert [told(end) for end in got.ends] == [("failed", "ready", "CreateFailed"), *[("ok", "", "")] * 2]
    assert "can't be watched" in got.ends[0].message


@pytest.mark.parametrize("fault", [{"status": 500}, {"status": 429, "retry_after_s": 0}, {"reset": "before"}])
async def test_a_broken_watch_is_made_again(standin: KubernetesStandin, measure: Measure, fault: Any) -> None:
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

    async def forgetful(*request: Any) -> object:
        answer = await watched(*request)
        if standin.requests.count("watch") == 1:
            standin.pods.forget_history()
        return answer

    monkeypatch.setattr(standin, "watched", forgetful)
    monkeypatch.setattr(kubernetes_watch, "CATCH_UP_NS", 50_000_000)
    got = await measure()
    assert got.end.outcome == "ok"
    assert lists_before_cleanup(standin) == 2


async def test_the_last_warning_of_a_stuck_pod_is_said_early_and_in_the_end(
    standin: KubernetesStandin, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_sandbox, "QUIET_S", 0.1)
    standin.pods.fate = "no_sandbox"
    got = await measure(create_timeout_s=4.0)
    assert (got.end.outcome, got.end.error) == ("timeout", "ReadyTimeout")
    why = 'FailedCreatePodSandBox: no runtime for "<name>" is configured'
    assert got.end.message.endswith(f"within 4 s of create; {why}")
    assert f"kubernetes: a sandbox is not ready yet: {why}" in got.notices
    assert standin.requests.count("events") >= 2


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


@pytest.mark.parametrize(
    ("fault", "words"),
    [({"status": 404}, ""), ({"reset": "before"}, ""), ({"status": 500, "message": BACKEND}, BACKEND)],
)
async def test_a_broken_exec(standin: KubernetesStandin, measure: Measure, fault: Any, words: str) -> None:
    standin.fail("exec", skip=NO_OPS, **fault)
    got = await measure("echo begun; sleep 30")
    assert told(got.end) == ("failed", "action", "ExecFailed")
    assert words in got.end.message


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
    standin: KubernetesStandin, box: Sandbox, mode: str, refused_kills: int
) -> None:
    runner = await box.open_session() if mode == "session" else box
    running = asyncio.ensure_future(runner.exec(Command(script="touch begun; sleep 60")))
    await begun(standin)
    standin.fail("exec", status=403, times=refused_kills)
    standin.cut_execs()
    with pytest.raises(ExecFailed, match="connection broke"):
        await running
    assert standin.faults.struck == refused_kills
    await standin.leaves(1, 1)
    assert (await box.exec(Command(script="true"))).exit_code == 0


@pytest.mark.parametrize("mode", ["exec", "session"])
@pytest.mark.parametrize(("blow", "reason"), [("evict", "Evicted"), ("oom_kill", "OOMKilled"), ("vanish", "NodeLost")])
async def test_a_pod_that_dies_under_a_command(
    standin: KubernetesStandin, measure: Measure, blow: str, reason: str, mode: str
) -> None:
    """A node that dies silently does not hold a command until its timeout."""

    async def strike() -> None:
        await begun(standin)
        [(_, name)] = standin.pods.objects
        getattr(standin.pods, blow)(name)

    striking = asyncio.ensure_future(strike())
    got = await measure("touch begun; sleep 30", mode=mode, timeout_s=60.0)
    await striking
    assert told(got.end) == ("failed", "action", "SandboxLost")
    assert reason in got.end.message


async def beside(strike: Coroutine[Any, Any, None], run: Coroutine[Any, Any, Recorded]) -> Recorded:
    """A run, with ``strike`` beside it."""
    striking = asyncio.ensure_future(strike)
    got = await run
    striking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await striking
    return got


def lost(got: Recorded) -> list[tuple[str, str, str]]:
    return [(end.phase, end.error, end.message) for end in got.ends if end.outcome != "ok"]


async def test_an_outage_is_said_in_a_notice(
    standin: KubernetesStandin, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_access, "OUTAGE_S", 0.05)

    async def strike() -> None:
        await until(lambda: standin.pods.made >= 3, "three pods")
        await standin.restart(refuses_s=0.0, down_s=1.0, hang_up=True)

    got = await beside(strike(), measure(trials=12, concurrency=2))
    assert [text for text in got.notices if "the API server did not answer for at least" in text]


@pytest.mark.parametrize("mode", ["exec", "session"])
async def test_restarts_during_a_run_cost_no_trial(standin: KubernetesStandin, measure: Measure, mode: str) -> None:
    async def strike() -> None:
        for made in (5, 9):
            await until(lambda made=made: standin.pods.made >= made, f"{made} pods")  # type: ignore[misc]
            await standin.restart(refuses_s=0.5)

    got = await beside(strike(), measure(trials=12, concurrency=4, mode=mode))
    assert (len(got.ends), lost(got), got.cleanup_failed) == (12, [], False)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_removal_outlasts_an_outage_that_is_longer_than_the_doubt(
    standin: KubernetesStandin, substrate: KubernetesSubstrate, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """A server that is back has not read its roles yet, however long it was away."""
    monkeypatch.setattr(kubernetes_access, "DOUBT_S", 0.5)
    sandbox = await ready(substrate)
    restarting = asyncio.create_task(standin.restart(refuses_s=0, down_s=1.0, hang_up=True))
    await asyncio.sleep(0.05)
    standin.fail("delete", status=status)
    await sandbox.destroy()
    await restarting
    assert standin.faults.struck == 1
    await standin.leaves(0, 0)


@pytest.mark.parametrize(
    ("on", "status"), [("list", 401), ("watch", 403), ("create", 401), ("exec", 403), ("exec", 401), ("delete", 403)]
)
async def test_what_was_allowed_before_is_asked_for_again(
    standin: KubernetesStandin, measure: Measure, on: str, status: int
) -> None:
    async def strike() -> None:
        await until(lambda: standin.requests.count("delete"), "a delete")  # by now each right has been used
        for _ in range(2):
            await until(lambda: standin.watches, "a watch")
            standin.fail(on, status=status, skip=int(on == "exec"))  # until it is ready every failure is asked again
            standin.cut_watches()

    got = await beside(strike(), measure(trials=6))
    assert (lost(got), got.cleanup_failed) == ([], False)


async def test_rights_that_are_revoked_end_the_run_with_the_reason_and_what_may_be_left(
    standin: KubernetesStandin, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_access, "DOUBT_S", 0.3)

    async def strike() -> None:
        await until(lambda: standin.pods.made == 2, "two pods")
        standin.denied |= set(standin.verbs.values())
        standin.cut_watches()

    got = await beside(strike(), measure("sleep 0.2", trials=4, left=(1, 1)))
    assert [end.outcome for end in got.ends] == ["ok", "failed", "failed", "failed"]
    assert (got.end.phase, got.end.error) == ("create", "SubstrateUnavailable")
    assert "grant docs/substrates/kubernetes.md's role" in got.end.message
    assert got.cleanup_failed
    assert any("may still exist" in text and "this user cannot delete" in text for text in got.notices)
    assert any("the last sweep failed" in text and "taxtui clean --run" in text for text in got.notices)


async def test_finding_outlasts_a_restart_but_not_a_missing_right(
    standin: KubernetesStandin, substrate: KubernetesSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "FIRST_PAUSE_S", 0.01)
    assert await substrate.find() == []
    standin.fail("list", status=403, times=7)  # more than the tries that a hiccup is worth
    assert await substrate.find() == []
    standin.denied.add("list pods")
    monkeypatch.setattr(kubernetes_access, "DOUBT_S", 0.0)
    with pytest.raises(SubstrateUnavailable, match="cannot list pods"):
        await substrate.find()


async def test_what_our_own_pods_use_up_is_waited_for_and_queued(
    standin: KubernetesStandin, substrate: KubernetesSubstrate
) -> None:
    standin.quota = 2
    marks = [Marks() for _ in range(5)]

    async def live(its: Marks) -> None:
        await (await ready(substrate, marks=its)).destroy()

    await asyncio.gather(*map(live, marks))
    assert standin.pods.made == 5
    queued = [its for its in marks if its.queued_ns]
    assert len(queued) == 3
    for text in (text for its in queued for text in its.notices):
        assert "exceeded quota" in text
        assert "waits for the removal of" in text
    await standin.leaves(0, 0)


async def test_a_quota_that_others_use_up_is_final(
    standin: KubernetesStandin, box: Sandbox, connect: Callable[..., KubernetesSubstrate]
) -> None:
    standin.quota = 1
    async with connect() as stranger:
        with pytest.raises(QuotaExceeded, match="limited: pods=1"):
            await stranger.create(spec(), Marks())


async def test_who_waits_for_room_is_not_forgotten(
    standin: KubernetesStandin, substrate: KubernetesSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_substrate, "HOLD_S", 0.1)
    standin.quota = 1
    made = await substrate.create(spec(), Marks())
    with pytest.raises(Throttled, match="exceeded quota"):
        await substrate.create(spec(), Marks())
    await made.destroy()
    await (await substrate.create(spec(), Marks())).destroy()
    await standin.leaves(0, 0)


async def test_a_create_that_has_waited_for_room_goes_on_after_the_last_removal(
    standin: KubernetesStandin, substrate: KubernetesSubstrate
) -> None:
    standin.quota = 0
    substrate._alive.add("one")
    waiting = asyncio.ensure_future(substrate.create(spec(), marks := Marks()))
    await until(lambda: marks.notices, "the create waits for room")
    substrate._alive.clear()  # the quota's status lags behind the removal
    asked = standin.requests.count("create")
    await until(lambda: standin.requests.count("create") > asked, "it is asked again")
    standin.quota = 1
    await (await waiting).destroy()
