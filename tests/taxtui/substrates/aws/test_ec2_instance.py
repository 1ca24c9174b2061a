"""What is asked of EC2, against botocore's own model, and what its answers mean."""

from __future__ import annotations

import json
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from taxtui.errors import CreateFailed, SandboxLost, SubstrateError
from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.substrates.aws.ec2.instance import InstanceState, KeyPair, run_request, user_data
from taxtui.substrates.aws.ec2.sandbox import new_key, remote_command
from taxtui.substrates.aws.failure import CapacityUnavailable, SpotInterrupted

MODEL = botocore.session.get_session().get_service_model("ec2")
SPEC = SandboxSpec(name="taxtui-r-1", labels={LABEL_RUN: "r"}, limits=Limits(), ttl_s=90.4)


def requested(**changed: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "image_id": "ami-1",
        "root_device": "/dev/xvda",
        "disk_gib": 16,
        "instance_type": "m7i.large",
        "subnet": "subnet-1",
        "security_group": "sg-1",
        "public_address": True,
        "spot": False,
        "user_data": "#cloud-config\n",
    }
    return run_request(SPEC, **{**fields, **changed})


@pytest.mark.parametrize("spot", [False, True])
def test_the_request_is_what_the_model_allows(spot: bool) -> None:
    shape = MODEL.operation_model("RunInstances").input_shape
    report = ParamValidator().validate(requested(spot=spot), shape)
    assert not report.has_errors(), report.generate_report()


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
    text = user_data(SPEC, host_key=KeyPair("PRIVATE", "ssh-ed25519 A"), client_public_key="ssh-ed25519 B")
    head, _, body = text.partition("\n")
    config = json.loads(body)
    assert head == "#cloud-config"
    assert config["ssh_keys"] == {"ed25519_private": "PRIVATE", "ed25519_public": "ssh-ed25519 A"}
    assert config["users"][0]["ssh_authorized_keys"] == ["ssh-ed25519 B"]
    assert config["runcmd"] == [["shutdown", "-P", "+2"]]  # 90.4 s, rounded up
    assert config["ssh_pwauth"] is False
    assert [] not in config.values()  # the lists of cloud-init's schema have one element at least
    assert len(text.encode()) < 16 * 1024  # what EC2 takes


def test_every_instance_has_keys_of_its_own() -> None:
    pairs = [new_key()[1] for _ in range(2)]
    assert pairs[0].private != pairs[1].private
    assert all(pair.public.startswith("ssh-ed25519 ") and "\n" not in pair.public for pair in pairs)


@pytest.mark.parametrize(
    ("code", "kind", "advice"),
    [
        ("Server.SpotInstanceTermination", SpotInterrupted, "on-demand"),
        ("Server.InsufficientInstanceCapacity", CapacityUnavailable, "another zone"),
        ("Client.VolumeLimitExceeded", CreateFailed, "VolumeLimitExceeded"),
        ("Server.InternalError", CreateFailed, "InternalError"),
        ("Client.UserInitiatedShutdown", SandboxLost, "UserInitiated"),
        ("", SandboxLost, "no reason given"),
    ],
)
def test_every_end_of_an_instance_has_its_own_message(code: str, kind: type[SubstrateError], advice: str) -> None:
    state = InstanceState.of({"State": {"Name": "terminated"}, "StateReason": {"Code": code}}, public=True)
    assert state.ending
    assert type(state.failure()) is kind
    assert advice in str(state.failure())


def test_the_address_is_the_one_that_was_asked_for() -> None:
    instance = {"State": {"Name": "running"}, "PublicIpAddress": "192.0.2.1", "PrivateIpAddress": "10.0.0.1"}
    assert InstanceState.of(instance, public=True).address == "192.0.2.1"
    assert InstanceState.of(instance, public=False).address == "10.0.0.1"
    assert not InstanceState.of(instance, public=True).ending


def test_a_remote_command_survives_the_login_shell() -> None:
    assert remote_command(["bash", "-c", "echo 'a b'"], {"X": "1 2"}) == (
        "cd && exec env 'X=1 2' bash -c 'echo '\"'\"'a b'\"'\"''"
    )
