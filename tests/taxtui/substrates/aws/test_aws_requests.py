"""What is asked of EC2 and ECS, what their answers and AWS's own words mean, and what sizes cost."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import asyncssh
import botocore.exceptions
import botocore.parsers
import pytest

from costmodel import NoPrice, PriceError, load_prices
from costmodel.pricing.sheet import priced_cell
from taxtui.errors import (
    CreateFailed,
    ExecFailed,
    QuotaExceeded,
    SandboxLost,
    SubstrateError,
    SubstrateUnavailable,
    Throttled,
)
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.shell.over_ssh import log_in, no_channel
from taxtui.substrates.aws import AwsOptions, Ec2Options, EcsOptions
from taxtui.substrates.aws.connection import open_clients, provenance
from taxtui.substrates.aws.ec2 import instance as ec2
from taxtui.substrates.aws.ec2.substrate import Ec2Substrate, new_key
from taxtui.substrates.aws.ecs import task as ecs
from taxtui.substrates.aws.failure import (
    AccessDenied,
    CapacityUnavailable,
    SpotInterrupted,
    classified,
    code_of,
    redacted,
)

SPEC = SandboxSpec(name="taxtui-r-1", labels={LABEL_RUN: "r"}, limits=Limits(), ttl_s=90.4, env={"B": "2", "A": "1"})


def refusal(code: str, message: str = "") -> botocore.exceptions.ClientError:
    return botocore.exceptions.ClientError({"Error": {"Code": code, "Message": message}}, "RunTask")


USER = "User: arn:aws:iam::1:user/ann is not authorized to perform: ecs:RunTask"
TASKS = "You've reached the limit on the number of tasks you can run"


@pytest.mark.parametrize(
    ("code", "message", "kind", "text"),
    [
        ("RequestLimitExceeded", "Request limit exceeded.", Throttled, "RequestLimitExceeded"),
        ("ThrottlingException", "Rate exceeded", Throttled, "ThrottlingException"),
        ("TooManyRequestsException", "", Throttled, "TooManyRequestsException"),
        # A refusal of another service: the code is general, the message is not.
        ("ClientException", "Rate exceeded while launching", Throttled, "ClientException"),
        # A missing permission is named by the message, else by the call.
        ("AccessDeniedException", USER, AccessDenied, "to perform: ecs:RunTask; add the permission to"),
        ("UnauthorizedOperation", "You are not authorized.", AccessDenied, "the RunTask operation: You"),
        ("ExpiredTokenException", "", SubstrateUnavailable, "(ExpiredTokenException) when calling"),
        # Missing capacity, which no quota would change.
        ("InsufficientInstanceCapacity", "", CapacityUnavailable, "; try another zone"),
        ("SpotMaxPriceTooLow", "", CapacityUnavailable, "(SpotMaxPriceTooLow)"),
        # A quota; "more vCPU capacity" is no lack of capacity.
        ("VcpuLimitExceeded", "You have requested more vCPU capacity", QuotaExceeded, "; request a higher quota"),
        ("ClientException", TASKS, QuotaExceeded, f"{TASKS}; request a higher quota"),
        # Any other code: the error of the request, in AWS's words.
        ("InvalidSubnetID.NotFound", "'subnet-9' does not exist", CreateFailed, "RunTask operation: 'subnet-9' does"),
    ],
)
def test_a_refusal_becomes_one_of_our_errors(code: str, message: str, kind: type[SubstrateError], text: str) -> None:
    error = classified(refusal(code, message), "ecs: running a task", CreateFailed)
    assert type(error) is kind
    assert str(error).startswith("ecs: running a task: ")
    assert text in str(error)
    assert (type(classified(refusal(code, message), "x", ExecFailed)) is kind) == (kind is not CreateFailed)


def test_a_denied_permission_is_named_without_who_and_where() -> None:
    text = (
        "User: arn:aws:sts::123456789012:assumed-role/bench/ann is not authorized to perform: ecs:RunTask on resource: "
        "arn:aws:ecs:us-east-1:123456789012:task-definition/x:1 because no identity-based policy allows it"
    )
    message = str(classified(refusal("AccessDeniedException", text), "ecs: running a task", CreateFailed))
    assert "ecs:RunTask" in message
    for private in ("123456789012", "ann", "bench", "arn:"):
        assert private not in message
    assert redacted("a arn:aws:iam::123456789012:role/x, b 123456789012 c") == "a <iam arn>, b <account> c"
    assert redacted("denied. Encoded authorization failure message: abcDEF-123_x") == "denied."


@pytest.mark.parametrize(
    "broken",
    [
        botocore.exceptions.EndpointConnectionError(endpoint_url="https://example.invalid"),
        # It carries what it was answered under the same name as a refusal does, but as something else.
        botocore.exceptions.HTTPClientError(response=b"<html>", error="cut"),
        botocore.parsers.ResponseParserError("Unable to parse response"),
    ],
)
def test_a_broken_connection_is_the_callers_own_kind(broken: Exception) -> None:
    assert code_of(broken) == code_of(None) == ""
    assert type(classified(broken, "x", ExecFailed)) is ExecFailed


@pytest.mark.parametrize(
    ("url", "whose"),
    [
        ("https://ecs.us-east-1.amazonaws.com", "measured"),
        ("https://ec2.cn-north-1.amazonaws.com.cn", "measured"),
        ("http://127.0.0.1:5000", "stand_in"),
        ("https://amazonaws.com.example.org", "stand_in"),
        ("", "stand_in"),
    ],
)
def test_only_aws_is_aws(url: str, whose: str) -> None:
    assert provenance(url) == whose


def test_without_credentials_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    with pytest.raises(SubstrateUnavailable, match="aws configure"):
        open_clients(["ecs"], AwsOptions(region="us-east-1"))
    with pytest.raises(SubstrateUnavailable, match="nobody"):
        open_clients(["ecs"], AwsOptions(region="us-east-1", profile="nobody"))


def ec2_request(**changed: Any) -> dict[str, Any]:
    options = Ec2Options(subnet="subnet-1", security_group="sg-1", **changed)
    return ec2.run_request(SPEC, options, ec2.MachineImage("ami-1", "/dev/xvda"), "#cloud-config\n")


def test_the_guards_are_in_the_request_for_an_instance() -> None:
    request = ec2_request()
    assert request["ClientToken"] == ec2_request()["ClientToken"]
    assert len(request["ClientToken"]) <= 64
    assert request["MetadataOptions"] == {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}
    assert request["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert request["BlockDeviceMappings"][0]["Ebs"]["DeleteOnTermination"] is True
    tagged = {each["ResourceType"]: each["Tags"] for each in request["TagSpecifications"]}
    assert set(tagged) == {"instance", "volume", "network-interface"}
    assert all({"Key": "taxtui.run", "Value": "r"} in tags for tags in tagged.values())
    assert "KeyName" not in request  # no key pair that could be left behind
    assert ec2_request(spot=True)["InstanceMarketOptions"]["SpotOptions"]["InstanceInterruptionBehavior"] == "terminate"


def test_user_data_brings_both_keys_and_a_shutdown_that_needs_nobody() -> None:
    host, client = new_key(), new_key()
    text = ec2.user_data(SPEC, host_key=host, client_key=client)
    head, _, body = text.partition("\n")
    config = json.loads(body)
    assert head == "#cloud-config"
    assert asyncssh.import_private_key(config["ssh_keys"]["ed25519_private"]) == host
    assert config["ssh_keys"]["ed25519_public"] == ec2.public_text(host)
    assert config["users"][0]["ssh_authorized_keys"] == [ec2.public_text(client)]
    assert config["runcmd"] == [["shutdown", "-P", "+2"]]  # 90.4 s, rounded up
    assert config["ssh_pwauth"] is False
    assert [] not in config.values()  # the lists of cloud-init's schema have one element at least
    assert len(text.encode()) < 16 * 1024  # what EC2 takes


def test_the_address_is_the_one_that_was_asked_for() -> None:
    instance = {"State": {"Name": "running"}, "PublicIpAddress": "192.0.2.1", "PrivateIpAddress": "10.0.0.1"}
    assert ec2.state_of(instance, public=True).address == "192.0.2.1"
    assert ec2.state_of(instance, public=False).address == "10.0.0.1"
    assert ec2.state_of(instance, public=True).failure is None


SPOT = "Server.SpotInstanceTermination"
NO_ROOM = "Capacity is unavailable at this time. Please try again later or in a different availability zone"


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ec2.ended("shutting-down", SPOT, "x"), SpotInterrupted, f"back ({SPOT})"),
        (ecs.ended("SpotInterruption", "Your Spot Task was interrupted."), SpotInterrupted, "back; use on-demand"),
        # Accepted, and later without a host, a volume, an image, a role or a route: it never ran.
        (
            ec2.ended("terminated", "Server.InsufficientInstanceCapacity", ""),
            CapacityUnavailable,
            "another zone or type",
        ),
        (ec2.ended("terminated", "Client.VolumeLimitExceeded", "full"), CreateFailed, "VolumeLimitExceeded: full"),
        (ec2.ended("terminated", "Server.InternalError", ""), CreateFailed, "the instance could not start: Server.Int"),
        (ecs.ended("TaskFailedToStart", "CannotPullContainerError: x"), CreateFailed, "the subnet's route to the reg"),
        (ecs.ended("EssentialContainerExited", "ResourceInitializationError: x"), CreateFailed, "execution_role"),
        (ecs.ended("TaskFailedToStart", NO_ROOM), CapacityUnavailable, "try subnets in other zones"),
        (ecs.ended("TaskFailedToStart", "something new"), CreateFailed, "the task failed to start: something new"),
        (ecs.not_started([{"reason": NO_ROOM}]), CapacityUnavailable, "try subnets in other zones"),
        (ecs.not_started([{"arn": "x", "reason": "A"}, {"reason": "B", "detail": "c"}]), CreateFailed, "A; B c"),
        (ecs.not_started([]), CreateFailed, "the task failed to start: TaskFailedToStart"),
        # It was in use.
        (ec2.ended("shutting-down", "Client.UserInitiatedShutdown", "x"), SandboxLost, "instance is shutting-down: x"),
        (ec2.ended("stopped", "", ""), SandboxLost, "the instance is stopped: no reason given"),
        (ecs.ended("EssentialContainerExited", "OutOfMemoryError: killed"), SandboxLost, "stopped: OutOfMemoryError"),
        (ecs.ended("EssentialContainerExited", ""), SandboxLost, "the task has stopped: EssentialContainerExited"),
        (ecs.ended("", ""), SandboxLost, "the task has stopped: no reason given"),
        # The connection has closed while the channel was asked for; sshd's MaxSessions: the instance is well.
        (no_channel(asyncssh.OPEN_CONNECT_FAILED, "closed"), SandboxLost, "the SSH connection is gone: closed"),
        (no_channel(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "no"), ExecFailed, "sshd opens no further channel: no"),
        (no_channel(asyncssh.OPEN_RESOURCE_SHORTAGE, "no"), ExecFailed, "sshd opens no further channel: no"),
    ],
)
def test_every_end_has_its_own_message(error: SubstrateError, kind: type[SubstrateError], text: str) -> None:
    assert type(error) is kind
    assert text in str(error)


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
    given.write_text(ec2.user_data(SPEC, host_key=new_key(), client_key=new_key()))
    argv = ["cloud-init", "schema", "--config-file", given]
    found = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr.strip()) == (0, ""), found.stdout + found.stderr
    broken = given.read_text().replace('"ssh_pwauth": false', '"ssh_pwauth": false, "ssh_genkeytypes": []')
    given.write_text(broken)
    assert subprocess.run(argv, capture_output=True, check=False).returncode


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


def options(**changed: Any) -> EcsOptions:
    return EcsOptions(**{"task_role": "r", "subnets": "subnet-1", **changed})


def test_a_family_is_its_content() -> None:
    changes: list[dict[str, Any]] = [{}, {"image": "a"}, {"image": "b"}, {"arch": "ARM64"}]
    families = {ecs.definition(options(**changed), Limits())["family"] for changed in changes * 2}
    assert len(families) == len(changes)


def test_the_guards_are_in_the_request_for_a_task() -> None:
    request, again = (ecs.run_request(SPEC, options(), "d") for _ in range(2))
    override = request["overrides"]["containerOverrides"][0]
    assert override["command"] == ["exec sleep 90"]  # the deadline, without us
    assert override["environment"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    assert request["clientToken"] == again["clientToken"]
    assert len(request["clientToken"]) <= 64
    assert request["launchType"] == "FARGATE"
    assert {"key": "taxtui.run", "value": "r"} in request["tags"]
    assert "launchType" not in ecs.run_request(SPEC, options(spot=True), "d")  # ECS refuses both together


def test_the_agents_state_is_its_own() -> None:
    agent = {"name": "ExecuteCommandAgent", "lastStatus": "PENDING"}
    task = {"lastStatus": "RUNNING", "containers": [{"name": "sandbox", "managedAgents": [agent]}]}
    state = ecs.state_of(task)
    assert (state.status, state.milestones, state.failure) == ("RUNNING", ["running"], None)
    agent["lastStatus"] = "RUNNING"
    assert ecs.state_of(task).milestones == ["running", "agent running"]
    assert ecs.state_of({"lastStatus": "PROVISIONING"}).milestones == ["provisioning"]


VCPU_USD, GIB_USD, ADDRESS_USD = 0.04048, 0.004445, 0.005


@pytest.mark.parametrize(
    ("cpus", "mib", "vcpu", "gib"),
    [(1.0, 1024, 1, 2), (1.5, 3000, 2, 4), (0.25, 3072, 0.5, 3), (4.0, 31_000, 8, 32), (16.0, 122_880, 16, 120)],
)
def test_the_next_size_that_is_sold_is_bought_and_billed(cpus: float, mib: int, vcpu: float, gib: float) -> None:
    identity = priced_cell("ecs", "fargate", cpus, mib)
    usd = load_prices("aws-fargate").sandbox(identity).usd_hour(identity)
    assert usd == pytest.approx(vcpu * VCPU_USD + gib * GIB_USD + ADDRESS_USD)
    assert ecs.fargate_size(Limits(cpus=cpus, memory_mib=mib)) == (vcpu * 1024, gib * 1024)


def test_a_size_that_nobody_sells_is_refused_before_anything_is_made() -> None:
    with pytest.raises(PriceError, match="fargate sells nothing with 17 vCPU"):
        load_prices("aws-fargate").sandbox(priced_cell("ecs", "fargate", 17.0, 1024))
    with pytest.raises(CreateFailed, match="17 vCPU"):
        ecs.fargate_size(Limits(cpus=17.0))


@pytest.mark.parametrize(
    ("changed", "address_usd", "vcpu_usd"),
    [
        ({}, ADDRESS_USD, VCPU_USD),
        ({"public_address": False}, 0.0, VCPU_USD),
        ({"arch": "ARM64"}, ADDRESS_USD, 0.03238),
    ],
)
def test_address_architecture_and_spot_are_in_the_variant_and_in_the_bill(
    changed: dict[str, Any], address_usd: float, vcpu_usd: float
) -> None:
    price = load_prices("aws-fargate").sandbox(priced_cell("ecs", EcsOptions(**changed).variant, 1.0, 2048))
    assert (price.rate("usd_per_address_hour"), price.rate("usd_per_vcpu_hour")) == (address_usd, vcpu_usd)
    with pytest.raises(NoPrice):
        load_prices("aws-fargate").sandbox(priced_cell("ecs", EcsOptions(spot=True, **changed).variant, 1.0, 2048))
