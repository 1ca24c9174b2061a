"""Unkind answers of EC2 and ECS: throttled lookups, refused set-up, unknown new resources, endless throttling."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from taxtui.errors import CleanupFailed
from taxtui.sandboxes.kit import removal
from taxtui.sandboxes.protocol import Found, Marks
from taxtui.substrates.aws.ec2.substrate import Ec2Substrate
from taxtui.substrates.aws.ecs.substrate import EcsSubstrate
from tests.support.recorded import record
from tests.support.standins import ec2_standin_setup, ecs_standin_setup
from tests.support.standins.ecs_standin import EcsStandin
from tests.support.standins.ecs_standin_setup import spec
from tests.support.waiting import until

pytestmark = pytest.mark.processes

if TYPE_CHECKING:
    from tests.support.standins.ec2_standin import Ec2Standin

EC2_THROTTLE = "RequestLimitExceeded"
ECS_THROTTLE = "ThrottlingException"


async def until_looked(standin: Any, operation: str, times: int) -> None:
    await until(lambda: standin.calls[operation] >= times, f"{times} times {operation}")


# -- throttled looks


async def test_a_throttle_while_a_task_boots_is_part_of_the_cold_start(
    ecs: EcsStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ecs.agent = False
    ecs.refuse("DescribeTasks", ECS_THROTTLE, times=2, skip=3)

    async def boot() -> None:
        await until_looked(ecs, "DescribeTasks", 8)  # a lookup after the throttle: the task is not ready
        ecs.agent = True

    options = ecs_standin_setup.options(ecs)
    booting = asyncio.ensure_future(boot())
    result = await record(lambda: EcsSubstrate(options), tmp_path, monkeypatch)
    await booting
    assert (result.end.outcome, result.end.queued_ns) == ("ok", 0)


async def test_a_throttled_look_that_comes_too_late_is_queued_and_nothing_else(ecs: EcsStandin) -> None:
    ecs.steps_s = dict.fromkeys(ecs.steps_s, 0.0)
    async with EcsSubstrate(ecs_standin_setup.options(ecs)) as substrate:
        marks = Marks()
        made = await substrate.create(spec(), marks)
        ecs.refuse("DescribeTasks", ECS_THROTTLE, times=3, retry_after_s=0.01)
        await made.wait_ready(marks)
        resolution_ns = {name: resolution for name, _, resolution in marks.seen}["running"]
        assert 30_000_000 <= marks.queued_ns == resolution_ns - substrate.api.poller.interval_ns
        await made.destroy()


@pytest.mark.sshd
async def test_a_throttle_while_an_instance_boots_holds_nothing_up(ec2: Ec2Standin) -> None:
    ec2.boot_s = 3600.0
    async with Ec2Substrate(ec2_standin_setup.options(ec2)) as substrate:
        made = await substrate.create(spec(), Marks())
        ec2.refuse("DescribeInstances", EC2_THROTTLE, times=3)
        marks = Marks()
        waiting = asyncio.ensure_future(made.wait_ready(marks))
        await until_looked(ec2, "DescribeInstances", 4)
        await until(lambda: marks.seen, "it runs, and its port is closed")
        await asyncio.sleep(0.2)
        await asyncio.to_thread(ec2.running()[0].restart_sshd)
        await waiting
        assert marks.queued_ns == 0
        await made.destroy()


# -- what was launched is not known yet


@pytest.mark.sshd
@pytest.mark.parametrize("by", ["destroy", "reap"])
async def test_an_instance_that_is_not_known_yet_is_not_gone(ec2: Ec2Standin, by: str) -> None:
    ec2.late_calls = 3
    async with Ec2Substrate(ec2_standin_setup.options(ec2)) as substrate:
        made = await substrate.create(spec(), Marks())
        if by == "destroy":
            await made.destroy()
        else:
            [handle] = ec2.machines
            await substrate.reap(Found(name="taxtui-r1-1", handle=handle, run_id="r1", age_s=0.0))
        assert ec2.leftovers()["instances"] == []
        assert ec2.calls["TerminateInstances"] == 4


async def test_a_task_that_is_not_known_yet_is_not_gone(ecs: EcsStandin) -> None:
    ecs.late_calls = 3
    async with EcsSubstrate(ecs_standin_setup.options(ecs)) as substrate:
        made = await substrate.create(spec(), Marks())
        await made.destroy()
        assert ecs.running() == []
        assert ecs.calls["StopTask"] == 4
        ready = await substrate.create(spec("taxtui-r1-2"), Marks())
        await ready.wait_ready(Marks())
        await ready.destroy()


# -- throttled for ever


@pytest.mark.parametrize(
    ("service", "operation"),
    [
        pytest.param("ec2", "TerminateInstances", marks=pytest.mark.sshd),
        pytest.param("ec2", "DescribeInstances", marks=pytest.mark.sshd),
        ("ecs", "StopTask"),
        ("ecs", "DescribeTasks"),
    ],
)
async def test_a_removal_has_an_end_while_aws_throttles(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, service: str, operation: str
) -> None:
    account = request.getfixturevalue(service)
    connect: Callable[[], Any] = {
        "ec2": lambda: Ec2Substrate(ec2_standin_setup.options(account)),
        "ecs": lambda: EcsSubstrate(ecs_standin_setup.options(account)),
    }[service]
    async with connect() as substrate:
        made = await substrate.create(spec(), Marks())
        [left] = await substrate.find("r1")
        account.refuse(operation, EC2_THROTTLE if service == "ec2" else ECS_THROTTLE, times=math.inf)
        message = f"{left.handle.rpartition('/')[2]} may still exist"
        with monkeypatch.context() as patch:
            patch.setattr(removal, "REMOVE_S", 0.5)
            with pytest.raises(CleanupFailed, match=message):
                await made.destroy()
            with pytest.raises(CleanupFailed, match=message):
                await substrate.reap(left)
        account.faults.clear()
        await substrate.reap(left)
        assert await substrate.find("r1") == []


@pytest.mark.sshd
async def test_a_wait_that_is_begun_again_leaves_no_connection_behind(ec2: Ec2Standin) -> None:
    async with Ec2Substrate(ec2_standin_setup.options(ec2)) as substrate:
        made = await substrate.create(spec(), Marks())
        await made.wait_ready(Marks())
        first = made._open
        await made.wait_ready(Marks())
        assert first.is_closed()
        await made.destroy()


async def test_a_throttle_that_the_poller_waits_out_is_one_notice(ecs: EcsStandin) -> None:
    async with EcsSubstrate(ecs_standin_setup.options(ecs)) as substrate:
        marks = [Marks() for _ in range(3)]
        made = [await substrate.create(spec(f"taxtui-r1-{number}"), Marks()) for number in range(3)]
        ecs.refuse("DescribeTasks", "ThrottlingException", times=2)
        await asyncio.gather(*(one.wait_ready(its) for one, its in zip(made, marks, strict=True)))
        await asyncio.gather(*(one.destroy() for one in made))
    told = [text for its in marks for text in its.notices]
    assert len(told) == 1, told
    assert told[0].startswith("throttled while looking up states, waited ")
