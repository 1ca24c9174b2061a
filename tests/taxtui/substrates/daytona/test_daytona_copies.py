"""Daytona's snapshots and archives: labels in the name, removal, errors, and a start from the archive."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from taxtui.errors import CleanupFailed, CreateFailed, SubstrateUnavailable
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN
from taxtui.sandboxes.lifecycle import fork
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.daytona import DaytonaOptions, client
from taxtui.substrates.daytona.sandbox import DaytonaSandbox
from taxtui.substrates.daytona.substrate import DaytonaSubstrate
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
    monkeypatch.setattr(client, "PAGE", 2)
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
        left = next(entry for entry in await substrate.find() if entry.handle.startswith(client.HANDLE))
        standin.fail("unsnapshot", status=403, message="missing permission delete:snapshots")
        with pytest.raises(CleanupFailed, match=r"may still exist: .*delete:snapshots"):
            await substrate.reap(left)


async def test_a_stale_origin_after_an_accepted_stop_requests_no_second_stop(standin: DaytonaStandin) -> None:
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as substrate:
        sandbox = await ready(substrate)
        standin.stale_looks = 3
        await sandbox.suspend(Marks())
        assert standin.requests.count("stop") == 1


async def test_an_answer_without_a_state_is_not_the_end(
    standin: DaytonaStandin, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as substrate:
        sandbox = await ready(substrate)
        get, looks = substrate._opened.sandboxes.get_sandbox, 0

        async def stateless(*args: Any, **named: Any) -> Any:
            nonlocal looks
            looks += 1
            return SimpleNamespace(state=None) if looks < 3 else await get(*args, **named)

        monkeypatch.setattr(substrate._opened.sandboxes, "get_sandbox", stateless)
        await sandbox.destroy()
        assert looks == 3


async def test_a_cancelled_snapshot_is_deleted(standin: DaytonaStandin) -> None:
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as substrate:
        sandbox = await ready(substrate)
        copying = asyncio.ensure_future(sandbox.snapshot("taxtui-r.1-1.copy", LABELS, Marks()))
        await until(lambda: "copy" in standin.requests, "the snapshot is requested")
        copying.cancel()
        await asyncio.wait({copying})
        assert copying.cancelled()
        assert standin.snapshots == {}
