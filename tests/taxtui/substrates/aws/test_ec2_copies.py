"""Images of EC2 instances: listed while they exist, removed with their snapshots, refused in one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from taxtui.errors import CleanupFailed, CreateFailed
from taxtui.plan.spec import Command
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws.ec2.substrate import Ec2Substrate
from tests.support.standins.ec2_standin_setup import options, sandbox, standin
from tests.support.standins.ecs_standin_setup import CREDENTIALS, spec

if TYPE_CHECKING:
    from tests.support.standins.ec2_standin import Ec2Standin

pytestmark = [pytest.mark.sshd, pytest.mark.processes]


@pytest.fixture
def ec2(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ec2Standin]:
    for key, value in CREDENTIALS.items():
        monkeypatch.setenv(key, value)
    with standin() as running:
        yield running


async def _copied(ec2: Ec2Standin) -> str:
    """An image of a sandbox whose run has ended."""
    async with sandbox(ec2) as origin:
        await origin.exec(Command(script="echo x > note"))
        return await origin.snapshot("copy", spec().labels, Marks())


async def test_an_image_of_an_ended_run_is_found_and_removed_with_its_snapshot(ec2: Ec2Standin) -> None:
    image = await _copied(ec2)
    async with Ec2Substrate(options(ec2)) as cleaner:
        (entry,) = [each for each in await cleaner.find() if not each.handle.startswith("sg-")]
        assert (entry.name, entry.handle) == ("copy", image)
        await cleaner.reap(entry)
        await cleaner.reap(entry)
    assert (ec2.leftovers()["images"], ec2.leftovers()["snapshots"]) == ([], [])


async def test_a_snapshot_that_outlives_its_image_is_found(ec2: Ec2Standin) -> None:
    await _copied(ec2)
    ec2.refuse("DeleteSnapshot", "UnauthorizedOperation", "You are not authorized to perform: ec2:DeleteSnapshot")
    async with Ec2Substrate(options(ec2)) as cleaner:
        (image,) = [each for each in await cleaner.find() if each.handle.startswith("ami-")]
        with pytest.raises(CleanupFailed, match=r"may still exist: .* ec2:DeleteSnapshot is not allowed"):
            await cleaner.reap(image)
        (left,) = [each for each in await cleaner.find() if each.handle.startswith("snap-")]
        assert (left.name, left.run_id) == (image.name, image.run_id)
        await cleaner.reap(left)
        assert not [each for each in await cleaner.find() if each.handle.startswith(("ami-", "snap-"))]
    assert ec2.leftovers()["snapshots"] == []


async def test_a_snapshot_still_in_use_by_a_deregistered_image_is_deleted_later(ec2: Ec2Standin) -> None:
    await _copied(ec2)
    ec2.refuse("DeleteSnapshot", "InvalidSnapshot.InUse", "The snapshot is currently in use", times=2)
    async with Ec2Substrate(options(ec2)) as cleaner:
        (image,) = [each for each in await cleaner.find() if each.handle.startswith("ami-")]
        await cleaner.reap(image)
    assert ec2.leftovers()["snapshots"] == []


async def test_an_image_that_fails_is_an_error_and_is_found(ec2: Ec2Standin) -> None:
    ec2.image_fails = True
    async with sandbox(ec2) as origin, Ec2Substrate(options(ec2)) as cleaner:
        with pytest.raises(CreateFailed, match="ec2: the image is failed"):
            await origin.snapshot("copy", spec().labels, Marks())
        (left,) = [each for each in await cleaner.find() if each.handle.startswith("ami-")]
        await cleaner.reap(left)
    assert ec2.leftovers()["images"] == []


async def test_a_name_that_is_taken_is_an_error(ec2: Ec2Standin) -> None:
    async with sandbox(ec2) as origin:
        await origin.snapshot("copy", spec().labels, Marks())
        with pytest.raises(CreateFailed, match="copy is already in use"):
            await origin.snapshot("copy", spec().labels, Marks())
