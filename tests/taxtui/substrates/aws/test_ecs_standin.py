"""The ECS adapter against a stand-in that really runs commands: definitions, batches, refusals, and check."""

from __future__ import annotations

import asyncio

import pytest

from taxtui.errors import CreateFailed, ExecFailed, SubstrateUnavailable, Throttled
from taxtui.plan.spec import Command, Limits
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws.failure import AgentNeverConnected, CapacityUnavailable
from tests.support.standins.aws_setup import sandbox, spec, standin, substrate
from tests.support.standins.ecs_standin import EcsStandin

pytestmark = pytest.mark.processes


async def test_hundreds_of_tasks_are_found_and_looked_up_in_batches(ecs: EcsStandin) -> None:
    async with substrate(ecs) as connected:
        made = [await connected.create(spec(f"taxtui-r1-{number}"), Marks()) for number in range(105)]
        assert len(ecs.active_definitions()) == 1
        assert len(await connected.find("r1")) == 105
        before = ecs.calls["DescribeTasks"]
        await asyncio.gather(*(each.wait_ready(Marks()) for each in made))
        assert ecs.calls["DescribeTasks"] - before < 105
        await asyncio.gather(*(each.destroy() for each in made))
    assert not any(ecs.leftovers().values())


async def test_exec_mode_never_exceeds_the_containers_sessions(ecs: EcsStandin) -> None:
    async with sandbox(ecs) as made:
        results = await asyncio.gather(*(made.exec(Command(script=f"echo {number}")) for number in range(6)))
    assert [result.stdout for result in results] == [b"%d\n" % number for number in range(6)]
    assert all(session.over for session in ecs.sessions())


async def test_throttling_is_told_and_not_repeated_behind_our_back(ecs: EcsStandin) -> None:
    ecs.refuse("RunTask", "ThrottlingException", "Rate exceeded")
    async with substrate(ecs) as connected:
        with pytest.raises(Throttled):
            await connected.create(spec(), Marks())
        assert ecs.calls["RunTask"] == 1
        made = await connected.create(spec(), Marks())
        await made.wait_ready(Marks())
        ecs.refuse("ExecuteCommand", "ThrottlingException", "Rate exceeded")
        with pytest.raises(Throttled):
            await made.exec(Command(script="true"))
        ecs.refuse("ExecuteCommand", "TargetNotConnectedException", "not connected")
        with pytest.raises(ExecFailed, match="not connected"):
            await made.exec(Command(script="true"))
        assert (await made.exec(Command(script="true"))).exit_code == 0
        ecs.refuse("StopTask", "ThrottlingException", "Rate exceeded", times=2)
        await made.destroy()
    assert ecs.running() == []


async def test_no_capacity(ecs: EcsStandin) -> None:
    ecs.no_capacity = "Capacity is unavailable at this time. Please try again later"
    async with substrate(ecs) as connected:
        with pytest.raises(CapacityUnavailable, match="subnets in other zones"):
            await connected.create(spec(), Marks())


async def test_an_agent_that_never_connects_says_what_to_check(ecs: EcsStandin) -> None:
    ecs.agent = False
    async with substrate(ecs, agent_timeout_s=0.3) as connected:
        made = await connected.create(spec(), Marks())
        with pytest.raises(AgentNeverConnected, match="task_role"):
            await made.wait_ready(Marks())
        await made.destroy()


async def test_a_task_that_fails_to_start(ecs: EcsStandin) -> None:
    async with substrate(ecs) as connected:
        made = await connected.create(spec(), Marks())
        ecs.stop(ecs.running()[0], "TaskFailedToStart", "CannotPullContainerError: pull access denied")
        with pytest.raises(CreateFailed, match="route to the registry"):
            await made.wait_ready(Marks())


async def test_check_names_place_price_and_size(ecs: EcsStandin) -> None:
    async with substrate(ecs) as connected:
        ready = await connected.check()
        assert ready.ok, ready
        assert (ready.region, ready.prices, ready.effective.network) == ("us-east-1", "aws-fargate", "full")
        assert ready.latency_ns > 0
        assert "'role bench' in us-east-1" in ready.detail
        assert "--prices aws-fargate" in ready.detail
        assert ready.effective.limits(Limits(cpus=1.5, memory_mib=3000)) == Limits(cpus=2, memory_mib=4096)
    ecs.cluster["capacityProviders"] = ["FARGATE", "FARGATE_SPOT"]
    async with substrate(ecs, spot=True) as connected:
        spot = await connected.check()
        assert ("without a shipped price sheet" in spot.detail, spot.prices) == (True, "")
    assert ecs.tasks == {}


@pytest.mark.parametrize(
    ("cluster", "complaint"),
    [
        ({}, "Cluster not found"),
        ({"status": "ACTIVE", "configuration": {"executeCommandConfiguration": {"kmsKeyId": "k"}}}, "KMS"),
    ],
)
async def test_check_looks_at_the_cluster(ecs: EcsStandin, cluster: dict[str, object], complaint: str) -> None:
    ecs.cluster = cluster
    async with substrate(ecs) as connected:
        answer = await connected.check()
    assert not answer.ok
    assert complaint in answer.detail


async def test_check_never_raises_when_nothing_answers() -> None:
    with standin("ecs") as gone:
        connecting = substrate(gone)
    async with connecting as connected:
        answer = await connected.check()
        assert not answer.ok
        with pytest.raises(SubstrateUnavailable):
            await connected.find()
