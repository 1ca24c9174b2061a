"""Each way in which Daytona fails: what the runner records of it, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from taxtui.errors import ExecFailed, ReadyTimeout
from taxtui.plan.spec import Command
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.daytona import DaytonaOptions
from taxtui.substrates.daytona import states as daytona_states
from taxtui.substrates.daytona.substrate import DaytonaSubstrate
from tests.support.sandboxes import spec
from tests.support.standins.api_faults import DAYTONA, NO_OPS, Measure, measuring, told
from tests.support.standins.daytona_standin import DaytonaStandin
from tests.support.waiting import until

pytestmark = pytest.mark.processes


@pytest.fixture
def measure(standin: DaytonaStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    return measuring(DAYTONA, standin, tmp_path, monkeypatch)


# ------------------------------------------------------------------------------------------------------------- ready


@pytest.mark.parametrize("events", [True, False])
async def test_a_sandbox_that_goes_to_error_is_deleted(standin: DaytonaStandin, measure: Measure, events: bool) -> None:
    standin.fate = "error"
    got = await measure(options={"events": events})
    assert told(got.end) == ("failed", "ready", "CreateFailed")
    assert "no available runners" in got.end.message
    assert not got.cleanup_failed


async def test_events_have_no_resolution(
    standin: DaytonaStandin, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    standin.start_s = 0.15
    monkeypatch.setattr(daytona_states, "SAFETY_LOOK_S", 3600.0)
    got = await measure()
    assert [mark.resolution_ns for mark in got.marks if mark.name == "started"] == [0]


async def test_polls_tell_their_resolution(standin: DaytonaStandin, measure: Measure) -> None:
    standin.start_s = 0.15
    began_ns = time.monotonic_ns()
    got = await measure(options={"events": False})
    (started,) = [mark for mark in got.marks if mark.name == "started"]
    assert 50_000_000 < started.resolution_ns < time.monotonic_ns() - began_ns
    assert standin.requests.count("get") < 10


async def test_a_hiccup_while_polling_is_looked_at_again(standin: DaytonaStandin, measure: Measure) -> None:
    standin.start_s = 0.05
    standin.fail("get", status=500, times=2)
    assert (await measure(options={"events": False})).end.outcome == "ok"


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
        box = await substrate.create(spec(), marks)
        await box.wait_ready(marks)
        standin.fail("exec", reset=reset)
        with pytest.raises(ExecFailed, match="did not answer"):
            await box.exec(Command(script="sleep 60 & sleep 61"))
        assert standin.left() == (1, 0)


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
