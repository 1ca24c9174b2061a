"""Daytona's snapshots and archives: labels in the name, removal, errors, and a start from the archive."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from taxtui.errors import CleanupFailed, CreateFailed, SubstrateUnavailable
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.runner.trial.lifecycle import measure_copies
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN
from taxtui.sandboxes.kit.retry import Retry
from taxtui.sandboxes.lifecycle import fork
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.daytona import DaytonaOptions, snapshots
from taxtui.substrates.daytona.sandbox import DaytonaSandbox
from taxtui.substrates.daytona.substrate import LOOKS_PER_S, DaytonaSubstrate
from tests.support.standins.daytona_standin import DaytonaStandin
from tests.support.waiting import until

pytestmark = pytest.mark.processes

LABELS = {LABEL_RUN: "r.1", LABEL_DEADLINE: "1900000000"}


def spec(name: str) -> SandboxSpec:
    return SandboxSpec(name=name, labels=LABELS, limits=Limits(), ttl_s=60.0)


async def ready(substrate: DaytonaSubstrate, name: str = "taxtui-r.1-1") -> DaytonaSandbox:
    sandbox = await substrate.create(spec(name), Marks())
    await sandbox.wait_ready(Marks())
    return sandbox


async def test_every_page_of_snapshots_is_found_with_run_and_deadline(
    standin: DaytonaStandin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "PAGE", 2)
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as substrate:
        sandbox = await ready(substrate)
        names = {f"taxtui-r.1-1.{number}" for number in range(3)}
        for name in names:
            await sandbox.snapshot(name, LABELS, Marks())
        await sandbox.destroy()
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as cleaner:
        entries = await cleaner.find()
        assert {entry.name for entry in entries} == {entry.name for entry in await cleaner.find("r.1")} == names
        assert {(entry.run_id, entry.deadline_unix_s) for entry in entries} == {("r.1", 1_900_000_000)}
        assert await cleaner.find("r") == []
        await asyncio.gather(*map(cleaner.reap, entries))
        await asyncio.gather(*map(cleaner.reap, entries))
    assert standin.left() == (0, 0)


async def test_a_fork_uses_the_snapshot_even_with_the_option_image(standin: DaytonaStandin) -> None:
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url, image="debian:12")) as substrate:
        sandbox = await ready(substrate)
        await sandbox.exec(Command(script="echo x > note"))
        reference = await sandbox.snapshot("taxtui-r.1-1.copy", LABELS, Marks())
        copy = await fork(substrate, reference, spec("taxtui-r.1-2"), Marks())
        assert (await copy.exec(Command(script="cat note"))).stdout == b"x\n"


async def test_a_snapshot_that_fails_is_an_error_and_is_found(standin: DaytonaStandin) -> None:
    standin.snapshot_state = "error"
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as substrate:
        sandbox = await ready(substrate)
        with pytest.raises(CreateFailed, match="the snapshot went to error: no space left on the runner"):
            await sandbox.snapshot("taxtui-r.1-1.copy", LABELS, Marks())
        await sandbox.destroy()
        (left,) = await substrate.find("r.1")
        await substrate.reap(left)
    assert standin.left() == (0, 0)


async def test_a_key_that_may_not_write_or_delete_snapshots(standin: DaytonaStandin) -> None:
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as substrate:
        sandbox = await ready(substrate)
        standin.fail("copy", status=403, message="missing permission write:snapshots")
        with pytest.raises(SubstrateUnavailable, match="missing permission write:snapshots"):
            await sandbox.snapshot("taxtui-r.1-1.copy", LABELS, Marks())
        await sandbox.snapshot("taxtui-r.1-1.copy", LABELS, Marks())
        left = next(entry for entry in await substrate.find() if entry.handle.startswith(snapshots.HANDLE))
        standin.fail("unsnapshot", status=403, message="missing permission delete:snapshots")
        with pytest.raises(CleanupFailed, match=r"may still exist: .*delete:snapshots"):
            await substrate.reap(left)


async def test_a_throttled_command_in_a_fork_is_repeated_without_the_fork(standin: DaytonaStandin) -> None:
    async def call(phase: str, work: Callable[[], Awaitable[None]], *, resumes: bool = False) -> None:
        await Retry()(work, resumes=resumes)

    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as substrate:
        sandbox = await ready(substrate)
        standin.fail("exec", status=429, retry_after_s=1)
        await measure_copies(("snapshot",), substrate, sandbox, spec(sandbox.name), Marks(), call)
    assert (standin.faults.struck, standin.requests.count("create")) == (1, 2)


async def test_suspensions_of_many_sandboxes_stay_within_the_budget_of_requests(standin: DaytonaStandin) -> None:
    standin.start_s = 1.0
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as substrate:
        sandboxes = await asyncio.gather(*(ready(substrate, f"taxtui-r.1-{number}") for number in range(20)))
        standin.requests.clear()
        began_s = time.monotonic()
        await asyncio.gather(*(sandbox.suspend(Marks()) for sandbox in sandboxes))
        assert standin.requests.count("get") <= LOOKS_PER_S * (time.monotonic() - began_s) + 20
        assert (standin.requests.count("autodelete"), standin.requests.count("stop")) == (20, 20)


async def test_a_stale_origin_after_an_accepted_stop_requests_no_second_stop(standin: DaytonaStandin) -> None:
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as substrate:
        sandbox = await ready(substrate)
        standin.stale_looks = 3
        await sandbox.suspend(Marks())
        assert standin.requests.count("stop") == 1


async def test_a_throttled_lookup_pauses_all_lookups_of_a_suspension(standin: DaytonaStandin) -> None:
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as substrate:
        sandbox = await ready(substrate)
        standin.requests.clear()
        standin.start_s = 0
        standin.fail("get", status=429, retry_after_s=2)
        await sandbox.suspend(Marks())
        assert (standin.faults.struck, standin.requests.count("get")) == (1, 2)


async def test_a_cancelled_snapshot_is_deleted(standin: DaytonaStandin) -> None:
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as substrate:
        sandbox = await ready(substrate)
        copying = asyncio.ensure_future(sandbox.snapshot("taxtui-r.1-1.copy", LABELS, Marks()))
        await until(lambda: "copy" in standin.requests, "the snapshot is requested")
        copying.cancel()
        await asyncio.wait({copying})
        assert copying.cancelled()
        assert standin.snapshots == {}
