"""The ECS adapter against a stand-in that really runs commands: its life, and every way in which it can end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from taxtui.errors import (
    CreateFailed,
    ExecFailed,
    SubstrateUnavailable,
    Throttled,
)
from taxtui.plan.spec import Command, Limits
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws.ecs.substrate import EcsSubstrate
from taxtui.substrates.aws.failure import AgentNeverConnected, CapacityUnavailable, SpotInterrupted
from tests.support.standins.ecs_standin import EcsStandin
from tests.support.standins.ecs_standin_setup import options, sandbox, spec, standin
from tests.support.waiting import until

pytestmark = pytest.mark.processes


async def test_a_life(ecs: EcsStandin) -> None:
    marks = Marks()
    async with EcsSubstrate(options(ecs)) as substrate:
        assert substrate.provenance == "stand_in"
        made = await substrate.create(spec(), marks)
        assert [each.name for each in await substrate.find("r1")] == ["taxtui-r1-1"]
        await made.wait_ready(marks)
        result = await made.exec(Command(script="echo out; echo err >&2; exit 7"))
        assert (result.exit_code, result.stdout, result.stderr) == (7, b"out\n", b"err\n")
        names = [name for name, _, _ in marks.seen]
        states = ["accepted", "provisioning", "pending", "running", "agent running", "session open"]
        assert names == [name for name in states if name in names]  # a look may come too late for a state
        assert {"accepted", "running", "agent running", "session open"} <= set(names)
        at = [at_ns for _, at_ns, _ in marks.seen]
        assert at == sorted(at)
        assert marks.connection == "cold"
        await made.destroy()
        await made.destroy()
        assert await substrate.find("r1") == []
    assert ecs.running() == []
    assert ecs.active_definitions() == []
    assert all(session.over for session in ecs.sessions())


async def test_prepare_registers_the_definition_before_the_first_create(ecs: EcsStandin) -> None:
    async with EcsSubstrate(options(ecs)) as substrate:
        await substrate.prepare("r1", Limits())
        registered = ecs.active_definitions()
        assert len(registered) == 1
        assert await substrate.find("r1") == []
        made = await substrate.create(spec(), Marks())
        assert ecs.active_definitions() == registered
        await made.destroy()
    assert ecs.active_definitions() == []


async def test_check_tells_the_size_that_fargate_sells_and_an_open_network(ecs: EcsStandin) -> None:
    async with EcsSubstrate(options(ecs)) as substrate:
        effective = (await substrate.check()).effective
        asked = Limits(cpus=1.5, memory_mib=3000)
        assert (effective.network, effective.limits(asked)) == ("full", Limits(cpus=2, memory_mib=4096))


async def test_hundreds_of_tasks_are_found_and_looked_up_in_batches(ecs: EcsStandin) -> None:
    async with EcsSubstrate(options(ecs)) as substrate:
        made = [await substrate.create(spec(f"taxtui-r1-{number}"), Marks()) for number in range(105)]
        assert len(await substrate.find("r1")) == 105
        before = ecs.calls["DescribeTasks"]
        await asyncio.gather(*(each.wait_ready(Marks()) for each in made))
        assert ecs.calls["DescribeTasks"] - before < 105
        await asyncio.gather(*(each.destroy() for each in made))
    assert ecs.running() == []


async def test_exec_mode_never_exceeds_the_containers_sessions(ecs: EcsStandin) -> None:
    async with sandbox(ecs) as made:
        results = await asyncio.gather(*(made.exec(Command(script=f"echo {number}")) for number in range(6)))
    assert [result.stdout for result in results] == [b"%d\n" % number for number in range(6)]


# -- the ways in which it can end


async def test_throttling_is_told_with_the_providers_advice(ecs: EcsStandin) -> None:
    ecs.refuse("RunTask", "ThrottlingException", "Rate exceeded", retry_after_s=3)
    async with EcsSubstrate(options(ecs)) as substrate:
        with pytest.raises(Throttled) as caught:
            await substrate.create(spec(), Marks())
        assert caught.value.retry_after_s == 3.0
        assert ecs.calls["RunTask"] == 1  # the SDK did not retry behind our back
        made = await substrate.create(spec(), Marks())
        await made.wait_ready(Marks())
        ecs.refuse("ExecuteCommand", "ThrottlingException", "Rate exceeded")
        with pytest.raises(Throttled):
            await made.exec(Command(script="true"))
        ecs.refuse("StopTask", "ThrottlingException", "Rate exceeded", times=2, retry_after_s=0.01)
        await made.destroy()
    assert ecs.running() == []


async def test_no_capacity(ecs: EcsStandin) -> None:
    ecs.no_capacity = "Capacity is unavailable at this time. Please try again later"
    async with EcsSubstrate(options(ecs)) as substrate:
        with pytest.raises(CapacityUnavailable, match="subnets in other zones"):
            await substrate.create(spec(), Marks())


async def test_an_agent_that_never_connects_says_what_to_check(ecs: EcsStandin) -> None:
    ecs.agent = False
    async with EcsSubstrate(options(ecs, agent_timeout_s=0.3)) as substrate:
        made = await substrate.create(spec(), Marks())
        with pytest.raises(AgentNeverConnected, match="task_role"):
            await made.wait_ready(Marks())
        await made.destroy()


async def test_a_target_that_is_not_connected_yet_may_be_asked_again(ecs: EcsStandin) -> None:
    async with sandbox(ecs) as made:
        ecs.refuse("ExecuteCommand", "TargetNotConnectedException", "not connected")
        with pytest.raises(ExecFailed, match="not connected"):
            await made.exec(Command(script="true"))
        assert (await made.exec(Command(script="true"))).exit_code == 0


async def test_a_spot_interruption_is_its_own_outcome_in_both_modes(ecs: EcsStandin, tmp_path: Path) -> None:
    async with EcsSubstrate(options(ecs, spot=True)) as substrate:
        assert substrate.variant == "fargate_spot"
        for mode in ("exec", "session"):
            made = await substrate.create(spec(f"taxtui-r1-{mode}"), Marks())
            await made.wait_ready(Marks())
            runner = made if mode == "exec" else await made.open_session()
            running = asyncio.create_task(runner.exec(Command(script=f"touch {tmp_path}/{mode}; sleep 600")))
            await until((tmp_path / mode).exists, "the command runs")
            ecs.stop(ecs.running()[0], "SpotInterruption", "Your Spot Task was interrupted.")
            with pytest.raises(SpotInterrupted, match="on-demand"):
                await running
            await made.destroy()


async def test_a_task_that_fails_to_start(ecs: EcsStandin) -> None:
    async with EcsSubstrate(options(ecs)) as substrate:
        made = await substrate.create(spec(), Marks())
        ecs.stop(
            ecs.running()[0], "TaskFailedToStart", "CannotPullContainerError: pull access denied for 123456789012.x"
        )
        with pytest.raises(CreateFailed, match="route to the registry") as caught:
            await made.wait_ready(Marks())
        assert "123456789012" not in str(caught.value)


async def test_check_names_what_is_missing(ecs: EcsStandin) -> None:
    async with EcsSubstrate(options(ecs)) as substrate:
        ready = await substrate.check()
        assert ready.ok, ready
        assert ready.region == "us-east-1"
        assert ready.latency_ns > 0
        assert "'role bench' in us-east-1" in ready.detail
        assert "--prices aws-fargate" in ready.detail
        assert ready.prices == "aws-fargate"
    async with EcsSubstrate(options(ecs, spot="true")) as substrate:
        assert "FARGATE_SPOT" in (await substrate.check()).detail
        ecs.cluster["capacityProviders"] = ["FARGATE", "FARGATE_SPOT"]
        spot = await substrate.check()
        assert ("without a shipped price sheet" in spot.detail, spot.prices) == (True, "")
    for changed, complaint in (
        ({"task_role": ""}, "task_role"),
        ({"subnets": ""}, "subnets"),
    ):
        async with EcsSubstrate(options(ecs, **changed)) as substrate:
            answer = await substrate.check()
            assert not answer.ok
            assert complaint in answer.detail
            assert answer.fix
    assert ecs.tasks == {}


@pytest.mark.parametrize("operation", ["GetCallerIdentity", "ListTasks"])
async def test_check_names_the_permission_that_is_missing(ecs: EcsStandin, operation: str) -> None:
    ecs.refuse(operation, "AccessDeniedException", f"not authorized to perform: x:{operation}")
    async with EcsSubstrate(options(ecs)) as substrate:
        answer = await substrate.check()
    assert not answer.ok
    assert operation in answer.detail
    assert "policy" in answer.fix


@pytest.mark.parametrize(
    ("cluster", "complaint"),
    [
        ({}, "no active cluster"),
        ({"status": "ACTIVE", "configuration": {"executeCommandConfiguration": {"kmsKeyId": "k"}}}, "KMS"),
    ],
)
async def test_check_looks_at_the_cluster(ecs: EcsStandin, cluster: dict[str, object], complaint: str) -> None:
    ecs.cluster = cluster
    async with EcsSubstrate(options(ecs)) as substrate:
        answer = await substrate.check()
    assert not answer.ok
    assert complaint in answer.detail


async def test_check_never_raises_when_nothing_answers() -> None:
    with standin() as gone:
        given = options(gone)
    async with EcsSubstrate(given) as substrate:
        answer = await substrate.check()
        assert not answer.ok
        with pytest.raises(SubstrateUnavailable):
            await substrate.find()
