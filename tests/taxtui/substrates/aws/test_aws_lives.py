"""Both AWS adapters, against stand-ins that really run commands: a life, its ends, checks, copies, unkind answers."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from taxtui.errors import (
    CleanupFailed,
    CreateFailed,
    ExecFailed,
    SandboxLost,
    SubstrateError,
    SubstrateUnavailable,
    Throttled,
)
from taxtui.plan.spec import Command, Limits
from taxtui.sandboxes.kit import removal
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws.failure import AgentNeverConnected, CapacityUnavailable, SpotInterrupted
from tests.support.recorded import record
from tests.support.standins.aws_setup import sandbox, spec, standin, substrate
from tests.support.standins.ecs_standin import EcsStandin
from tests.support.waiting import until

pytestmark = pytest.mark.processes

if TYPE_CHECKING:
    from tests.support.standins.ec2_standin import Ec2Standin

TRUE = Command(script="true")
EC2 = {
    "create": "RunInstances",
    "end": "TerminateInstances",
    "look": "DescribeInstances",
    "try": "RunInstances",
    "throttle": "RequestLimitExceeded",
    "milestones": "accepted running authenticated first exec",
}
ECS = {
    "create": "RunTask",
    "end": "StopTask",
    "look": "DescribeTasks",
    "try": "ListTasks",
    "throttle": "ThrottlingException",
    "milestones": "accepted running agent running",
}


def words(account: Any) -> dict[str, str]:
    """How a service calls it."""
    return ECS if isinstance(account, EcsStandin) else EC2


async def test_a_life(account: Any) -> None:
    marks = Marks()
    async with substrate(account) as connected:
        assert connected.provenance == "stand_in"
        await connected.prepare("r1", Limits())
        account.calls.clear()
        made = await connected.create(spec(env={"NONCE": "a b'c"}), marks)
        assert set(account.calls) == {words(account)["create"]}
        assert [each.name for each in await connected.find("r1")] == ["taxtui-r1-1"]
        await made.wait_ready(marks)
        result = await made.exec(Command(script='printf %s "$NONCE"; echo err >&2; exit 7'))
        assert (result.exit_code, result.stdout, result.stderr) == (7, b"a b'c", b"err\n")
        names = [name for name, _, _ in marks.seen if name not in ("provisioning", "pending")]
        assert " ".join(names) == words(account)["milestones"]
        at = [at_ns for _, at_ns, _ in marks.seen]
        assert at == sorted(at)
        assert marks.connection == "cold"
        await made.destroy()
        await made.destroy()
        assert await connected.find("r1") == []
    assert not any(account.leftovers().values()), account.leftovers()


@pytest.mark.parametrize("mode", ["exec", "session"])
async def test_a_spot_interruption_is_its_own_outcome(account: Any, mode: str, tmp_path: Path) -> None:
    async with sandbox(account, spot=True) as made:
        runner = made if mode == "exec" else await made.open_session()
        running = asyncio.create_task(runner.exec(Command(script=f"touch {tmp_path}/begun; sleep 600")))
        await until((tmp_path / "begun").exists, "the command runs")
        if isinstance(account, EcsStandin):
            account.stop(account.running()[0], "SpotInterruption", "Your Spot Task was interrupted.")
        else:
            await asyncio.to_thread(account.end, account.running()[0].instance, "Server.SpotInstanceTermination")
        with pytest.raises(SpotInterrupted, match="on-demand"):
            await running


@pytest.mark.parametrize("refused", ["GetCallerIdentity", "try"])
async def test_check_names_the_permission_that_is_missing(account: Any, refused: str) -> None:
    operation = words(account).get(refused, refused)
    account.refuse(operation, "AccessDenied", f"not authorized to perform: x:{operation}")
    async with substrate(account) as connected:
        answer = await connected.check()
        assert not answer.ok
        assert operation in answer.detail
        assert "policy" in answer.fix
        assert (await connected.check()).ok
    assert not any(account.leftovers().values()), "check made something"


KMS = {"status": "ACTIVE", "configuration": {"executeCommandConfiguration": {"kmsKeyId": "k"}}}
MISSING: dict[str, list[tuple[dict[str, Any], str]]] = {
    "RunInstances": [
        ({"subnet": ""}, "option subnet"),
        ({"subnet": "subnet-9"}, "subnet-9"),
        ({"security_group": ""}, "option security_group"),
    ],
    "RunTask": [
        ({"task_role": ""}, "option task_role"),
        ({"subnets": ""}, "option subnets"),
        ({"spot": True}, "FARGATE_SPOT"),
        ({"cluster": {}}, "Cluster not found"),
        ({"cluster": KMS}, "KMS"),
    ],
}


async def test_what_is_missing_is_named(account: Any) -> None:
    for changed, complaint in MISSING[words(account)["create"]]:
        if "cluster" in changed:
            account.cluster, changed = changed["cluster"], {}
        async with substrate(account, **changed) as connected:
            answer = await connected.check()
            assert not answer.ok
            assert complaint in answer.detail
            assert answer.fix
            if not isinstance(account, EcsStandin):
                with pytest.raises(SubstrateError, match=complaint):
                    await connected.create(spec(), Marks())
        assert not any(account.leftovers().values())


@pytest.mark.sshd
async def test_check_tells_the_size_of_the_instance_type_and_an_open_network(ec2: Ec2Standin) -> None:
    async with substrate(ec2, instance_type="m7i.large") as connected:
        effective = (await connected.check()).effective
        limits = Limits(cpus=2, memory_mib=8192, pids=7)
        assert (effective.network, effective.limits(Limits(pids=7))) == ("full", limits)
        ec2.refuse("DescribeInstanceTypes", "UnauthorizedOperation", "no")
        answer = await connected.check()
        assert answer.ok
        assert answer.effective.limits(Limits()) == Limits()


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


async def test_check_never_raises_when_nothing_answers() -> None:
    with standin("ecs") as gone:
        connecting = substrate(gone)
    async with connecting as connected:
        answer = await connected.check()
        assert not answer.ok
        with pytest.raises(SubstrateUnavailable):
            await connected.find()


async def test_a_throttle_while_a_task_boots_is_part_of_the_cold_start(
    ecs: EcsStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ecs.agent = False
    ecs.refuse("DescribeTasks", ECS["throttle"], times=2, skip=3)

    async def boot() -> None:
        await until(lambda: ecs.calls["DescribeTasks"] >= 8, "a lookup after the throttle: the task is not ready")
        ecs.agent = True

    booting = asyncio.ensure_future(boot())
    result = await record(lambda: substrate(ecs), tmp_path, monkeypatch)
    await booting
    assert (result.end.outcome, result.end.queued_ns) == ("ok", 0)


async def test_a_throttled_look_that_comes_too_late_is_queued_and_one_notice(ecs: EcsStandin) -> None:
    ecs.steps_s = dict.fromkeys(ecs.steps_s, 0.0)
    async with substrate(ecs) as connected:
        marks = [Marks() for _ in range(3)]
        made = [await connected.create(spec(f"taxtui-r1-{number}"), Marks()) for number in range(3)]
        ecs.refuse("DescribeTasks", ECS["throttle"], times=3)
        await asyncio.gather(*(one.wait_ready(its) for one, its in zip(made, marks, strict=True)))
        for its in marks:
            resolution_ns = {name: resolution for name, _, resolution in its.seen}["running"]
            assert 30_000_000 <= its.queued_ns == resolution_ns - connected.poller.interval_ns
        (notice,) = [text for its in marks for text in its.notices]
        assert notice.startswith("throttled while looking up states, waited ")
        await asyncio.gather(*(one.destroy() for one in made))


@pytest.mark.sshd
async def test_a_throttle_while_an_instance_boots_holds_nothing_up(ec2: Ec2Standin) -> None:
    ec2.boot_s = 3600.0
    async with substrate(ec2) as connected:
        made = await connected.create(spec(), Marks())
        ec2.refuse("DescribeInstances", EC2["throttle"], times=3)
        marks = Marks()
        waiting = asyncio.ensure_future(made.wait_ready(marks))
        await until(lambda: marks.seen, "it runs, and its port is closed")
        await asyncio.sleep(0.2)
        await asyncio.to_thread(ec2.running()[0].restart_sshd)
        await waiting
        assert marks.queued_ns == 0
        await made.destroy()


@pytest.mark.parametrize("by", ["destroy", "reap"])
async def test_what_is_not_known_yet_is_not_gone(account: Any, by: str) -> None:
    async with substrate(account) as connected:
        made = await connected.create(spec(), Marks())
        [left] = await connected.find("r1")
        account.late_calls = 3
        await (made.destroy() if by == "destroy" else connected.reap(left))
        assert await connected.find("r1") == []
        assert account.calls[words(account)["end"]] == 4


@pytest.mark.parametrize("operation", ["end", "look"])
async def test_a_removal_has_an_end_while_aws_throttles(
    account: Any, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    async with substrate(account) as connected:
        made = await connected.create(spec(), Marks())
        [left] = await connected.find("r1")
        account.refuse(words(account)[operation], words(account)["throttle"], times=math.inf)
        message = f"{left.handle.rpartition('/')[2]} may still exist"
        with monkeypatch.context() as patch:
            patch.setattr(removal, "REMOVE_S", 0.5)
            with pytest.raises(CleanupFailed, match=message):
                await made.destroy()
            with pytest.raises(CleanupFailed, match=message):
                await connected.reap(left)
        account.faults.clear()
        await connected.reap(left)
        await connected.reap(left)
        assert await connected.find("r1") == []


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
            await made.exec(TRUE)
        ecs.refuse("ExecuteCommand", "TargetNotConnectedException", "not connected")
        with pytest.raises(ExecFailed, match="not connected"):
            await made.exec(TRUE)
        assert (await made.exec(TRUE)).exit_code == 0
        ecs.refuse("StopTask", "ThrottlingException", "Rate exceeded", times=2)
        await made.destroy()
    assert ecs.running() == []


async def test_a_task_that_never_takes_commands_says_what_to_check(ecs: EcsStandin) -> None:
    async with substrate(ecs, agent_timeout_s=0.3) as connected:
        ecs.no_capacity = "Capacity is unavailable at this time. Please try again later"
        with pytest.raises(CapacityUnavailable, match="subnets in other zones"):
            await connected.create(spec(), Marks())
        ecs.no_capacity, ecs.agent = "", False
        made = await connected.create(spec("taxtui-r1-2"), Marks())
        with pytest.raises(AgentNeverConnected, match="task_role"):
            await made.wait_ready(Marks())
        ecs.stop(ecs.running()[0], "TaskFailedToStart", "CannotPullContainerError: pull access denied")
        with pytest.raises(CreateFailed, match="route to the registry"):
            await made.wait_ready(Marks())


@pytest.mark.sshd
async def test_another_host_key_is_never_accepted(ec2: Ec2Standin) -> None:
    ec2.host_key_from_user_data = False
    async with substrate(ec2, login_timeout_s=3.0) as connected:
        made = await connected.create(spec(), Marks())
        with pytest.raises(AgentNeverConnected, match=r"after 3 s: HostKeyNotVerifiable; check .* cloud-init"):
            await made.wait_ready(Marks())
        await made.destroy()


@pytest.mark.sshd
async def test_a_connection_cut_in_the_middle_is_its_own_outcome(ec2: Ec2Standin, tmp_path: Path) -> None:
    async with sandbox(ec2) as made:
        first = made._open
        await made.wait_ready(Marks())
        assert first.is_closed()  # a wait that is begun again leaves no connection behind
        session = await made.open_session()
        running = asyncio.create_task(session.exec(Command(script=f"touch {tmp_path}/begun; sleep 600")))
        await until((tmp_path / "begun").exists, "the command runs")
        await asyncio.to_thread(ec2.running()[0].restart_sshd)
        with pytest.raises(SandboxLost, match="SSH"):
            await running
        with pytest.raises(SandboxLost):
            await made.exec(TRUE)


@pytest.mark.sshd
async def test_a_fork_looks_up_no_image(ec2: Ec2Standin) -> None:
    async with sandbox(ec2) as origin:
        image = await origin.snapshot("copy", spec().labels, Marks())
        ec2.calls.clear()
        copy = await origin._substrate.create(spec("taxtui-r1-2", acquire=f"snapshot:{image}"), Marks())
        assert set(ec2.calls) == {"RunInstances"}
        await copy.destroy()


@pytest.mark.sshd
async def test_an_image_of_an_ended_run_is_found_and_removed_with_its_snapshot(ec2: Ec2Standin) -> None:
    async with sandbox(ec2) as origin:
        image = await origin.snapshot("copy", spec().labels, Marks())
    ec2.refuse("DeleteSnapshot", "InvalidSnapshot.InUse", "The snapshot is currently in use", times=2)
    async with substrate(ec2) as cleaner:
        (entry,) = await cleaner.find()
        assert (entry.name, entry.handle) == ("copy", image)
        await cleaner.reap(entry)
        await cleaner.reap(entry)
    assert (ec2.leftovers()["images"], ec2.leftovers()["snapshots"]) == ([], [])


@pytest.mark.sshd
async def test_a_snapshot_that_outlives_its_image_is_found(ec2: Ec2Standin) -> None:
    ec2.refuse("DeleteSnapshot", "UnauthorizedOperation", "You are not authorized to perform: ec2:DeleteSnapshot")
    async with sandbox(ec2) as origin:
        await origin.snapshot("copy", spec().labels, Marks())
    async with substrate(ec2) as cleaner:
        (image,) = await cleaner.find()
        with pytest.raises(CleanupFailed, match=r"may still exist: .* ec2:DeleteSnapshot"):
            await cleaner.reap(image)
        (left,) = await cleaner.find()
        assert (left.name, left.run_id, left.handle[:5]) == (image.name, image.run_id, "snap-")
        await cleaner.reap(left)
        assert await cleaner.find() == []
    assert ec2.leftovers()["snapshots"] == []


@pytest.mark.sshd
async def test_an_image_that_fails_is_an_error_and_is_found(ec2: Ec2Standin) -> None:
    ec2.image_fails = True
    async with sandbox(ec2) as origin, substrate(ec2) as cleaner:
        with pytest.raises(CreateFailed, match="ec2: the image is failed"):
            await origin.snapshot("copy", spec().labels, Marks())
        (left,) = [each for each in await cleaner.find() if each.handle.startswith("ami-")]
        await cleaner.reap(left)
    assert ec2.leftovers()["images"] == []
