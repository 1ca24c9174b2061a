"""Each way in which Daytona fails: what the runner records of it, and that nothing is left behind."""

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
from taxtui.substrates.daytona import sandbox as daytona_sandbox
from taxtui.substrates.daytona.options import DaytonaOptions
from taxtui.substrates.daytona.substrate import DaytonaSubstrate
from tests.support.daytona_standin import KEY, DaytonaStandin
from tests.support.recorded import Recorded, record
from tests.support.waiting import until

Measure = Callable[..., Awaitable[Recorded]]
NO_OPS = 2  # ready and ready_again


@pytest.fixture
async def standin(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DaytonaStandin]:
    monkeypatch.setenv("DAYTONA_API_KEY", KEY)
    async with DaytonaStandin() as server:
        yield server


@pytest.fixture
def measure(standin: DaytonaStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Run one recorded trial; whatever happens, nothing may be left."""

    async def run(*commands: str, left: tuple[int, int] = (0, 0), events: bool = True, **how: object) -> Recorded:
        options = DaytonaOptions(api_url=standin.url, events=events)
        got = await record(lambda: DaytonaSubstrate(options), tmp_path, monkeypatch, *commands, **how)  # type: ignore[arg-type]
        assert standin.left() == left
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
    standin: DaytonaStandin, measure: Measure, fault: dict[str, object], error: str
) -> None:
    standin.fail("create", **fault)
    got = await measure()
    assert told(got.end) == ("failed", "create", error)
    assert not got.cleanup_failed
    assert standin.made == (1 if fault.get("reset") == "after" else 0)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_create_that_is_never_answered(standin: DaytonaStandin, measure: Measure, when: str) -> None:
    standin.fail("create", hang=when)
    got = await measure(create_timeout_s=2.0)
    assert (got.end.outcome, got.end.phase) == ("timeout", "create")
    assert standin.made == (1 if when == "after" else 0)


async def test_a_used_up_quota_is_final_and_named(standin: DaytonaStandin, measure: Measure) -> None:
    standin.quota = 0
    got = await measure()
    assert told(got.end) == ("failed", "create", "QuotaExceeded")
    assert "Total CPU limit exceeded" in got.end.message
    assert standin.requests.count("create") == 1


async def test_a_throttle_is_queued_and_not_latency(standin: DaytonaStandin, measure: Measure) -> None:
    standin.fail("create", status=429, retry_after_s=1)
    got = await measure()
    assert got.end.outcome == "ok"
    assert got.end.queued_ns >= 1_000_000_000
    assert any("throttled" in text for text in got.notices)


# ------------------------------------------------------------------------------------------------------------- ready


@pytest.mark.parametrize("events", [True, False])
async def test_a_sandbox_that_goes_to_error_is_deleted(standin: DaytonaStandin, measure: Measure, events: bool) -> None:
    standin.fate = "error"
    got = await measure(events=events)
    assert told(got.end) == ("failed", "ready", "CreateFailed")
    assert "no available runners" in got.end.message
    assert not got.cleanup_failed


async def test_events_have_no_resolution_and_polls_tell_theirs(standin: DaytonaStandin, measure: Measure) -> None:
    standin.start_s = 0.15
    got = await measure()
    assert [mark.resolution_ns for mark in got.marks if mark.name == "started"] == [0]


async def test_polls_tell_their_resolution(standin: DaytonaStandin, measure: Measure) -> None:
    standin.start_s = 0.15
    got = await measure(events=False)
    (started,) = [mark for mark in got.marks if mark.name == "started"]
    assert 50_000_000 < started.resolution_ns < 1_000_000_000
    assert standin.requests.count("get") < 10


async def test_a_hiccup_while_polling_is_looked_at_again(standin: DaytonaStandin, measure: Measure) -> None:
    standin.start_s = 0.05
    standin.fail("get", status=500, times=2)
    assert (await measure(events=False)).end.outcome == "ok"


async def test_a_sandbox_that_never_starts(standin: DaytonaStandin, measure: Measure) -> None:
    standin.start_s = 60.0
    got = await measure(create_timeout_s=2.0)
    assert told(got.end) == ("timeout", "ready", ReadyTimeout.__name__)


# -------------------------------------------------------------------------------------------------------------- exec


@pytest.mark.parametrize("status", [401, 403, 404, 409, 500])
async def test_a_refused_exec(standin: DaytonaStandin, measure: Measure, status: int) -> None:
    standin.fail("exec", skip=NO_OPS, status=status)
    got = await measure("sleep 30")
    assert told(got.end) == ("failed", "action", "ExecFailed")


@pytest.mark.parametrize("reset", ["before", "mid"])
async def test_a_broken_exec_leaves_no_process(standin: DaytonaStandin, reset: str) -> None:
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as substrate:
        marks = Marks()
        spec = SandboxSpec(name="taxtui-r-1", labels={LABEL_RUN: "r"}, limits=Limits(), ttl_s=60)
        box = await substrate.create(spec, marks)
        await box.wait_ready(marks)
        standin.fail("exec", reset=reset)
        with pytest.raises(ExecFailed, match="did not answer"):
            await box.exec(Command(script="sleep 60 & sleep 61"))
        assert standin.left() == (1, 0)


async def test_a_throttled_exec_is_queued(standin: DaytonaStandin, measure: Measure) -> None:
    standin.fail("exec", skip=NO_OPS, status=429, retry_after_s=1)
    got = await measure("echo x")
    assert got.end.outcome == "ok"
    assert got.end.queued_ns >= 1_000_000_000


@pytest.mark.parametrize("mode", ["exec", "session"])
async def test_a_command_that_outlives_its_timeout(measure: Measure, mode: str) -> None:
    got = await measure("sleep 60 & sleep 61", timeout_s=0.6, mode=mode)
    assert told(got.end) == ("timeout", "action", "ExecTimeout")


async def test_an_exec_that_is_never_answered(
    standin: DaytonaStandin, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daytona_sandbox, "KILL_S", 0.8)
    standin.fail("exec", skip=NO_OPS, hang="before")
    got = await measure("true", timeout_s=0.3)
    assert told(got.end) == ("failed", "action", "ExecFailed")
    assert "may still run" in got.end.message


@pytest.mark.parametrize("fault", [{"status": 500}, {"status": 404}, {"reset": "before", "times": 2}])
async def test_a_terminal_that_cannot_be_had_is_not_ready(
    standin: DaytonaStandin, measure: Measure, fault: dict[str, object]
) -> None:
    standin.fail("connect", **{"times": 1000, **fault})
    got = await measure(mode="session", create_timeout_s=3.0)
    assert got.end.phase in ("ready", "")
    assert (got.end.outcome == "ok") == (fault.get("times") == 2)


@pytest.mark.parametrize("mode", ["exec", "session"])
@pytest.mark.parametrize(("state", "reason"), [("stopped", ""), ("error", "out of memory"), ("destroyed", "")])
async def test_a_sandbox_that_dies_under_a_command(
    standin: DaytonaStandin, measure: Measure, state: str, reason: str, mode: str
) -> None:
    async def strike() -> None:
        await until(lambda: any(place.begun() for place in standin.places.values()), "the command has begun")
        standin.lose("taxtui-20260101t000000z-00000000-0", state, reason)

    striking = asyncio.ensure_future(strike())
    got = await measure("touch begun; sleep 30", mode=mode)
    await striking
    assert told(got.end) == ("failed", "action", "SandboxLost")
    assert state in got.end.message
    assert reason in got.end.message


# ----------------------------------------------------------------------------------------------------------- cleanup


@pytest.mark.parametrize(
    "fault",
    [{"status": 500, "times": 2}, {"status": 409}, {"status": 429, "retry_after_s": 1}, {"reset": "after"}],
)
async def test_a_delete_is_asked_for_again(standin: DaytonaStandin, measure: Measure, fault: dict[str, object]) -> None:
    standin.fail("delete", **fault)
    got = await measure()
    assert (got.end.outcome, got.cleanup_failed) == ("ok", False)


async def test_a_forbidden_delete_is_said_loudly(standin: DaytonaStandin, measure: Measure) -> None:
    standin.fail("delete", status=403, times=1000)
    got = await measure(left=(1, 0))
    assert got.cleanup_failed
    assert any("may still exist" in text for text in got.notices)


async def test_a_deletion_that_is_stuck_is_said_loudly(
    standin: DaytonaStandin, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "REMOVE_S", 1.2)
    standin.stuck = True
    got = await measure(left=(1, 0))
    assert (got.end.outcome, got.cleanup_failed) == ("ok", True)
    assert any("accepted but has not ended" in text for text in got.notices)
    standin.release()
    await until(lambda: standin.left() == (0, 0), "what was stuck goes")


async def test_a_list_that_fails_once_does_not_stop_the_cleanup(standin: DaytonaStandin, measure: Measure) -> None:
    standin.fail("create", reset="after")
    standin.fail("list", status=500)
    got = await measure()
    assert told(got.end) == ("failed", "create", "CreateFailed")
    assert not got.cleanup_failed
