"""What a sandbox, the account's limit and large data do to the Daytona substrate."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import pytest

from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.kept_output import HEAD_BYTES, TAIL_BYTES
from taxtui.sandboxes.protocol import ExecResult, Marks
from taxtui.substrates.daytona import DaytonaOptions
from taxtui.substrates.daytona.sandbox import DaytonaSandbox
from taxtui.substrates.daytona.states import States
from taxtui.substrates.daytona.substrate import DaytonaSubstrate
from tests.support.sandboxes import spec
from tests.support.standins.daytona_standin import DaytonaStandin

pytestmark = pytest.mark.processes


async def made(substrate: DaytonaSubstrate, marks: Marks) -> DaytonaSandbox:
    sandbox = await substrate.create(spec(), marks)
    assert isinstance(sandbox, DaytonaSandbox)
    await sandbox.wait_ready(marks)
    return sandbox


async def run(sandbox: DaytonaSandbox, mode: str, command: Command) -> ExecResult:
    if mode == "exec":
        return await sandbox.exec(command)
    session = await sandbox.open_session()
    result = await session.exec(command)
    assert (await session.exec(Command(script="echo on"))).stdout == b"on\n"  # nothing is left of the first one's input
    await session.close()
    return result


# -- the account's limit


async def test_a_throttled_look_waits_as_long_as_it_is_told_and_that_is_queued(standin: DaytonaStandin) -> None:
    standin.start_s = 0.0
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url, events=False)) as substrate:
        standin.fail("get", status=429, retry_after_s=2)
        marks = Marks()
        sandbox = await made(substrate, marks)
        assert standin.requests.count("get") == 2  # in steps of 0.1 s it would have been twenty
        assert marks.queued_ns >= 2_000_000_000
        [told] = marks.notices
        assert told.startswith("throttled while looking up states, waited 2.")
        await sandbox.destroy()


async def test_a_throttle_while_it_still_starts_holds_nothing_up(standin: DaytonaStandin) -> None:
    standin.start_s = 600.0
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url, events=False)) as substrate:
        standin.fail("get", status=429, retry_after_s=1)
        marks = Marks()
        sandbox = await substrate.create(spec(), marks)
        assert isinstance(sandbox, DaytonaSandbox)
        while standin.requests.count("get") < 4:
            await substrate._states.look(sandbox.id)  # seen not to have started after the pause
        assert marks.queued_ns == 0
        await sandbox.destroy()


# -- large data


@pytest.mark.parametrize("mode", ["exec", "session"])
async def test_beginning_end_and_length_of_what_is_larger_than_is_kept(standin: DaytonaStandin, mode: str) -> None:
    size = HEAD_BYTES + 3_000_000
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as substrate:
        sandbox = await made(substrate, Marks())
        result = await run(
            sandbox, mode, Command(script=f"echo first; head -c {size} /dev/zero; echo last", timeout_s=200)
        )
        assert len(result.stdout) == HEAD_BYTES + TAIL_BYTES
        assert len(result.stdout) + result.stdout_dropped == size + 11
        assert (result.stdout[:6], result.stdout[-5:]) == (b"first\n", b"last\n")
        await sandbox.destroy()


@pytest.mark.parametrize("mode", ["exec", "session"])
async def test_large_input_arrives_whole_and_what_is_not_read_is_gone(standin: DaytonaStandin, mode: str) -> None:
    data = os.urandom(3_000_000 if mode == "session" else 500_000)
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as substrate:
        sandbox = await made(substrate, Marks())
        whole = await run(sandbox, mode, Command(script="sha256sum; exit 3", stdin=data, timeout_s=200))
        assert (whole.exit_code, whole.stdout.split()[0].decode()) == (3, hashlib.sha256(data).hexdigest())
        part = await run(sandbox, mode, Command(script="head -c 5; exit 4", stdin=data, timeout_s=200))
        assert (part.exit_code, part.stdout) == (4, data[:5])
        await sandbox.destroy()


@pytest.mark.parametrize(
    "payload",
    [
        None,
        "started",
        7,
        [],
        ["started"],
        {},
        {"sandbox": None},
        {"sandbox": "s"},
        {"sandbox": []},
        {"state": "started"},
        {"sandbox": {"id": 7, "state": "started"}},
        {"sandbox": {"id": "s", "state": None}},
    ],
)
async def test_a_malformed_event_is_ignored(payload: Any) -> None:
    unused: Any = None
    states, reports = States(unused, events=False), []
    states.follow("s", reports.append)
    await states._on_event(payload)
    assert reports == []
    await states._on_event({"sandbox": {"id": "s", "state": "started"}})
    await states._on_event({"id": "s", "newState": "stopped"})
    assert [report.state for report in reports] == ["started", "stopped"]
