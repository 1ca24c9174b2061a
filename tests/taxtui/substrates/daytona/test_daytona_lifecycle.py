"""The Daytona substrate against a stand-in: what is asked for, removal, and copies whose labels are in their name.

Failures, throttling, malformed events and large data of Daytona: the record of a trial, and no remains.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from daytona import AsyncDaytona, CreateSandboxFromSnapshotParams, DaytonaConfig

from taxtui.errors import CleanupFailed, CreateFailed, ExecFailed, ReadyTimeout, SubstrateUnavailable
from taxtui.plan.spec import Command, Limits
from taxtui.sandboxes.kit.kept_output import HEAD_BYTES, KEPT_BYTES, TAIL_BYTES
from taxtui.sandboxes.kit.labels import LABEL_TRIAL
from taxtui.sandboxes.protocol import ExecResult, Marks
from taxtui.substrates.daytona import DaytonaOptions, client
from taxtui.substrates.daytona.sandbox import DaytonaSandbox
from taxtui.substrates.daytona.substrate import DaytonaSubstrate
from tests.support.sandboxes import RUN, ready, spec
from tests.support.standins.api_faults import DAYTONA, NO_OPS, Measure, measuring, told
from tests.support.standins.daytona_standin import KEY, DaytonaStandin
from tests.support.waiting import until

pytestmark = pytest.mark.processes


async def test_check_reports_key_region_and_missing_permissions(
    standin: DaytonaStandin, substrate: DaytonaSubstrate
) -> None:
    found = await substrate.check()
    assert (found.ok, found.detail, substrate.provenance) == (True, "ready", "stand_in")
    assert found.region == "the organization's default"
    assert found.latency_ns > 0
    standin.permissions = ["write:sandboxes"]
    found = await substrate.check()
    assert (found.ok, found.detail) == (False, "the key lacks: delete:sandboxes")
    assert standin.made == 0


async def test_without_a_key_or_with_a_wrong_one(standin: DaytonaStandin, monkeypatch: pytest.MonkeyPatch) -> None:
    substrate = DaytonaSubstrate(DaytonaOptions(api_url=standin.url))
    monkeypatch.setenv("DAYTONA_API_KEY", "wrong")
    with pytest.raises(SubstrateUnavailable, match="401"):
        await substrate.__aenter__()
    monkeypatch.delenv("DAYTONA_API_KEY")
    assert "set DAYTONA_API_KEY" in (await substrate.check()).fix


async def test_what_is_asked_for(standin: DaytonaStandin, substrate: DaytonaSubstrate) -> None:
    sandbox = await ready(substrate, 1, env={"A": "b"}, ttl_s=60.0)
    (made,) = standin.sandboxes.values()
    assert (made["name"], made["labels"][LABEL_TRIAL]) == (sandbox.name, "1")
    assert made["networkBlockAll"] is True
    assert (made["autoDeleteInterval"], made["autoStopInterval"]) == (0, 1)
    assert made["env"] == {}, "variables go with each command, so that the warm pool is not missed"


async def test_an_image_has_the_resources_that_were_asked_for(standin: DaytonaStandin) -> None:
    options = DaytonaOptions(api_url=standin.url, image="debian:12", target="eu")
    async with DaytonaSubstrate(options) as substrate:
        assert substrate.variant == "target=eu,from=image"
        await substrate.create(spec(limits=Limits(cpus=1.5, memory_mib=1500)), Marks())
        (made,) = standin.sandboxes.values()
        assert (made["cpu"], made["memory"], made["disk"], made["target"]) == (2, 2, 3, "eu")
        found = await substrate.check()
        assert found.facts["warm_pool"].startswith("missed")
        assert found.effective.limits(Limits(cpus=1.5, memory_mib=1500)) == Limits(cpus=2, memory_mib=2048)


async def test_a_snapshot_has_its_own_size(standin: DaytonaStandin) -> None:
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url, snapshot="mine")) as substrate:
        assert (await substrate.check()).effective.limits(Limits()) == Limits(cpus=4, memory_mib=8192)
        standin.fail("snapshot", status=403)
        assert (await substrate.check()).effective.limits(Limits()) == Limits(), "unknown"


async def test_a_command_that_kills_its_own_shell_is_a_result(box: DaytonaSandbox) -> None:
    got = await box.exec(Command(script="kill -9 $$; sleep 1"))
    assert got.exit_code == 137
    assert got.ended_ns > got.started_ns > 0


async def test_a_shell_that_is_not_there(
    standin: DaytonaStandin, box: DaytonaSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in standin.places.values():
        monkeypatch.setattr(place, "path", str(place.folder))
    with pytest.raises(ExecFailed, match="no bash was started"):
        await box.exec(Command(script="true"))


async def test_find_reads_every_page_and_every_state(
    standin: DaytonaStandin, substrate: DaytonaSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PAGE", 2)
    boxes = [await ready(substrate) for _ in range(5)]
    standin.lose(boxes[3].name, "error", "broken")
    found = await substrate.find()
    assert len(found) == len(await substrate.find(RUN)) == 5
    assert {each.deadline_unix_s for each in found} == {1}
    assert await substrate.find("another") == []
    for _ in range(2):
        await asyncio.gather(*map(substrate.reap, found))
    assert standin.left() == (0, 0)


async def test_a_stale_origin_after_an_accepted_stop_requests_no_second_stop(
    standin: DaytonaStandin, box: DaytonaSandbox
) -> None:
    standin.stale_looks = 3
    await box.suspend(Marks())
    assert standin.requests.count("stop") == 1


async def test_an_answer_without_a_state_is_not_the_end(
    substrate: DaytonaSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = await ready(substrate)
    get, looks = substrate._opened.sandboxes.get_sandbox, 0

    async def stateless(*args: Any, **named: Any) -> Any:
        nonlocal looks
        looks += 1
        return SimpleNamespace(state=None) if looks < 3 else await get(*args, **named)

    monkeypatch.setattr(substrate._opened.sandboxes, "get_sandbox", stateless)
    await sandbox.destroy()
    assert looks == 3


async def test_daytonas_own_sdk_takes_the_stand_in_for_daytona(standin: DaytonaStandin) -> None:
    async with AsyncDaytona(DaytonaConfig(api_key=KEY, api_url=standin.url, target="local")) as sdk:
        box = await sdk.create(CreateSandboxFromSnapshotParams(name="by-the-sdk", ephemeral=True), timeout=10)
        got = await box.process.exec("echo hello", timeout=5)
        assert (got.exit_code, got.result) == (0, "hello\n")
        await box.delete(timeout=10, wait=True)
    assert standin.left() == (0, 0)


COPY = f"taxtui-{RUN}-1.copy"
LABELS = spec().labels


async def test_every_page_of_snapshots_is_found_with_run_and_deadline(
    standin: DaytonaStandin, substrate: DaytonaSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PAGE", 2)
    sandbox = await ready(substrate)
    names = {f"taxtui-{RUN}-1.{number}" for number in range(3)}
    for name in names:
        await sandbox.snapshot(name, LABELS, Marks())
    await sandbox.destroy()
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as cleaner:
        entries = await cleaner.find()
        assert {entry.name for entry in entries} == {entry.name for entry in await cleaner.find(RUN)} == names
        assert {(entry.run_id, entry.deadline_unix_s) for entry in entries} == {(RUN, 1)}
        assert await cleaner.find(RUN[:-1]) == []
        for _ in range(2):
            await asyncio.gather(*map(cleaner.reap, entries))
    assert standin.left() == (0, 0)


async def test_a_fork_uses_the_snapshot_even_with_the_option_image(standin: DaytonaStandin) -> None:
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url, image="debian:12")) as substrate:
        sandbox = await ready(substrate)
        await sandbox.exec(Command(script="echo x > note"))
        reference = await sandbox.snapshot(COPY, LABELS, Marks())
        copy = await ready(substrate, acquire=f"snapshot:{reference}")
        assert (await copy.exec(Command(script="cat note"))).stdout == b"x\n"


async def test_a_snapshot_that_fails_is_an_error_and_is_found(
    standin: DaytonaStandin, substrate: DaytonaSubstrate
) -> None:
    standin.snapshot_state = "error"
    sandbox = await ready(substrate)
    with pytest.raises(CreateFailed, match="the snapshot went to error: no space left on the runner"):
        await sandbox.snapshot(COPY, LABELS, Marks())
    await sandbox.destroy()
    (left,) = await substrate.find(RUN)
    await substrate.reap(left)
    assert standin.left() == (0, 0)


async def test_a_key_that_may_not_write_or_delete_snapshots(
    standin: DaytonaStandin, substrate: DaytonaSubstrate, box: DaytonaSandbox
) -> None:
    standin.fail("copy", status=403, message="missing permission write:snapshots")
    with pytest.raises(SubstrateUnavailable, match="missing permission write:snapshots"):
        await box.snapshot(COPY, LABELS, Marks())
    await box.snapshot(COPY, LABELS, Marks())
    left = next(entry for entry in await substrate.find() if entry.handle.startswith(client.HANDLE))
    standin.fail("unsnapshot", status=403, message="missing permission delete:snapshots")
    with pytest.raises(CleanupFailed, match=r"may still exist: .*delete:snapshots"):
        await substrate.reap(left)


async def test_a_cancelled_snapshot_is_deleted(standin: DaytonaStandin, box: DaytonaSandbox) -> None:
    copying = asyncio.ensure_future(box.snapshot(COPY, LABELS, Marks()))
    await until(lambda: "copy" in standin.requests, "the snapshot is requested")
    copying.cancel()
    await asyncio.wait({copying})
    assert copying.cancelled()
    assert standin.snapshots == {}


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
