"""Both AWS adapters, against stand-ins that really run commands: a life, its ends, and unkind answers."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from taxtui.errors import CleanupFailed, SubstrateError
from taxtui.plan.spec import Command, Limits
from taxtui.sandboxes.kit import removal
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws.failure import SpotInterrupted
from tests.support.recorded import record
from tests.support.standins.aws_setup import spec, substrate
from tests.support.standins.ecs_standin import EcsStandin
from tests.support.waiting import until

pytestmark = pytest.mark.processes

if TYPE_CHECKING:
    from tests.support.standins.ec2_standin import Ec2Standin

EC2 = {
    "create": "RunInstances",
    "end": "TerminateInstances",
    "look": "DescribeInstances",
    "throttle": "RequestLimitExceeded",
    "milestones": "accepted running authenticated first exec",
}
ECS = {
    "create": "RunTask",
    "end": "StopTask",
    "look": "DescribeTasks",
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
    async with substrate(account, spot=True) as connected:
        assert connected.variant in ("m7i.large spot private", "fargate_spot")
        made = await connected.create(spec(), Marks())
        await made.wait_ready(Marks())
        runner = made if mode == "exec" else await made.open_session()
        running = asyncio.create_task(runner.exec(Command(script=f"touch {tmp_path}/begun; sleep 600")))
        await until((tmp_path / "begun").exists, "the command runs")
        if isinstance(account, EcsStandin):
            account.stop(account.running()[0], "SpotInterruption", "Your Spot Task was interrupted.")
        else:
            await asyncio.to_thread(account.end, account.running()[0].instance, "Server.SpotInstanceTermination")
        with pytest.raises(SpotInterrupted, match="on-demand"):
            await running
        await made.destroy()


@pytest.mark.parametrize("refused", ["GetCallerIdentity", "create"])
async def test_check_names_the_permission_that_is_missing(account: Any, refused: str) -> None:
    operation = refused
    if refused == "create":
        operation = "ListTasks" if isinstance(account, EcsStandin) else "RunInstances"
    account.refuse(operation, "AccessDenied", f"not authorized to perform: x:{operation}")
    async with substrate(account) as connected:
        answer = await connected.check()
        assert not answer.ok
        assert operation in answer.detail
        assert "policy" in answer.fix
        assert (await connected.check()).ok
    assert not any(account.leftovers().values()), "check made something"


@pytest.mark.parametrize(
    ("service", "changed", "complaint"),
    [
        pytest.param("ec2", {"subnet": ""}, "option subnet", marks=pytest.mark.sshd),
        pytest.param("ec2", {"subnet": "subnet-9"}, "subnet-9", marks=pytest.mark.sshd),
        pytest.param("ec2", {"security_group": ""}, "option security_group", marks=pytest.mark.sshd),
        ("ecs", {"task_role": ""}, "option task_role"),
        ("ecs", {"subnets": ""}, "option subnets"),
        ("ecs", {"spot": True}, "FARGATE_SPOT"),
    ],
)
async def test_a_missing_option_is_named(
    request: pytest.FixtureRequest, service: str, changed: dict[str, Any], complaint: str
) -> None:
    account = request.getfixturevalue(service)
    async with substrate(account, **changed) as connected:
        answer = await connected.check()
        assert not answer.ok
        assert complaint in answer.detail
        assert answer.fix
        if service == "ec2":
            with pytest.raises(SubstrateError, match=complaint):
                await connected.create(spec(), Marks())
    assert not any(account.leftovers().values())


# -- throttled looks


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


# -- what was launched is not known yet, and what AWS never does


@pytest.mark.parametrize("by", ["destroy", "reap"])
async def test_what_is_not_known_yet_is_not_gone(account: Any, by: str) -> None:
    account.late_calls = 3
    async with substrate(account) as connected:
        made = await connected.create(spec(), Marks())
        if by == "destroy":
            await made.destroy()
        else:
            (left,) = await substrate_found(account, connected)
            await connected.reap(left)
        assert await connected.find("r1") == []
        assert account.calls[words(account)["end"]] == 4


async def substrate_found(account: Any, connected: Any) -> Any:
    """What a search finds that knows the sandbox, unlike the removal that follows."""
    account.late_calls, late = 0, account.late_calls
    found = await connected.find("r1")
    account.late_calls = late
    return found


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
