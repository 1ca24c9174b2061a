"""The Daytona substrate against a stand-in, and the stand-in against Daytona's own SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from taxtui.errors import ExecFailed, SubstrateUnavailable
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN, LABEL_TRIAL
from taxtui.sandboxes.protocol import Marks, Sandbox
from taxtui.substrates.daytona import DaytonaOptions, client
from taxtui.substrates.daytona.substrate import DaytonaSubstrate
from tests.support.standins.daytona_standin import KEY, DaytonaStandin

pytestmark = pytest.mark.processes


def spec(trial: int = 1, **changes: Any) -> SandboxSpec:
    labels = {LABEL_RUN: "r1", LABEL_TRIAL: str(trial), LABEL_DEADLINE: "1900000000"}
    return SandboxSpec(**{"name": f"taxtui-r1-{trial}", "labels": labels, "limits": Limits(), "ttl_s": 60.0, **changes})


async def ready(substrate: DaytonaSubstrate, trial: int = 1, **changes: Any) -> Sandbox:
    sandbox = await substrate.create(spec(trial, **changes), Marks())
    await sandbox.wait_ready(Marks())
    return sandbox


@pytest.fixture
async def substrate(standin: DaytonaStandin) -> AsyncIterator[DaytonaSubstrate]:
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as connected:
        yield connected


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
    await ready(substrate, env={"A": "b"})
    (made,) = standin.sandboxes.values()
    assert made["name"] == "taxtui-r1-1"
    assert made["labels"][LABEL_TRIAL] == "1"
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


async def test_a_command_that_kills_its_own_shell_is_a_result(substrate: DaytonaSubstrate) -> None:
    box = await ready(substrate)
    got = await box.exec(Command(script="kill -9 $$; sleep 1"))
    assert got.exit_code == 137
    assert got.ended_ns > got.started_ns > 0


async def test_a_shell_that_is_not_there(
    standin: DaytonaStandin, substrate: DaytonaSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = await ready(substrate)
    for place in standin.places.values():
        monkeypatch.setattr(place, "path", str(place.folder))
    with pytest.raises(ExecFailed, match="no bash was started"):
        await box.exec(Command(script="true"))


async def test_find_reads_every_page_and_every_state(
    standin: DaytonaStandin, substrate: DaytonaSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PAGE", 2)
    for trial in range(5):
        await ready(substrate, trial)
    standin.lose("taxtui-r1-3", "error", "broken")
    found = await substrate.find()
    assert len(found) == len(await substrate.find("r1")) == 5
    assert {each.deadline_unix_s for each in found} == {1_900_000_000}
    assert await substrate.find("another") == []
    await asyncio.gather(*map(substrate.reap, found))
    await asyncio.gather(*map(substrate.reap, found))
    assert standin.left() == (0, 0)


async def test_polling_stays_within_its_budget(standin: DaytonaStandin) -> None:
    standin.start_s = 1.0
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as substrate:
        await asyncio.gather(*(ready(substrate, trial) for trial in range(40)))
        looks = standin.requests.count("get")
        assert looks < 40 * 3 + 40, "40 sandboxes, each polled every 0.1 s, would make 400 requests in this second"
        await asyncio.sleep(0.3)
        assert standin.requests.count("get") == looks, "nobody looks at what has started"


async def test_daytonas_own_sdk_takes_the_stand_in_for_daytona(standin: DaytonaStandin) -> None:
    from daytona import AsyncDaytona, CreateSandboxFromSnapshotParams, DaytonaConfig

    async with AsyncDaytona(DaytonaConfig(api_key=KEY, api_url=standin.url, target="local")) as sdk:
        box = await sdk.create(CreateSandboxFromSnapshotParams(name="by-the-sdk", ephemeral=True), timeout=10)
        got = await box.process.exec("echo hello", timeout=5)
        assert (got.exit_code, got.result) == (0, "hello\n")
        await box.delete(timeout=10, wait=True)
    assert standin.left() == (0, 0)
