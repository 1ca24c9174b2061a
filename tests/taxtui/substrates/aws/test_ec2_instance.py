"""What is asked of EC2, and what its answers mean."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from costmodel import NoPrice, load_prices
from costmodel.pricing.sheet import priced_cell
from taxtui.errors import CreateFailed, ExecFailed, SandboxLost, SubstrateError, SubstrateUnavailable
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.shell.over_ssh import log_in, no_channel
from taxtui.substrates.aws import Ec2Options
from taxtui.substrates.aws.ec2.instance import ended, public_text, run_request, state_of, user_data
from taxtui.substrates.aws.ec2.substrate import Ec2Substrate, new_key
from taxtui.substrates.aws.failure import CapacityUnavailable, SpotInterrupted
from tests.support.standins.aws_setup import spec

SPEC = SandboxSpec(name="taxtui-r-1", labels={LABEL_RUN: "r"}, limits=Limits(), ttl_s=90.4)


def requested(**changed: Any) -> dict[str, Any]:
    options = Ec2Options(subnet="subnet-1", security_group="sg-1", **changed)
    return run_request(SPEC, options, image_id="ami-1", root_device="/dev/xvda", user_data="#cloud-config\n")


def test_the_guards_are_in_the_request() -> None:
    request = requested()
    assert request["ClientToken"] == requested()["ClientToken"]
    assert len(request["ClientToken"]) <= 64
    assert request["MetadataOptions"] == {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}
    assert request["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert request["BlockDeviceMappings"][0]["Ebs"]["DeleteOnTermination"] is True
    tagged = {each["ResourceType"]: each["Tags"] for each in request["TagSpecifications"]}
    assert set(tagged) == {"instance", "volume", "network-interface"}
    assert all({"Key": "taxtui.run", "Value": "r"} in tags for tags in tagged.values())
    assert "KeyName" not in request  # no key pair that could be left behind
    assert requested(spot=True)["InstanceMarketOptions"]["SpotOptions"]["InstanceInterruptionBehavior"] == "terminate"


def test_user_data_brings_both_keys_and_a_shutdown_that_needs_nobody() -> None:
    host, client = new_key(), new_key()
    text = user_data(SPEC, host_key=host, client_key=client)
    head, _, body = text.partition("\n")
    config = json.loads(body)
    assert head == "#cloud-config"
    assert asyncssh.import_private_key(config["ssh_keys"]["ed25519_private"]) == host
    assert config["ssh_keys"]["ed25519_public"] == public_text(host)
    assert config["users"][0]["ssh_authorized_keys"] == [public_text(client)]
    assert config["runcmd"] == [["shutdown", "-P", "+2"]]  # 90.4 s, rounded up
    assert config["ssh_pwauth"] is False
    assert [] not in config.values()  # the lists of cloud-init's schema have one element at least
    assert len(text.encode()) < 16 * 1024  # what EC2 takes


def test_the_address_is_the_one_that_was_asked_for() -> None:
    instance = {"State": {"Name": "running"}, "PublicIpAddress": "192.0.2.1", "PrivateIpAddress": "10.0.0.1"}
    assert state_of(instance, public=True).address == "192.0.2.1"
    assert state_of(instance, public=False).address == "10.0.0.1"
    assert state_of(instance, public=True).failure is None


@pytest.mark.parametrize(
    ("status", "code", "reason", "kind", "text"),
    [
        (
            "shutting-down",
            "Server.SpotInstanceTermination",
            "x",
            SpotInterrupted,
            "back (Server.SpotInstanceTermination)",
        ),
        # Accepted, and later without a host or a volume: the instance never ran.
        ("terminated", "Server.InsufficientInstanceCapacity", "", CapacityUnavailable, "try another zone or type"),
        ("terminated", "Client.VolumeLimitExceeded", "full", CreateFailed, "start: Client.VolumeLimitExceeded: full"),
        ("terminated", "Server.InternalError", "", CreateFailed, "the instance could not start: Server.InternalError"),
        # The instance was in use.
        ("shutting-down", "Client.UserInitiatedShutdown", "x", SandboxLost, "the instance is shutting-down: x"),
        ("stopped", "", "", SandboxLost, "the instance is stopped: no reason given"),
    ],
)
def test_every_end_of_an_instance_has_its_own_message(
    status: str, code: str, reason: str, kind: type[SubstrateError], text: str
) -> None:
    error = ended(status, code, reason)
    assert type(error) is kind
    assert text in str(error)


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        # The connection has closed while the channel was asked for.
        (asyncssh.OPEN_CONNECT_FAILED, SandboxLost, "the SSH connection is gone: SSH connection closed"),
        # sshd's MaxSessions: the instance is well.
        (asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, ExecFailed, "sshd opens no further channel: SSH connection closed"),
        (asyncssh.OPEN_RESOURCE_SHORTAGE, ExecFailed, "sshd opens no further channel: SSH connection closed"),
    ],
)
def test_a_connection_that_takes_no_more_is_told_from_one_that_is_gone(
    code: int, kind: type[SubstrateError], text: str
) -> None:
    error = no_channel(code, "SSH connection closed")
    assert (type(error), str(error)) == (kind, text)


@pytest.mark.parametrize(
    ("run_id", "asked"),
    [
        (None, {"Name": "tag-key", "Values": ["taxtui.run"]}),
        ("r-1", {"Name": "tag:taxtui.run", "Values": ["r-1"]}),
        (r"2026*?\x", {"Name": "tag:taxtui.run", "Values": [r"2026\*\?\\x"]}),
    ],
)
async def test_a_run_chooses_itself_alone(
    run_id: str | None, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    filters = []

    async def call(*_: object, **parameters: Any) -> dict[str, Any]:
        filters.append(parameters["Filters"][0])
        return {}

    substrate = Ec2Substrate()
    monkeypatch.setattr(substrate, "call", call)
    assert await substrate.find(run_id) == []
    assert filters == [asked] * 3


async def test_a_login_that_is_cancelled_the_moment_it_is_done_goes_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    async def connected(*_: object) -> None:
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(task.cancel)

    async def logging_in() -> None:
        await log_in("127.0.0.1", port=22, known_hosts=None)
        await asyncio.sleep(0)

    monkeypatch.setattr(asyncssh.connection, "_connect", connected)
    task = asyncio.create_task(logging_in())
    await asyncio.wait({task})
    assert task.cancelled()


def test_an_instances_disk_and_address_are_in_its_variant_and_in_its_bill(tmp_path: Path) -> None:
    assert Ec2Options(disk_gib=100, address="private", spot=True).variant == "m7i.large spot private 100GiB"
    sheet = tmp_path / "ec2.toml"
    sheet.write_text(
        'date = 2026-01-01\n[[sandbox]]\nsubstrate = "ec2"\nvariant = "m7i.large"\nusd_per_hour = 0.1\n'
        'usd_per_address_hour = 0.005\nusd_per_disk_hour = 0.0018\nminimum_s = 60\nincrement_s = 1\nsource = "x"\n'
    )
    identity = priced_cell("ec2", Ec2Options().variant, 2.0, 8192)
    assert load_prices(sheet).sandbox(identity).usd_hour(identity) == pytest.approx(0.1068)
    with pytest.raises(NoPrice, match="100GiB"):
        load_prices(sheet).sandbox(priced_cell("ec2", Ec2Options(disk_gib=100).variant, 2.0, 8192))


@pytest.mark.cloud_init
def test_cloud_init_takes_the_user_data(tmp_path: Path) -> None:
    """By the schema that cloud-init itself ships, which finds keys of the wrong type and empty lists too."""
    given = tmp_path / "user-data"
    given.write_text(user_data(spec(ttl_s=5400), host_key=new_key(), client_key=new_key()))
    found = subprocess.run(
        ["cloud-init", "schema", "--config-file", given], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stderr.strip()) == (0, ""), found.stdout + found.stderr
    broken = given.read_text().replace('"ssh_pwauth": false', '"ssh_pwauth": false, "ssh_genkeytypes": []')
    given.write_text(broken)
    assert subprocess.run(["cloud-init", "schema", "--config-file", given], capture_output=True, check=False).returncode


@pytest.mark.parametrize("kept", [False, True])
async def test_an_image_that_keeps_a_disk_after_the_instance_is_refused(
    kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = [
        {"DeviceName": "/dev/sda1", "Ebs": {"DeleteOnTermination": False}},  # the instance's request says otherwise
        {"DeviceName": "/dev/sdb", "VirtualName": "ephemeral0"},
        {"DeviceName": "/dev/sdc", "Ebs": {"DeleteOnTermination": not kept}},
    ]

    async def call(*_: object, **__: object) -> dict[str, Any]:
        return {"Images": [{"RootDeviceName": "/dev/sda1", "BlockDeviceMappings": disks}]}

    substrate = Ec2Substrate(Ec2Options(subnet="subnet-1", security_group="sg-1", ami="ami-1"))
    monkeypatch.setattr(substrate, "call", call)
    if kept:
        with pytest.raises(SubstrateUnavailable, match="ami-1 keeps its disk /dev/sdc"):
            await substrate._image()
    else:
        assert await substrate._image() == ("ami-1", "/dev/sda1")
