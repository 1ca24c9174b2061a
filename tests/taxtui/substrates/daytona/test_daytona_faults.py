"""Failures, throttling, malformed events and large data of Daytona: the record of a trial, and no remains."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from pathlib import Path

import pytest

from taxtui.errors import ExecFailed, ReadyTimeout
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.kept_output import HEAD_BYTES, KEPT_BYTES, TAIL_BYTES
from taxtui.sandboxes.protocol import ExecResult, Marks
from taxtui.substrates.daytona.sandbox import DaytonaSandbox
from taxtui.substrates.daytona.substrate import DaytonaSubstrate
from tests.support.sandboxes import ready
from tests.support.standins.api_faults import DAYTONA, NO_OPS, Measure, measuring, told
from tests.support.standins.daytona_standin import DaytonaStandin
from tests.support.waiting import until

pytestmark = pytest.mark.processes


@pytest.fixture
def measure(standin: DaytonaStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    return measuring(DAYTONA, standin, tmp_path, monkeypatch)


async def test_a_sandbox_that_goes_to_error_is_deleted(standin: DaytonaStandin, measure: Measure) -> None:
    standin.fate = "error"
    got = await measure()
    assert told(got.end) == ("failed", "ready", "CreateFailed")
    assert "no available runners" in got.end.message
    assert not got.cleanup_failed


async def test_lookups_tell_their_resolution(standin: DaytonaStandin, measure: Measure) -> None:
    standin.start_s = 0.15
    began_ns = time.monotonic_ns()
    got = await measure()
    (started,) = [mark for mark in got.marks if mark.name == "started"]
    assert 50_000_000 < started.resolution_ns < time.monotonic_ns() - began_ns
    assert standin.requests.count("get") < 10


async def test_a_sandbox_that_never_starts(standin: DaytonaStandin, measure: Measure) -> None:
    standin.start_s = 60.0
    got = await measure(create_timeout_s=2.0)
    assert told(got.end) == ("timeout", "ready", ReadyTimeout.__name__)


async def test_a_throttled_lookup_waits_as_long_as_it_is_told_and_that_is_queued(
    standin: DaytonaStandin, substrate: DaytonaSubstrate
) -> None:
    standin.fail("get", status=429, retry_after_s=1)
    marks = Marks()
    await ready(substrate, marks=marks)
    assert standin.requests.count("get") == 2  # in steps of 0.1 s it would have been ten
    assert marks.queued_ns >= 1_000_000_000
    [notice] = marks.notices
    assert notice.startswith("throttled while looking up states, waited 1.")


@pytest.mark.parametrize("status", [401, 404, 500])
async def test_a_refused_exec(standin: DaytonaStandin, measure: Measure, status: int) -> None:
    standin.fail("exec", skip=NO_OPS, status=status)
    got = await measure("sleep 30")
    assert told(got.end) == ("failed", "action", "ExecFailed")


@pytest.mark.parametrize("reset", ["before", "mid"])
async def test_a_broken_exec_leaves_no_process(standin: DaytonaStandin, box: DaytonaSandbox, reset: str) -> None:
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
        [sandbox] = standin.sandboxes.values()
        standin.lose(sandbox["name"], state, reason)

    striking = asyncio.ensure_future(strike())
    got = await measure("touch begun; sleep 30", mode=mode)
    await striking
    assert told(got.end) == ("failed", "action", "SandboxLost")
    assert state in got.end.message
    assert reason in got.end.message


async def run(sandbox: DaytonaSandbox, mode: str, command: Command) -> ExecResult:
    if mode == "exec":
        return await sandbox.exec(command)
    session = await sandbox.open_session()
    result = await session.exec(command)
    assert (await session.exec(Command(script="echo on"))).stdout == b"on\n"  # nothing is left of the first one's input
    await session.close()
    return result


@pytest.mark.parametrize(("mode", "kept"), [("exec", HEAD_BYTES), ("session", 1_000_000)])
async def test_beginning_end_and_length_of_what_is_larger_than_is_kept(
    box: DaytonaSandbox, mode: str, kept: int
) -> None:
    KEPT_BYTES.set(kept)
    size = kept + 3_000_000
    script = f"echo first; head -c {size} /dev/zero; echo last"
    result = await run(box, mode, Command(script=script, timeout_s=200))
    assert len(result.stdout) == kept + TAIL_BYTES
    assert len(result.stdout) + result.stdout_dropped == size + 11
    assert (result.stdout[:6], result.stdout[-5:]) == (b"first\n", b"last\n")


@pytest.mark.parametrize(("mode", "size"), [("exec", 500_000), ("session", 1_000_000)])
async def test_large_input_arrives_whole_and_what_is_not_read_is_gone(
    box: DaytonaSandbox, mode: str, size: int
) -> None:
    data = os.urandom(size)
    whole = await run(box, mode, Command(script="sha256sum; exit 3", stdin=data, timeout_s=200))
    assert (whole.exit_code, whole.stdout.split()[0].decode()) == (3, hashlib.sha256(data).hexdigest())
    part = await run(box, mode, Command(script="head -c 5; exit 4", stdin=data, timeout_s=200))
    assert (part.exit_code, part.stdout) == (4, data[:5])
