"""The EC2 adapter against moto with a real sshd: its life, and every way in which it can end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from taxtui.errors import CleanupFailed, CreateFailed, SandboxLost, SubstrateError
from taxtui.plan.spec import Command, Limits
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws.ec2.substrate import Ec2Substrate
from taxtui.substrates.aws.failure import AgentNeverConnected, SpotInterrupted
from tests.support.standins.ec2_standin_setup import options, sandbox
from tests.support.standins.ecs_standin_setup import spec
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.standins.ec2_standin import Ec2Standin

pytestmark = [pytest.mark.sshd, pytest.mark.processes]


async def test_a_life(ec2: Ec2Standin) -> None:
    marks = Marks()
    async with Ec2Substrate(options(ec2)) as substrate:
        assert substrate.provenance == "stand_in"
        made = await substrate.create(spec(env={"NONCE": "a b'c"}), marks)
        assert [each.name for each in await substrate.find("r1")] == ["taxtui-r1-1"]
        await made.wait_ready(marks)
        result = await made.exec(Command(script='printf %s "$NONCE"; echo err >&2; exit 7'))
        assert (result.exit_code, result.stdout, result.stderr) == (7, b"a b'c", b"err\n")
        names = [name for name, _, _ in marks.seen]
        assert names == ["accepted", "running", "authenticated", "first exec"]
        at = [at_ns for _, at_ns, _ in marks.seen]
        assert at == sorted(at)
        await made.destroy()
        await made.destroy()
        assert await substrate.find("r1") == []
    assert not any(ec2.leftovers().values()), ec2.leftovers()


async def test_a_dead_runs_instance_is_swept(ec2: Ec2Standin) -> None:
    dead = Ec2Substrate(options(ec2))
    await dead.__aenter__()
    await dead.create(spec(), Marks())
    async with Ec2Substrate(options(ec2)) as sweeper:
        (left,) = await sweeper.find("r1")
        assert left.run_id == "r1"
        await sweeper.reap(left)
        await sweeper.reap(left)
        assert await sweeper.find() == []
    assert not any(ec2.leftovers().values()), ec2.leftovers()
    await dead.__aexit__(None, None, None)


# -- the ways in which it can end


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"subnet": ""}, "option subnet"),
        ({"subnet": "subnet-9"}, "subnet-9"),
        ({"security_group": ""}, "option security_group"),
    ],
)
async def test_a_missing_option_is_named(ec2: Ec2Standin, changed: dict[str, str], complaint: str) -> None:
    async with Ec2Substrate(options(ec2, **changed)) as substrate:
        answer = await substrate.check()
        assert not answer.ok
        assert complaint in answer.detail
        assert answer.fix
        with pytest.raises(SubstrateError, match=complaint):
            await substrate.create(spec(), Marks())


async def test_another_host_key_is_never_accepted(ec2: Ec2Standin) -> None:
    ec2.host_key_from_user_data = False
    async with Ec2Substrate(options(ec2, login_timeout_s=3.0)) as substrate:
        made = await substrate.create(spec(), Marks())
        with pytest.raises(AgentNeverConnected, match="another host key"):
            await made.wait_ready(Marks())
        await made.destroy()


@pytest.mark.parametrize("mode", ["exec", "session"])
async def test_a_spot_interruption_is_its_own_outcome(ec2: Ec2Standin, mode: str, tmp_path: Path) -> None:
    async with Ec2Substrate(options(ec2, spot=True)) as substrate:
        assert substrate.variant == "m7i.large spot private"
        made = await substrate.create(spec(), Marks())
        await made.wait_ready(Marks())
        runner = made if mode == "exec" else await made.open_session()
        running = asyncio.create_task(runner.exec(Command(script=f"touch {tmp_path}/begun; sleep 600")))
        await until((tmp_path / "begun").exists, "the command runs")
        await asyncio.to_thread(ec2.end, ec2.running()[0].instance, "Server.SpotInstanceTermination")
        with pytest.raises(SpotInterrupted, match="on-demand"):
            await running
        await made.destroy()


async def test_a_connection_cut_in_the_middle_is_its_own_outcome(ec2: Ec2Standin, tmp_path: Path) -> None:
    async with sandbox(ec2) as made:
        session = await made.open_session()
        running = asyncio.create_task(session.exec(Command(script=f"touch {tmp_path}/begun; sleep 600")))
        await until((tmp_path / "begun").exists, "the command runs")
        await asyncio.to_thread(ec2.running()[0].restart_sshd)
        with pytest.raises(SandboxLost, match="SSH"):
            await running
        with pytest.raises(SandboxLost):
            await made.exec(Command(script="true"))


async def test_prepare_looks_up_what_instances_share_before_the_first_create(ec2: Ec2Standin) -> None:
    async with Ec2Substrate(options(ec2)) as substrate:
        await substrate.prepare("r1", Limits())
        ec2.calls.clear()
        made = await substrate.create(spec(), Marks())
        assert set(ec2.calls) == {"RunInstances"}
        await made.destroy()
    assert not any(ec2.leftovers().values()), ec2.leftovers()


async def test_check_tells_the_size_of_the_instance_type_and_an_open_network(ec2: Ec2Standin) -> None:
    async with Ec2Substrate(options(ec2, instance_type="m7i.large")) as substrate:
        effective = (await substrate.check()).effective
        assert (effective.network, effective.limits(Limits(pids=7))) == (
            "full",
            Limits(cpus=2, memory_mib=8192, pids=7),
        )
        ec2.refuse("DescribeInstanceTypes", "UnauthorizedOperation", "no")
        answer = await substrate.check()
        assert answer.ok
        assert answer.effective.limits(Limits()) == Limits()


@pytest.mark.parametrize("operation", ["GetCallerIdentity", "RunInstances"])
async def test_check_names_the_permission_that_is_missing(ec2: Ec2Standin, operation: str) -> None:
    ec2.refuse(operation, "UnauthorizedOperation" if operation != "GetCallerIdentity" else "AccessDenied", "no")
    async with Ec2Substrate(options(ec2)) as substrate:
        answer = await substrate.check()
        assert not answer.ok
        assert operation in answer.detail
        assert "policy" in answer.fix
        assert (await substrate.check()).ok
    assert not any(ec2.leftovers().values()), "check made something"


async def _copied(ec2: Ec2Standin) -> str:
    """An image of a sandbox whose run has ended."""
    async with sandbox(ec2) as origin:
        await origin.exec(Command(script="echo x > note"))
        return await origin.snapshot("copy", spec().labels, Marks())


async def test_an_image_of_an_ended_run_is_found_and_removed_with_its_snapshot(ec2: Ec2Standin) -> None:
    image = await _copied(ec2)
    ec2.refuse("DeleteSnapshot", "InvalidSnapshot.InUse", "The snapshot is currently in use", times=2)
    async with Ec2Substrate(options(ec2)) as cleaner:
        (entry,) = await cleaner.find()
        assert (entry.name, entry.handle) == ("copy", image)
        await cleaner.reap(entry)
        await cleaner.reap(entry)
    assert (ec2.leftovers()["images"], ec2.leftovers()["snapshots"]) == ([], [])


async def test_a_snapshot_that_outlives_its_image_is_found(ec2: Ec2Standin) -> None:
    await _copied(ec2)
    ec2.refuse("DeleteSnapshot", "UnauthorizedOperation", "You are not authorized to perform: ec2:DeleteSnapshot")
    async with Ec2Substrate(options(ec2)) as cleaner:
        (image,) = [each for each in await cleaner.find() if each.handle.startswith("ami-")]
        with pytest.raises(CleanupFailed, match=r"may still exist: .* ec2:DeleteSnapshot"):
            await cleaner.reap(image)
        (left,) = [each for each in await cleaner.find() if each.handle.startswith("snap-")]
        assert (left.name, left.run_id) == (image.name, image.run_id)
        await cleaner.reap(left)
        assert not [each for each in await cleaner.find() if each.handle.startswith(("ami-", "snap-"))]
    assert ec2.leftovers()["snapshots"] == []


async def test_an_image_that_fails_is_an_error_and_is_found(ec2: Ec2Standin) -> None:
    ec2.image_fails = True
    async with sandbox(ec2) as origin, Ec2Substrate(options(ec2)) as cleaner:
        with pytest.raises(CreateFailed, match="ec2: the image is failed"):
            await origin.snapshot("copy", spec().labels, Marks())
        (left,) = [each for each in await cleaner.find() if each.handle.startswith("ami-")]
        await cleaner.reap(left)
    assert ec2.leftovers()["images"] == []
