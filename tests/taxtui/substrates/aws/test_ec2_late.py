"""What EC2 has made and does not know yet; and what its instances are told when they boot."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from taxtui.errors import CreateFailed
from taxtui.plan.spec import Command
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws import connection
from taxtui.substrates.aws.ec2.instance import user_data
from taxtui.substrates.aws.ec2.sandbox import new_key
from taxtui.substrates.aws.ec2.substrate import Ec2Substrate
from tests.support.standins import ec2_standin_setup
from tests.support.standins.ecs_standin_setup import CREDENTIALS, spec

pytestmark = pytest.mark.processes

if TYPE_CHECKING:
    from tests.support.standins.ec2_standin import Ec2Standin

UNKNOWN = "InvalidGroup.NotFound"


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in CREDENTIALS.items():
        monkeypatch.setenv(key, value)


@pytest.fixture
def ec2() -> Iterator[Ec2Standin]:
    with ec2_standin_setup.standin() as running:
        yield running


@pytest.mark.sshd
async def test_a_group_that_is_not_known_yet_is_asked_about_again(ec2: Ec2Standin) -> None:
    ec2.refuse("AuthorizeSecurityGroupIngress", UNKNOWN, times=2)
    ec2.refuse("RunInstances", UNKNOWN, times=2)
    async with Ec2Substrate(ec2_standin_setup.options(ec2)) as substrate:
        marks = Marks()
        made = await substrate.create(spec(), marks)
        await made.wait_ready(marks)
        assert (await made.exec(Command(script="true"))).exit_code == 0
        await made.destroy()
    assert (ec2.calls["CreateSecurityGroup"], ec2.calls["RunInstances"]) == (1, 3)
    assert marks.queued_ns == 0  # nobody throttled
    assert not any(ec2.leftovers().values()), ec2.leftovers()


@pytest.mark.sshd
async def test_a_wait_that_is_begun_again_leaves_no_connection_behind(ec2: Ec2Standin) -> None:
    async with Ec2Substrate(ec2_standin_setup.options(ec2)) as substrate:
        made = await substrate.create(spec(), Marks())
        await made.wait_ready(Marks())
        first = made._open
        await made.wait_ready(Marks())
        assert first.is_closed()
        await made.destroy()


@pytest.mark.sshd
async def test_a_group_that_never_comes_is_the_creates_failure(
    ec2: Ec2Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SETTLING_S", 0.2)
    ec2.refuse("RunInstances", UNKNOWN, times=99)
    async with Ec2Substrate(ec2_standin_setup.options(ec2)) as substrate:
        with pytest.raises(CreateFailed, match=UNKNOWN):
            await substrate.create(spec(), Marks())
    assert not any(ec2.leftovers().values()), ec2.leftovers()


@pytest.mark.cloud_init
def test_cloud_init_takes_the_user_data(tmp_path: Path) -> None:
    """By the schema that cloud-init itself ships, which finds keys of the wrong type and empty lists too."""
    _, host = new_key()
    _, client = new_key()
    given = tmp_path / "user-data"
    given.write_text(user_data(spec(ttl_s=5400), host_key=host, client_public_key=client.public))
    found = subprocess.run(
        ["cloud-init", "schema", "--config-file", given], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stderr.strip()) == (0, ""), found.stdout + found.stderr
    broken = given.read_text().replace('"ssh_pwauth": false', '"ssh_pwauth": false, "ssh_genkeytypes": []')
    given.write_text(broken)
    assert subprocess.run(["cloud-init", "schema", "--config-file", given], capture_output=True, check=False).returncode
