"""The EC2 adapter against moto with a real sshd: logins, check, and images."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from taxtui.errors import CleanupFailed, CreateFailed, SandboxLost
from taxtui.plan.spec import Command, Limits
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws.failure import AgentNeverConnected
from tests.support.standins.aws_setup import sandbox, spec, substrate
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.standins.ec2_standin import Ec2Standin

pytestmark = [pytest.mark.sshd, pytest.mark.processes]


async def test_another_host_key_is_never_accepted(ec2: Ec2Standin) -> None:
    ec2.host_key_from_user_data = False
    async with substrate(ec2, login_timeout_s=3.0) as connected:
        made = await connected.create(spec(), Marks())
        with pytest.raises(AgentNeverConnected, match=r"after 3 s: HostKeyNotVerifiable; check .* cloud-init"):
            await made.wait_ready(Marks())
        await made.destroy()


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
            await made.exec(Command(script="true"))


async def test_check_tells_the_size_of_the_instance_type_and_an_open_network(ec2: Ec2Standin) -> None:
    async with substrate(ec2, instance_type="m7i.large") as connected:
        effective = (await connected.check()).effective
        assert (effective.network, effective.limits(Limits(pids=7))) == (
            "full",
            Limits(cpus=2, memory_mib=8192, pids=7),
        )
        ec2.refuse("DescribeInstanceTypes", "UnauthorizedOperation", "no")
        answer = await connected.check()
        assert answer.ok
        assert answer.effective.limits(Limits()) == Limits()


async def _copied(ec2: Ec2Standin) -> str:
    """An image of a sandbox whose run has ended."""
    async with sandbox(ec2) as origin:
        await origin.exec(Command(script="echo x > note"))
        return str(await origin.snapshot("copy", spec().labels, Marks()))


async def test_a_fork_looks_up_no_image(ec2: Ec2Standin) -> None:
    async with substrate(ec2) as connected:
        await connected.prepare("r1", Limits())
        origin = await connected.create(spec(), Marks())
        await origin.wait_ready(Marks())
        image = await origin.snapshot("copy", spec().labels, Marks())
        ec2.calls.clear()
        copy = await connected.create(spec("taxtui-r1-2", acquire=f"snapshot:{image}"), Marks())
        assert set(ec2.calls) == {"RunInstances"}
        await asyncio.gather(origin.destroy(), copy.destroy())


async def test_an_image_of_an_ended_run_is_found_and_removed_with_its_snapshot(ec2: Ec2Standin) -> None:
    image = await _copied(ec2)
    ec2.refuse("DeleteSnapshot", "InvalidSnapshot.InUse", "The snapshot is currently in use", times=2)
    async with substrate(ec2) as cleaner:
        (entry,) = await cleaner.find()
        assert (entry.name, entry.handle) == ("copy", image)
        await cleaner.reap(entry)
        await cleaner.reap(entry)
    assert (ec2.leftovers()["images"], ec2.leftovers()["snapshots"]) == ([], [])


async def test_a_snapshot_that_outlives_its_image_is_found(ec2: Ec2Standin) -> None:
    await _copied(ec2)
    ec2.refuse("DeleteSnapshot", "UnauthorizedOperation", "You are not authorized to perform: ec2:DeleteSnapshot")
    async with substrate(ec2) as cleaner:
        (image,) = await cleaner.find()
        with pytest.raises(CleanupFailed, match=r"may still exist: .* ec2:DeleteSnapshot"):
            await cleaner.reap(image)
        (left,) = await cleaner.find()
        assert (left.name, left.run_id, left.handle[:5]) == (image.name, image.run_id, "snap-")
        await cleaner.reap(left)
        assert await cleaner.find() == []
    assert ec2.leftovers()["snapshots"] == []


async def test_an_image_that_fails_is_an_error_and_is_found(ec2: Ec2Standin) -> None:
    ec2.image_fails = True
    async with sandbox(ec2) as origin, substrate(ec2) as cleaner:
        with pytest.raises(CreateFailed, match="ec2: the image is failed"):
            await origin.snapshot("copy", spec().labels, Marks())
        (left,) = [each for each in await cleaner.find() if each.handle.startswith("ami-")]
        await cleaner.reap(left)
    assert ec2.leftovers()["images"] == []
